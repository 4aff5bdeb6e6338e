import { announce } from '../announce.ts';
import { call } from '../api.ts';
import { snippet } from '../copy.ts';
import { type Child, element, onClick, refill } from '../element.ts';
import { loaded, whileBusy } from '../notices.ts';
import type { MadeKey } from '../shapes.ts';

/** How to set up the MCP clients that there are: with a login when they connect, or with a key of their own that may only read. */
interface SetUp {
  readonly client: string;
  /** A step by hand; null where the snippet is all. */
  readonly step: string | null;
  /** `key`: null for a login when it connects. Null where the client takes no keys. */
  readonly snippet: (
    server: string,
    key: string | null,
  ) => { readonly kind: string; readonly text: string } | null;
}

const json = (value: object) => JSON.stringify(value, null, 2);
const headersOf = (key: string | null) =>
  key === null ? {} : { headers: { Authorization: `Bearer ${key}` } };

const setUps: readonly SetUp[] = [
  {
    client: 'Claude Code',
    step: null,
    snippet: (server, key) => ({
      kind: 'Shell',
      text: `claude mcp add --transport http tidebase ${server}${key === null ? '' : ` --header "Authorization: Bearer ${key}"`}`,
    }),
  },
  {
    client: 'Claude',
    step: 'On the web or in Claude Desktop: Settings, Connectors, Add custom connector, with this address. It logs in; it takes no keys.',
    snippet: (server, key) => (key === null ? { kind: 'Address', text: server } : null),
  },
  {
    client: 'ChatGPT',
    step: 'Settings, Apps, Advanced settings: turn on developer mode, then create an app with this address and OAuth. It takes no keys.',
    snippet: (server, key) => (key === null ? { kind: 'Address', text: server } : null),
  },
  {
    client: 'Cursor',
    step: 'In ~/.cursor/mcp.json, or .cursor/mcp.json of a project:',
    snippet: (server, key) => ({
      kind: 'JSON',
      text: json({ mcpServers: { tidebase: { url: server, ...headersOf(key) } } }),
    }),
  },
  {
    client: 'VS Code',
    step: 'In .vscode/mcp.json of a project:',
    snippet: (server, key) => ({
      kind: 'JSON',
      text: json({ servers: { tidebase: { type: 'http', url: server, ...headersOf(key) } } }),
    }),
  },
  {
    client: 'Codex',
    step: null,
    snippet: (server, key) => ({
      kind: 'Shell',
      text:
        key === null
          ? `codex mcp add tidebase --url ${server}\ncodex mcp login tidebase`
          : `export TIDEBASE_API_KEY=${key}\ncodex mcp add tidebase --url ${server} --bearer-token-env-var TIDEBASE_API_KEY`,
    }),
  },
];

export function clientSetUp(): Child {
  // The address that clients must use is the server's own word for it, whatever this page was opened by.
  const load = () => call<{ readonly resource: string }>('GET', '/.well-known/oauth-protected-resource/mcp');
  return element(
    'section',
    { class: 'card', 'aria-labelledby': 'set-up' },
    element('h2', { id: 'set-up', tabindex: '-1' }, 'Set up a client'),
    loaded(load, ({ resource }) => setUpParts(resource)),
  );
}

function setUpParts(server: string): Child {
  const shown = element('div', { class: 'loaded' });
  const problems = element('div', {});
  const withKey = element('button', { type: 'button', class: 'quiet' }, 'Use a new read key instead');
  onClick(withKey, () =>
    whileBusy(withKey, problems, async () => {
      const { key } = await call<MadeKey>('POST', '/v1/keys', { name: 'MCP client', scope: 'read' });
      refill(shown, snippetsOf(server, key));
      refill(
        told,
        'The key is in the lines below, and shown only now. It may read; revoke it under API keys.',
      );
      announce('A read key was made and put into the lines');
    }),
  );
  const told = element(
    'p',
    {},
    'With these lines the client opens a page of this server when it connects, where you log in and say what it may have.',
  );
  refill(shown, snippetsOf(server, null));
  return [told, element('div', { class: 'actions' }, withKey), problems, shown];
}

function snippetsOf(server: string, key: string | null): readonly Child[] {
  return setUps.flatMap(({ client, step, snippet: of }) => {
    const made = of(server, key);
    if (made === null) return [];
    const { kind, text } = made;
    return [
      element(
        'div',
        { class: 'stack' },
        element('h3', {}, client),
        step === null ? null : element('p', { class: 'hint' }, step),
        snippet(text, `Set-up of ${client}`, kind),
      ),
    ];
  });
}
