import { announce } from '../announce.ts';
import { call } from '../api.ts';
import type { App, View } from '../app.ts';
import { ask } from '../dialog.ts';
import { type Child, element, onClick } from '../element.ts';
import { textField } from '../fields.ts';
import { form } from '../form.ts';
import { heading } from '../heading.ts';
import { badge } from '../notices.ts';
import { session } from '../session.ts';
import type { Tenant } from '../shapes.ts';
import { table } from '../table.ts';
import { resendButton } from '../verification-banner.ts';

/** The person, and the tenants that are theirs. */
export function accountView(app: App): View {
  return { title: 'Account', body: [heading('Account'), personSection(app), tenantsSection(app)] };
}

function personSection(app: App): Child {
  const { person } = app.me;
  if (person === null) return null;
  const logOut = onClick(element('button', { type: 'button', class: 'quiet' }, 'Log out'), () =>
    app.logOut(),
  );
  const facts: readonly (readonly [string, Child])[] = [
    ['Name', person.name],
    ['E-mail', [element('span', { class: 'breakable' }, person.email), ' ', verifiedBadge(person.verified)]],
    ['Password', element('a', { href: '/#/forgot' }, 'Set a new one by e-mail')],
  ];
  return element(
    'section',
    { class: 'card', 'aria-labelledby': 'person' },
    element('h2', { id: 'person' }, 'You'),
    element(
      'dl',
      { class: 'facts' },
      facts.map(([name, value]) => [element('dt', {}, name), element('dd', {}, value)]),
    ),
    element('div', { class: 'actions' }, person.verified ? null : resendButton(app), logOut),
  );
}

function verifiedBadge(verified: boolean): Child {
  return verified ? badge('good', 'verified') : badge('warning', 'not verified');
}

const columns = [
  { name: 'Tenant' },
  { name: 'Id' },
  { name: 'Plan' },
  { name: 'Status' },
  { name: 'Actions', hiddenName: true },
];

function tenantsSection(app: App): Child {
  const adding = form({
    fields: [
      textField({ name: 'name', label: 'Name of a new tenant' }, { autocomplete: 'off', required: true }),
    ],
    submit: 'Make the tenant',
    layout: 'row',
    async send({ name }) {
      await call<Tenant>('POST', '/v1/tenants', { name });
      announce(`The tenant ${name} was made`);
      await app.refresh();
    },
  });
  return element(
    'section',
    { class: 'card', 'aria-labelledby': 'tenants' },
    element('h2', { id: 'tenants' }, 'Tenants'),
    element('p', {}, 'A tenant has namespaces, keys, usage and a bill of its own.'),
    table({
      caption: 'Your tenants',
      columns,
      narrow: 'cards',
      rows: app.tenants.map((tenant) => tenantRow(app, tenant)),
    }),
    adding,
  );
}

function tenantRow(app: App, tenant: Tenant): readonly Child[] {
  const { id, name, plan, status } = tenant;
  const remove = element(
    'button',
    { type: 'button', class: 'quiet', 'aria-label': `Delete ${name}` },
    'Delete',
  );
  onClick(remove, () => askToDelete(app, tenant));
  const current = id === app.me.tenant_id ? badge('good', 'current') : null;
  return [
    [name, ' ', current],
    element('code', {}, String(id)),
    plan,
    badge(status === 'active' ? 'plain' : 'warning', status),
    app.tenants.length < 2 ? null : element('div', { class: 'row-actions' }, remove),
  ];
}

function askToDelete(app: App, { id, name }: Tenant): void {
  ask({
    title: 'Delete this tenant?',
    text: 'Its namespaces, keys and usage are gone for good.',
    action: 'Delete',
    typed: name,
    async act() {
      await call('DELETE', `/v1/tenants/${id}`);
      if (session.tenant === id) session.actForOwn();
      announce(`The tenant ${name} was deleted`);
      await app.refresh();
    },
  });
}
