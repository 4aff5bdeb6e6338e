import { announce } from '../announce.ts';
import { call, namespacePath } from '../api.ts';
import { type App, consoleLink, type View } from '../app.ts';
import { ask } from '../dialog.ts';
import { type Child, element, onClick, refill } from '../element.ts';
import { formatBytes, formatNumber, formatTime, plural } from '../format.ts';
import { heading } from '../heading.ts';
import { badge, empty, loaded, whileBusy } from '../notices.ts';
import type { Namespace, NamespaceList } from '../shapes.ts';
import { type Column, table, tableRows } from '../table.ts';
import { branchForm } from './branch-form.ts';

const pageSize = 50;
const columns: readonly Column[] = [
  { name: 'Name' },
  { name: 'Stored', numeric: true },
  { name: 'Documents written', numeric: true },
  { name: 'Made' },
  { name: 'Actions', hiddenName: true },
];

/** All names with their sizes, a page at a time. */
export function namespacesView(app: App): View {
  return {
    title: 'Namespaces',
    body: [
      heading(
        'Namespaces',
        'A namespace holds the documents of one user, task or project. A first write makes it.',
      ),
      loaded(
        () => page(''),
        (list) => (list.namespaces.length === 0 ? none() : all(app, list)),
      ),
    ],
  };
}

function page(after: string): Promise<NamespaceList> {
  return call('GET', `/v1/namespaces?${new URLSearchParams({ limit: String(pageSize), after })}`);
}

function none(): Child {
  return empty(
    'No namespaces yet',
    element(
      'p',
      {},
      'Write a document, and there is one. ',
      element('a', { href: '/console#/overview' }, 'First steps'),
    ),
  );
}

function all(app: App, first: NamespaceList): Child {
  const shown = table({
    caption: 'Namespaces',
    columns,
    narrow: 'cards',
    rows: first.namespaces.map((one) => row(app, one)),
  });
  const body = shown.querySelector('tbody');
  const problems = element('div', {});
  const more = element('button', { type: 'button', class: 'quiet', hidden: first.next === '' }, 'Show more');
  let { next } = first;
  onClick(more, () => {
    void whileBusy(more, problems, async () => {
      const list = await page(next);
      next = list.next;
      more.hidden = next === '';
      const added = tableRows(
        columns,
        list.namespaces.map((one) => row(app, one)),
      );
      body?.append(...added);
      announce(`${plural(added.length, 'more namespace')} below`);
      added[0]?.querySelector('a')?.focus();
    });
  });
  return element(
    'section',
    { class: 'card flush' },
    shown,
    element('div', { class: 'after-table' }, more, problems),
  );
}

function row(app: App, namespace: Namespace): readonly Child[] {
  const { name, stored_bytes, docs_written, created_at, linked } = namespace;
  const remove = element(
    'button',
    { type: 'button', class: 'quiet', 'aria-label': `Delete ${name}` },
    'Delete',
  );
  onClick(remove, () => askToDelete(app, namespace));
  const branch = element(
    'button',
    { type: 'button', class: 'quiet', 'aria-label': `Branch or link of ${name}` },
    'Branch',
  );
  onClick(branch, () => branchForm(app, namespace));
  return [
    [linked?.gone === true ? name : searched(name), ' ', kinds(namespace), origin(namespace)],
    formatBytes(stored_bytes),
    formatNumber(docs_written),
    formatTime(created_at),
    element(
      'div',
      { class: 'row-actions' },
      // SQL over a link is refused.
      linked === undefined
        ? element(
            'a',
            { href: consoleLink('sql', { namespace: name }), 'aria-label': `SQL over ${name}` },
            'SQL',
          )
        : null,
      linked?.gone === true ? null : branch,
      remove,
    ),
  ];
}

function searched(name: string): Child {
  return element('a', { href: consoleLink('search', { namespace: name }) }, name);
}

function kinds({ vector, embed, linked, branched }: Namespace): Child {
  return [
    vector === undefined ? null : badge('plain', `${vector.dims} dims`),
    embed === undefined ? null : badge('plain', `meaning: ${embed.provider}`),
    linked === undefined
      ? null
      : linked.gone === true
        ? badge('danger', 'dead link')
        : badge('plain', 'link'),
    branched === undefined ? null : badge('plain', 'branch'),
  ];
}

/** What a link reads, and a branch began as. */
function origin({ linked, branched }: Namespace): Child {
  if (linked?.gone === true)
    return element('span', { class: 'second-line' }, `its source, ${linked.source}, is gone`);
  if (linked !== undefined) {
    const at = linked.follows ? ', whatever is written there' : ` at version ${formatNumber(linked.version)}`;
    return element('span', { class: 'second-line' }, 'reads ', searched(linked.source), at);
  }
  if (branched === undefined) return null;
  const { source, version } = branched;
  return element('span', { class: 'second-line' }, `of ${source} at version ${formatNumber(version)}`);
}

function askToDelete(app: App, { name, linked, branched }: Namespace): void {
  const isLink = linked !== undefined;
  const ofLink = linked?.gone === true ? 'is gone.' : 'keeps its documents.';
  const gone = 'Its documents are gone for good, for everybody who uses it, and so are links to it.';
  ask({
    title: isLink ? 'Delete this link?' : 'Delete this namespace?',
    text: isLink
      ? `Its source, ${linked.source}, ${ofLink}`
      : branched === undefined
        ? `${gone} Branches of it stay.`
        : `${gone} What it began as, ${branched.source}, stays.`,
    action: 'Delete',
    typed: name,
    async act() {
      await call('DELETE', namespacePath(name));
      announce(`${name} was deleted`);
      await app.refresh();
    },
  });
}

/** An input that offers the names there are, and takes any. */
export function offerNamespaces(control: ParentNode): void {
  const input = control.querySelector('input');
  if (input === null) return;
  const list = element('datalist', { id: `${input.id}-names` });
  input.setAttribute('list', list.id);
  input.after(list);
  call<NamespaceList>('GET', '/v1/namespaces?limit=1000').then(
    ({ namespaces }) => {
      refill(
        list,
        namespaces.map(({ name }) => element('option', { value: name })),
      );
      if (input.value === '') input.value = namespaces[0]?.name ?? '';
    },
    // Then nothing is offered; who types a name is answered as always.
    () => {},
  );
}
