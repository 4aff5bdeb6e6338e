/**
 * `npm run prove -- mcp-inspector`: the command line of the protocol's Inspector lists all tools of a server of its own over streamable
 * HTTP with a key, and calls each of them, in both eras. It ends with another code than 0 where a call is an error, and with 6 where a
 * tool's schema is one that clients refuse.
 */
import { tools } from '../protocol/mcp-tools.ts';
import { rightCalls } from '../test/support/tool-calls.ts';
import { judged } from './judge.ts';
import { type PeerProgram, peerProgram, runProgram, signedUp } from './mcp-peers.ts';
import { startServer, temporaryFolder } from './server.ts';

const eras = ['legacy', 'modern'] as const;
const account = { email: 'inspector@example.com', password: 'correct horse battery' };

await judged(async ({ say, tell }) => {
  const inspector = await peerProgram('@modelcontextprotocol/inspector', {
    version: '2.12.0',
    path: 'clients/launcher/build/index.js',
  });
  const server = await startServer({ env: { TIDEBASE_COMMIT_MS: '5' } });
  const key = await signedUp(server.url, account);
  // It keeps settings in the person's home.
  const home = temporaryFolder();
  for (const era of eras) {
    const ask = (args: readonly string[]) => inspected(inspector, { url: server.url, key, era, home, args });
    const list = await ask(['--method', 'tools/list', '--strict']);
    const listed = new Set(namesOf(list.result));
    if (list.problem !== null) say(list.problem);
    const called = new Map<string, string>();
    for (const [name, args] of rightCalls) {
      const call = await ask([
        '--method',
        'tools/call',
        '--tool-name',
        name,
        '--tool-args-json',
        JSON.stringify(args),
      ]);
      const isRight = call.problem === null && call.result?.structuredContent !== undefined;
      if (!isRight) say(`${name} ${JSON.stringify(args)}: ${call.problem ?? 'no structuredContent'}`);
      called.set(name, isRight && called.get(name) !== 'wrong' ? 'right' : 'wrong');
    }
    say(`\n${row(`tool, in the ${era} era`, 'listed', 'called', 'ok')}`);
    const isRight = (name: string) => listed.has(name) && called.get(name) === 'right';
    for (const name of tools.keys())
      say(row(name, listed.has(name) ? 'yes' : 'no', called.get(name) ?? 'no', isRight(name) ? 'ok' : 'NO'));
    const right = [...tools.keys()].filter(isRight).length;
    tell(
      {
        name: `tools that are listed and called, ${era}`,
        value: String(right),
        bar: String(tools.size),
        ok: right === tools.size && listed.size === tools.size,
      },
      {
        name: `tools' schemas held to be portable, ${era}`,
        value: list.problem === null ? 'all' : 'not all',
        bar: 'all',
        ok: list.problem === null,
      },
    );
  }
  await server.stop();
});

function row(...cells: readonly string[]): string {
  const padded = cells.map((cell, at) => cell.padEnd(at === 0 ? 30 : 8));
  return padded.join('').trimEnd();
}

interface ToolResult {
  readonly tools?: readonly { readonly name: string }[];
  readonly structuredContent?: unknown;
}

function namesOf(result: ToolResult | null): readonly string[] {
  return (result?.tools ?? []).map(({ name }) => name);
}

/** Runs it once. `problem`: what it says where it ended with a code that is not 0. */
async function inspected(
  inspector: PeerProgram,
  asked: {
    readonly url: string;
    readonly key: string;
    readonly era: string;
    readonly home: string;
    readonly args: readonly string[];
  },
): Promise<{ readonly result: ToolResult | null; readonly problem: string | null }> {
  const { url, key, era, home, args } = asked;
  const always = ['--cli', `${url}/mcp`, '--protocol-era', era, '--format', 'json', '--stored-auth-only'];
  const { code, output, errors } = await runProgram(
    inspector,
    [...always, '--header', `Authorization: Bearer ${key}`, ...args],
    { cwd: home, env: { HOME: home } },
  );
  if (code !== 0) return { result: null, problem: `it ended with ${code}: ${errors.trim()}` };
  return { result: (JSON.parse(output) as { readonly result: ToolResult }).result, problem: null };
}
