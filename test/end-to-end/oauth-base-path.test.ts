/**
 * A server whose public address has a path: a proxy takes the path off, and passes `/.well-known/` on as it is, because clients look
 * for metadata there with the path at the end (RFC 8414, RFC 9728).
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import {
  discoverAuthorizationServerMetadata,
  discoverOAuthProtectedResourceMetadata,
} from '@modelcontextprotocol/sdk/client/auth.js';
import { ApiClient } from '../support/api-client.ts';
import { freePorts } from '../support/free-ports.ts';
import { McpCaller } from '../support/mcp-calls.ts';
import { authorizeQuery, connect, newProof, openPage, register, send } from '../support/oauth-flow.ts';
import { type ServerProcess, startServer, temporaryFolder } from '../support/server-process.ts';

const account = { email: 'ada@example.com', password: 'correct horse battery' };

describe('a server below a path', { concurrency: 1 }, () => {
  let server: ServerProcess;
  let port = 0;
  /** The public address. */
  let url = '';
  const proxy = createServer((incoming, outgoing) => {
    const path = incoming.url ?? '';
    const passed = path.startsWith('/.well-known/') ? path : path.startsWith('/tide/') ? path.slice(5) : null;
    if (passed === null) return void outgoing.writeHead(404).end();
    const { method, headers } = incoming;
    const asked = httpRequest({ host: '127.0.0.1', port, path: passed, method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    asked.on('error', () => outgoing.destroy());
    incoming.pipe(asked);
  });

  before(async () => {
    proxy.listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/tide`;
    [port = 0] = await freePorts(1);
    const env = { TIDEBASE_COMMIT_MS: '5', TIDEBASE_BASE_URL: url, TIDEBASE_PORT: String(port) };
    server = await startServer({ folder: temporaryFolder(), env });
    const api = new ApiClient(`http://127.0.0.1:${port}`);
    await api.signup(account.email, 'Ada', account.password);
    api.close();
  });

  after(async () => {
    proxy.closeAllConnections();
    proxy.close();
    assert.deepEqual(await server.stop(), { code: 0, signal: null });
    assert.deepEqual(server.loggedErrors(), []);
  });

  it('is found by a client that knows nothing but the address of /mcp', async () => {
    const refusal = await new McpCaller(url, null).send({ body: {} });
    const [, named = ''] =
      /resource_metadata="([^"]+)"/.exec(String(refusal.headers['www-authenticate'])) ?? [];

    const byChallenge = await discoverOAuthProtectedResourceMetadata(`${url}/mcp`, {
      resourceMetadataUrl: named,
    });
    const byPlace = await discoverOAuthProtectedResourceMetadata(`${url}/mcp`);
    const metadata = await discoverAuthorizationServerMetadata(byPlace.authorization_servers?.[0] ?? '');

    assert.equal(byChallenge.resource, `${url}/mcp`);
    assert.deepEqual(byPlace, byChallenge);
    assert.equal(metadata?.issuer, url);
    assert.equal(metadata?.token_endpoint, `${url}/oauth/token`);
    assert.equal(metadata?.authorization_endpoint, `${url}/oauth/authorize`);
  });

  it('has a page whose forms, files and cookie are below the path, and tokens that work there', async () => {
    const { client_id } = await register(url);
    const { answer } = await openPage(url, authorizeQuery(client_id, newProof()));

    assert.match(String(answer.headers['set-cookie']), /Path=\/tide\/oauth\/authorize;/);
    const addresses = [...answer.text.matchAll(/(?:href|action|src)="([^"]+)"/g)].map(([, at = '']) => at);
    assert.ok(addresses.length >= 5);
    for (const at of addresses) assert.ok(at.startsWith('/tide/'), at);
    const [stylesheet = ''] = addresses.filter((at) => at.endsWith('.css'));
    assert.equal((await send(new URL(stylesheet, url).href)).status, 200);
    const { tokens } = await connect(url, account);
    const listed = await new McpCaller(url, tokens.access_token).call('list_namespaces', {});
    assert.equal(listed.isError, false);
  });
});
