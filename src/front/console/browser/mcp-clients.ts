/** How to set up the MCP clients that there are: with a login when they connect, or with a key of their own that may only read. */
export interface SetUp {
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

export const setUps: readonly SetUp[] = [
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
