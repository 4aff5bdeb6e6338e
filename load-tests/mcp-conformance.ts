/**
 * `npm run prove -- mcp-conformance`: the conformance suite of the protocol's authors, for a revision of each era, against a server
 * of its own.
 *
 * 1. `server`: the scenarios of `/mcp`. What the suite asks for and we do not offer is listed in `mcp-conformance/`, with the reasons;
 *    the suite ends with an error where anything else fails, and where something of the list passes. It has no way to send a key, so
 *    a proxy adds it.
 * 2. `authorization`: the scenarios of authorization servers, all of which pass: nothing is listed. The suite prints an address for a
 *    person's browser; forms are filled here instead, with and without the resource that a client may name.
 *
 * Its `client` scenarios, `auth/*` among them, bring servers of their own to judge a client: there is nothing of ours in them.
 */
import { once } from 'node:events';
import { createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { resolve } from 'node:path';
import { freePorts } from '../test/support/free-ports.ts';
import { type Account, allow, openPage, register, send, signIn } from '../test/support/oauth-flow.ts';
import { judged } from './judge.ts';
import { type PeerProgram, peerProgram, runProgram, signedUp } from './mcp-peers.ts';
import { startServer, temporaryFolder } from './server.ts';

const revisions = ['2026-07-28', '2025-11-25'] as const;
const authorizationScenarios = ['authorization-server-metadata-endpoint', 'authorization-code-grant'];
const account: Account = { email: 'conformance@example.com', password: 'correct horse battery' };

await judged(async ({ say, tell }) => {
  const suite = await peerProgram('@modelcontextprotocol/conformance', {
    version: '0.2.0-alpha.12',
    path: 'dist/index.js',
  });
  const server = await startServer({ env: { TIDEBASE_COMMIT_MS: '5' } });
  const proxy = await proxyTo(server.url, await signedUp(server.url, account));
  for (const revision of revisions) {
    const baseline = resolve(`load-tests/mcp-conformance/${revision}.yml`);
    const options = ['--url', proxy.url, '--requirements', revision, '--expected-failures', baseline];
    // The suite writes what it saw where it is started.
    const { code, output } = await runProgram(suite, ['server', ...options], { cwd: temporaryFolder() });
    say(output.slice(Math.max(0, output.indexOf('=== SUMMARY ==='))));
    const value = code === 0 ? 'as listed' : 'not as listed';
    tell({ name: `conformance ${revision}`, value, bar: 'as listed', ok: code === 0 });
  }
  for (const revision of revisions)
    for (const resource of [null, `${server.url}/mcp`]) {
      const { code, output } = await authorized(suite, { url: server.url, revision, resource });
      say(output.slice(Math.max(0, output.indexOf('=== SUMMARY ==='))));
      // One that was skipped has not passed, and is no failure to the suite.
      const passed = [...output.matchAll(/^✓ (\S+): [1-9]\d* passed, 0 failed/gm)].map(([, name]) => name);
      const ok = code === 0 && authorizationScenarios.every((name) => passed.includes(name));
      const name = `authorization ${revision}${resource === null ? '' : ', with a resource'}`;
      tell({
        name,
        value: `${passed.length} scenarios pass`,
        bar: String(authorizationScenarios.length),
        ok,
      });
    }
  proxy.close();
  await server.stop();
});

/** Runs the scenarios of authorization servers as a new client, whose person allows what it asks for. */
async function authorized(
  suite: PeerProgram,
  asked: { readonly url: string; readonly revision: string; readonly resource: string | null },
) {
  const { url, revision, resource } = asked;
  const [port = 0] = await freePorts(1);
  const { client_id } = await register(url, { redirect_uris: [`http://127.0.0.1:${port}/callback`] });
  const options = [
    '--url',
    url,
    '--client-id',
    client_id,
    '--port',
    String(port),
    '--spec-version',
    revision,
  ];
  let allowing: Promise<void> = Promise.resolve();
  const ended = await runProgram(
    suite,
    ['authorization', ...options, ...(resource === null ? [] : ['--resource', resource])],
    {
      cwd: temporaryFolder(),
      onLine(line) {
        if (line.startsWith(`${url}/oauth/authorize?`)) allowing = personAllows(url, new URL(line));
      },
    },
  );
  await allowing;
  return ended;
}

async function personAllows(url: string, { search }: URL): Promise<void> {
  const page = await openPage(url, search.slice(1));
  const { sentTo, text } = await allow(page, await signIn(page, account));
  if (sentTo === null) throw new Error(`the page led nowhere: ${text}`);
  await send(sentTo.href);
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
