import { announce } from '../announce.ts';
import { call } from '../api.ts';
import type { App, View } from '../app.ts';
import { copyable } from '../copy.ts';
import { ask } from '../dialog.ts';
import { type Child, element, onClick, refill } from '../element.ts';
import { formatNumber, formatTime } from '../format.ts';
import { heading } from '../heading.ts';
import { badge, empty, loaded } from '../notices.ts';
import type { Key, MadeKey } from '../shapes.ts';
import { table } from '../table.ts';
import { limitsForm, newKeyForm } from './key-forms.ts';

/** The tenant's keys: what each may do and has done; new ones, other limits, and their end. */
export function keysView(app: App): View {
  const made = element('div', {});
  const list = element('div', {});
  const show = (): void => {
    const load = () => call<Key[]>('GET', '/v1/keys');
    refill(
      list,
      loaded(load, (keys) => keyTable(keys, show)),
    );
  };
  const creating = newKeyForm(async (request) => {
    const { name, key } = await call<MadeKey>('POST', '/v1/keys', request);
    const panel = madePanel(name, key);
    refill(made, panel);
    show();
    announce(`The key ${name} was made`);
    panel.querySelector('h2')?.focus();
  });
  show();
  return {
    title: 'API keys',
    body: [
      heading(
        'API keys',
        `Programs act for ${app.me.tenant.name} with a key, each with no more than it needs.`,
      ),
      made,
      list,
      element(
        'section',
        { class: 'card', 'aria-labelledby': 'new-key' },
        element('h2', { id: 'new-key' }, 'New key'),
        creating,
      ),
    ],
  };
}

function madePanel(name: string, key: string): HTMLElement {
  return element(
    'section',
    { class: 'card key-panel', 'aria-labelledby': 'made-key' },
    element('h2', { id: 'made-key', tabindex: '-1' }, `New key: ${name}`),
    element('p', {}, 'This is the only time that it is shown. Keep it somewhere safe.'),
    copyable(key, 'the API key'),
  );
}

const columns = [
  { name: 'Name' },
  { name: 'Scope' },
  { name: 'Namespaces' },
  { name: 'Queries', numeric: true },
  { name: 'Writes', numeric: true },
  { name: 'Per second', numeric: true },
  { name: 'Last used' },
  { name: 'Actions', hiddenName: true },
] as const;

function keyTable(keys: readonly Key[], refresh: () => void): Child {
  if (keys.length === 0) return empty('No keys', element('p', {}, 'Make one below.'));
  const rows = keys.map((key) => keyRow(key, refresh));
  return element(
    'section',
    { class: 'card flush' },
    table({ caption: 'Live keys, newest first', columns, rows, narrow: 'cards' }),
  );
}

function keyRow(key: Key, refresh: () => void): readonly Child[] {
  const limits = element(
    'button',
    { type: 'button', class: 'quiet', 'aria-label': `Limits of ${key.name}` },
    'Limits',
  );
  const revoke = element(
    'button',
    { type: 'button', class: 'quiet', 'aria-label': `Revoke ${key.name}` },
    'Revoke',
  );
  onClick(limits, () => limitsForm(key, refresh));
  onClick(revoke, () => askToRevoke(key, refresh));
  return [
    [key.name, element('code', { class: 'second-line' }, `${key.prefix}…`)],
    badge(key.scope === 'admin' ? 'warning' : 'plain', key.scope),
    key.namespaces.length === 0 ? element('span', { class: 'muted' }, 'all') : key.namespaces.join(', '),
    used(key.used_queries, key.cap_queries),
    used(key.used_writes, key.cap_writes),
    key.rate_per_s === null ? '–' : formatNumber(key.rate_per_s),
    key.last_used_at === null ? element('span', { class: 'muted' }, 'never') : formatTime(key.last_used_at),
    element('div', { class: 'row-actions' }, limits, revoke),
  ];
}

function used(count: number, cap: number | null): string {
  return cap === null ? formatNumber(count) : `${formatNumber(count)} of ${formatNumber(cap)}`;
}

function askToRevoke({ id, name, prefix }: Key, refresh: () => void): void {
  ask({
    title: 'Revoke this key?',
    text: [
      element('strong', {}, name),
      ` (${prefix}…) is refused from then on, everywhere. This cannot be undone.`,
    ],
    action: 'Revoke',
    async act() {
      await call('DELETE', `/v1/keys/${id}`);
      announce(`The key ${name} was revoked`);
      refresh();
    },
  });
}
