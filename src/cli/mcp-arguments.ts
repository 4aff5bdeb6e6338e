import { parseArgs } from 'node:util';
import { keyOf, nonEmpty, parsedAsUsage, serverOptions, urlDefault, urlOf } from './target-arguments.ts';

/** What `tidebase mcp` was asked to do, from its arguments and the environment. */
export interface McpArguments {
  /** The server's `/mcp`, with what narrows the connection. */
  readonly url: string;
  readonly key: string;
}

export const mcpUsageLine = 'tidebase mcp [--url URL] [--key KEY] [--read-only] [--namespaces A,B*]\n';
export const mcpUsage = `${mcpUsageLine}
Serves the tools of a Tidebase server to an MCP client that starts programs: messages on standard input and output.
  --url         the server (or TIDEBASE_URL; default http://127.0.0.1:8080)
  --key         an API key (or TIDEBASE_API_KEY, which other users of the machine cannot see)
  --read-only   only the tools that read
  --namespaces  only these namespaces: names, or the beginning of names and a star
`;

/** Reads the command's arguments; null where help was asked for. Throws UsageError. */
export function parseMcpArguments(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): McpArguments | null {
  const values = parsed(args);
  if (values.help === true) return null;
  const narrowing = new URLSearchParams();
  if (values['read-only'] === true) narrowing.set('read_only', '1');
  if (values.namespaces !== undefined) narrowing.set('namespaces', values.namespaces);
  const server = urlOf(values.url ?? nonEmpty(env.TIDEBASE_URL) ?? urlDefault);
  const query = narrowing.size === 0 ? '' : `?${narrowing}`;
  return { url: `${server}/mcp${query}`, key: keyOf(values.key ?? nonEmpty(env.TIDEBASE_API_KEY)) };
}

function parsed(args: readonly string[]) {
  return parsedAsUsage(() => {
    const { values } = parseArgs({
      args: [...args],
      options: {
        ...serverOptions,
        'read-only': { type: 'boolean' },
        namespaces: { type: 'string' },
      },
    });
    return values;
  });
}
