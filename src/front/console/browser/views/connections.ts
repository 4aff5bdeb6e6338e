import { announce } from '../announce.ts';
import { call } from '../api.ts';
import type { App, View } from '../app.ts';
import { ask } from '../dialog.ts';
import { type Child, element, onClick, refill } from '../element.ts';
import { formatTime } from '../format.ts';
import { heading } from '../heading.ts';
import { badge, empty, loaded } from '../notices.ts';
import type { Connection } from '../shapes.ts';
import { table } from '../table.ts';
import { clientSetUp } from './client-set-up.ts';

/** What MCP clients were let have: when each was used last, its end, and how to set up another one. */
export function connectionsView(app: App): View {
  const list = element('div', {});
  const show = (): void => {
    const load = () => call<Connection[]>('GET', '/v1/connections');
    refill(
      list,
      loaded(load, (connections) => connectionTable(connections, show)),
    );
  };
  show();
  return {
    title: 'Connections',
    body: [
      heading(
        'Connections',
        `Agents and other MCP clients that people have let use the documents of ${app.me.tenant.name}.`,
      ),
      list,
      clientSetUp(),
    ],
  };
}

const columns = [
  { name: 'Client' },
  { name: 'Access' },
  { name: 'Since' },
  { name: 'Last used' },
  { name: 'Actions', hiddenName: true },
] as const;

function connectionTable(connections: readonly Connection[], refresh: () => void): Child {
  if (connections.length === 0)
    return empty('No connections', element('p', {}, 'Set up a client below: it asks you when it connects.'));
  const rows = connections.map((connection) => connectionRow(connection, refresh));
  return element(
    'section',
    { class: 'card flush' },
    table({ caption: 'Connections, newest first', columns, rows, narrow: 'cards' }),
  );
}

function connectionRow(connection: Connection, refresh: () => void): readonly Child[] {
  const { client, created_at, last_used_at } = connection;
  const end = element(
    'button',
    { type: 'button', class: 'quiet', 'aria-label': `End the connection of ${client.name}` },
    'End',
  );
  onClick(end, () => askToEnd(connection, refresh));
  return [
    clientCell(connection),
    accessCell(connection),
    formatTime(created_at),
    last_used_at === null ? element('span', { class: 'muted' }, 'never') : formatTime(last_used_at),
    element('div', { class: 'row-actions' }, end),
  ];
}

/** Anybody may call a client anything: where its document lies is its own, and so is who allowed it. */
function clientCell({ client: { id, name }, person }: Connection): Child {
  const place = id.startsWith('https://') ? note(`described at ${new URL(id).host}`) : null;
  return element('div', {}, name, place, note(`allowed by ${person.email}`));
}

function accessCell({ scope, namespaces }: Connection): Child {
  const isWriting = scope === 'write';
  const names = namespaces.length === 0 ? 'all namespaces' : namespaces.join(', ');
  return element(
    'div',
    {},
    badge(isWriting ? 'warning' : 'plain', isWriting ? 'read and write' : 'read'),
    note(names),
  );
}

function note(text: string): HTMLElement {
  return element('div', { class: 'cell-note' }, text);
}

function askToEnd({ id, client }: Connection, refresh: () => void): void {
  ask({
    title: 'End this connection?',
    text: [
      element('strong', {}, client.name),
      ' is refused from then on. It can ask to connect again, and you can say no.',
    ],
    action: 'End it',
    async act() {
      await call('DELETE', `/v1/connections/${id}`);
      announce(`The connection of ${client.name} was ended`);
      refresh();
    },
  });
}
