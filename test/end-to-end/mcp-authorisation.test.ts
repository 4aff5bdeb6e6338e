import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { TenantId } from '../../protocol/ids.ts';
import { systemClock } from '../../src/base/clock.ts';
import { systemRandom } from '../../src/base/random.ts';
import { updateConnections } from '../../src/oauth/connection-record.ts';
import { FsObjectStore } from '../../src/object-store/fs-object-store.ts';
import { ApiClient } from '../support/api-client.ts';
import { McpCaller } from '../support/mcp-calls.ts';
import { connect, sendForm } from '../support/oauth-flow.ts';
import { type ServerProcess, startServer, temporaryFolder } from '../support/server-process.ts';

/** Each tool by each kind of OAuth connection, written down from the service's description. */
const account = { email: 'ada@example.com', password: 'correct horse battery' };

type Needs = 'read' | 'write';
/** What each tool needs, and right arguments for it in a namespace. */
const tools: Readonly<
  Record<string, { readonly needs: Needs; readonly args: (name: string, unique: number) => object }>
> = {
  list_namespaces: { needs: 'read', args: () => ({}) },
  search: { needs: 'read', args: (namespace) => ({ namespace, query: 'tide' }) },
  count: { needs: 'read', args: (namespace) => ({ namespace, query: 'tide' }) },
  get_document: { needs: 'read', args: (namespace) => ({ namespace, id: 'a' }) },
  sql_query: { needs: 'read', args: (namespace) => ({ namespace, sql: 'SHOW COLUMNS' }) },
  warm_namespace: { needs: 'read', args: (namespace) => ({ namespace }) },
  create_namespace: { needs: 'write', args: (namespace, unique) => ({ name: `${namespace}-${unique}` }) },
  update_namespace: { needs: 'write', args: (namespace) => ({ name: namespace }) },
  write_documents: { needs: 'write', args: (namespace) => ({ namespace, docs: [{ id: 'w', text: 'x' }] }) },
  delete_documents: { needs: 'write', args: (namespace) => ({ namespace, ids: ['w'] }) },
  delete_namespace: { needs: 'write', args: (namespace) => ({ name: `${namespace}-gone` }) },
};

describe('each tool by each connection', { concurrency: 1 }, () => {
  const folder = temporaryFolder();
  let server: ServerProcess;
  let api: ApiClient;
  let mcp: McpCaller;
  let tenantId: TenantId;
  let count = 0;

  before(async () => {
    server = await startServer({ folder, env: { TIDEBASE_COMMIT_MS: '5' } });
    const anyone = new ApiClient(server.url);
    const made = await anyone.signup(account.email, 'Ada', account.password);
    tenantId = made.tenant_id as TenantId;
    api = anyone.as(made.key);
    mcp = new McpCaller(server.url, null);
    for (const name of ['notes', 'other']) await api.put(name, [{ id: 'a', text: 'tide', meta: { n: 1 } }]);
  });

  after(async () => {
    api.close();
    assert.deepEqual(await server.stop(), { code: 0, signal: null });
    assert.deepEqual(server.loggedErrors(), []);
  });

  async function outcomeOf(token: string, tool: string, namespace: string): Promise<string> {
    if (tool === 'delete_namespace') await api.put(`${namespace}-gone`, [{ id: 'a', text: 'x' }]);
    const args = tools[tool]?.args(namespace, ++count) ?? {};
    const params = { name: tool, arguments: args };
    const answer = await mcp
      .as(token)
      .send({ body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params } });
    if (answer.status !== 200) return String(answer.status);
    if (answer.body.error !== undefined) return `rpc ${answer.body.error.code}`;
    return answer.body.result.isError === true ? answer.body.result.structuredContent.code : 'done';
  }

  async function row(token: string, namespace: string): Promise<Record<string, string>> {
    const outcomes: Record<string, string> = {};
    for (const tool of Object.keys(tools)) outcomes[tool] = await outcomeOf(token, tool, namespace);
    return outcomes;
  }

  const all = (of: (needs: Needs, tool: string) => string) =>
    Object.fromEntries(Object.entries(tools).map(([tool, { needs }]) => [tool, of(needs, tool)]));

  it('a read-and-write connection does all of them', async () => {
    const { tokens } = await connect(server.url, account, { access: 'write' });

    assert.deepEqual(
      await row(tokens.access_token, 'notes'),
      all(() => 'done'),
    );
  });

  it('a read-only connection reads, and is told that its token may not write', async () => {
    const { tokens } = await connect(server.url, account);

    const outcomes = await row(tokens.access_token, 'notes');

    for (const [tool, { needs }] of Object.entries(tools)) {
      if (needs === 'read') assert.equal(outcomes[tool], 'done', tool);
      else assert.match(outcomes[tool] ?? '', /^(403|rpc -32602)$/, tool);
    }
  });

  it('a connection that is limited to namespaces does nothing in another, there or not', async () => {
    const choice = { access: 'write', reach: 'some', namespaces: 'notes, notes-*' };
    const { tokens } = await connect(server.url, account, choice);

    assert.deepEqual(
      await row(tokens.access_token, 'notes'),
      all(() => 'done'),
    );
    for (const namespace of ['other', 'missing'])
      assert.deepEqual(
        await row(tokens.access_token, namespace),
        all((_, tool) => (tool === 'list_namespaces' ? 'done' : 'forbidden')),
        namespace,
      );
    const listed = await mcp.as(tokens.access_token).call('list_namespaces', {});
    assert.doesNotMatch(listed.structured, /"other"/);
  });

  it('a connection that was revoked, a token that has expired, and what is no access token do nothing', async () => {
    const { clientId, tokens, code } = await connect(server.url, account, { access: 'write' });
    await sendForm(`${server.url}/oauth/revoke`, { token: tokens.refresh_token, client_id: clientId });
    const expired = await connect(server.url, account, { access: 'write' });
    await expire();

    for (const token of [tokens.access_token, tokens.refresh_token, code, expired.tokens.access_token])
      assert.deepEqual(
        await row(token, 'notes'),
        all(() => '401'),
      );
  });

  /** Time passes for all access tokens that nobody has used yet. */
  async function expire(): Promise<void> {
    const objectStore = await FsObjectStore.open(join(folder, 'objects'), systemClock, systemRandom);
    await updateConnections(
      { objectStore, clock: systemClock, random: systemRandom },
      tenantId,
      (connections) =>
        connections.map((each) => ({
          ...each,
          access: each.access.map((token) => ({ ...token, expiresAt: systemClock.now() - 1 })),
        })),
    );
    await objectStore.close();
  }
});
