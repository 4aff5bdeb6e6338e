import { announce } from '../announce.ts';
import { call } from '../api.ts';
import { type App, consoleLink, type View } from '../app.ts';
import { copyable, snippet } from '../copy.ts';
import { type Child, element, onClick } from '../element.ts';
import { formatBytes, formatNumber } from '../format.ts';
import { heading } from '../heading.ts';
import { loaded, whileBusy } from '../notices.ts';
import type { NamespaceList, Usage } from '../shapes.ts';

/** What there is, and where nothing is yet, the first steps. */
export function overviewView(app: App): View {
  const name = app.me.person?.name ?? app.me.tenant.name;
  return {
    title: 'Overview',
    body: [
      heading('Overview', `Welcome, ${name}.`),
      app.firstKey === null ? null : firstKeyPanel(app.firstKey),
      loaded(loadOverview, (overview) => [tiles(overview), body(app, overview)]),
    ],
  };
}

interface Overview {
  readonly list: NamespaceList;
  readonly usage: Usage;
}

async function loadOverview(): Promise<Overview> {
  const [list, usage] = await Promise.all([
    call<NamespaceList>('GET', '/v1/namespaces?limit=100'),
    call<Usage>('GET', '/v1/usage'),
  ]);
  return { list, usage };
}

function firstKeyPanel(key: string): Child {
  return element(
    'section',
    { class: 'card key-panel', 'aria-labelledby': 'first-key' },
    element('h2', { id: 'first-key' }, 'Your first API key'),
    element(
      'p',
      {},
      'It may do everything, and this is the only time that it is shown. Keep it somewhere safe.',
    ),
    copyable(key, 'the API key'),
  );
}

function tiles({ list, usage }: Overview): Child {
  const more = list.next === '' ? '' : '+';
  const shown: readonly (readonly [string, string])[] = [
    ['Namespaces', `${formatNumber(list.namespaces.length)}${more}`],
    ['Stored', formatBytes(usage.stored_bytes)],
    ['Queries this month', formatNumber(usage.queries)],
    ['Writes this month', formatNumber(usage.writes)],
  ];
  return element(
    'dl',
    { class: 'tiles' },
    shown.map(([name, value]) =>
      element('div', { class: 'tile' }, element('dt', {}, name), element('dd', {}, value)),
    ),
  );
}

function body(app: App, { list }: Overview): Child {
  if (list.namespaces.length === 0) return firstSteps(app);
  const items = list.namespaces
    .slice(0, 8)
    .map(({ name, stored_bytes }) =>
      element(
        'li',
        {},
        element('a', { href: consoleLink('search', { namespace: name }) }, name),
        element('span', { class: 'muted' }, formatBytes(stored_bytes)),
      ),
    );
  return [
    element(
      'section',
      { class: 'card', 'aria-labelledby': 'namespaces' },
      element('h2', { id: 'namespaces' }, 'Namespaces'),
      element('ul', { class: 'rows' }, items),
      element('p', { class: 'aside' }, element('a', { href: consoleLink('namespaces') }, 'All namespaces')),
    ),
    curlSection(app),
  ];
}

const sampleNamespace = 'first-steps';
const samples = [
  { id: 'noon', text: 'The tide turns at noon.', meta: { place: 'Dover', level: 6.4, year: 2025 } },
  {
    id: 'dusk',
    text: 'High water in the harbour.\nLow tide is at dusk.',
    meta: { place: 'Leith', level: 5.1, year: 2026 },
  },
  { id: 'storm', text: 'A storm tide floods the quay.', meta: { place: 'Dover', level: 7.2, year: 2026 } },
];

function firstSteps(app: App): Child {
  const problems = element('div', {});
  const button = element('button', { type: 'button', class: 'primary' }, 'Write three example documents');
  onClick(button, () => {
    void whileBusy(button, problems, async () => {
      await call('POST', `/v1/namespaces/${sampleNamespace}/docs`, { docs: samples });
      announce('Three documents were written');
      app.go(consoleLink('search', { namespace: sampleNamespace, q: 'tide' }));
    });
  });
  return [
    element(
      'section',
      { class: 'card', 'aria-labelledby': 'first-steps' },
      element('h2', { id: 'first-steps' }, 'First steps'),
      element('p', {}, 'There are no documents yet. The first write to a name makes a namespace of it.'),
      element(
        'div',
        { class: 'actions' },
        button,
        element('a', { href: consoleLink('keys') }, 'Make an API key'),
      ),
      problems,
    ),
    curlSection(app),
  ];
}

function curlSection({ firstKey }: App): Child {
  const curl = (path: string, body: string) => [
    `curl ${location.origin}/v1/namespaces/notes/${path} \\`,
    '  -H "X-API-Key: $TIDEBASE_API_KEY" \\',
    `  -d '${body}'`,
    '',
  ];
  const lines = [
    `export TIDEBASE_API_KEY=${firstKey ?? 'tb_YOUR_KEY'}`,
    '',
    '# Write a document',
    ...curl('docs', '{"docs": [{"id": "noon", "text": "The tide turns at noon."}]}'),
    '# Find it',
    ...curl('search', '{"q": "tide"}'),
  ];
  return element(
    'section',
    { class: 'card', 'aria-labelledby': 'by-curl' },
    element('h2', { id: 'by-curl' }, 'From a shell'),
    snippet(lines.join('\n').trimEnd(), 'the commands'),
    element(
      'p',
      { class: 'aside' },
      firstKey === null ? null : 'These commands have your key in them. ',
      'Every operation is described in ',
      element('a', { href: '/openapi.json' }, 'openapi.json'),
      '.',
    ),
  );
}
