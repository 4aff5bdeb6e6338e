/**
 * `/mcp` and every tool × credential × target: each cell answers what the table of authorisation says of the tool's operation. Who is
 * nobody is told so by HTTP, and so is a connection whose token may only read, which can ask its person for more; everybody else by the
 * result of the call.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { NewKey, SignupAnswer } from '../../protocol/account.ts';
import { tools } from '../../protocol/mcp-tools.ts';
import { ApiClient } from '../support/api-client.ts';
import { type Credential, expectedOf, rows, type Target } from '../support/authorisation-table.ts';
import { McpCaller } from '../support/mcp-calls.ts';
import { oauthTokens } from '../support/oauth-credentials.ts';
import { connect } from '../support/oauth-flow.ts';
import { type ServerProcess, startServer, temporaryFolder } from '../support/server-process.ts';

const password = 'correct horse battery';
const argumentsOf: Readonly<Record<string, (namespace: string) => object>> = {
  list_namespaces: () => ({}),
  create_namespace: (name) => ({ name }),
  update_namespace: (name) => ({ name }),
  delete_namespace: (name) => ({ name }),
  write_documents: (namespace) => ({ namespace, docs: [{ id: 'a', text: 'tide' }] }),
  delete_documents: (namespace) => ({ namespace, ids: [] }),
  search: (namespace) => ({ namespace }),
  count: (namespace) => ({ namespace }),
  get_document: (namespace) => ({ namespace, id: 'a' }),
  sql_query: (namespace) => ({ namespace, sql: 'SELECT COUNT(*) FROM docs' }),
  warm_namespace: (namespace) => ({ namespace }),
};

describe('who may call which tool', { concurrency: 1 }, () => {
  const folder = temporaryFolder();
  let server: ServerProcess;
  let admin: ApiClient;
  const callers = new Map<Credential, McpCaller>();
  let count = 0;

  before(async () => {
    server = await startServer({ folder, env: { TIDEBASE_COMMIT_MS: '5' } });
    const anyone = new ApiClient(server.url);
    const email = 'who@example.com';
    const made = await anyone.call<SignupAnswer>('POST', '/v1/signup', { email, name: 'W', password });
    admin = anyone.as(made.key);
    const login = await anyone.call<{ token: string }>('POST', '/v1/login', { email, password });
    const key = async (request: object) => admin.call<NewKey>('POST', '/v1/keys', { name: 'k', ...request });
    const revoked = await key({ scope: 'admin' });
    await admin.call('DELETE', `/v1/keys/${revoked.id}`);
    const secrets: readonly (readonly [Credential, string | null])[] = [
      ['none', null],
      ['garbage', 'tb_garbage'],
      ['revoked key', revoked.key],
      ['read key', (await key({ scope: 'read' })).key],
      ['write key', (await key({ scope: 'write' })).key],
      ['admin key', made.key],
      ['admin key limited to namespaces', (await key({ scope: 'admin', namespaces: ['own*'] })).key],
      ['admin key with a cap', (await key({ scope: 'admin', cap_writes: 1_000 })).key],
      ["owner's login", login.token],
    ];
    const account = { email, password };
    const asked = { account, tenantId: made.tenant_id, folder, namespaces: 'own-*' };
    const tokens = Object.entries(await oauthTokens(server.url, asked)) as [Credential, string][];
    for (const [credential, secret] of [...secrets, ...tokens])
      callers.set(credential, new McpCaller(server.url, secret));
  });

  after(async () => {
    admin.close();
    assert.deepEqual(await server.stop(), { code: 0, signal: null });
    assert.deepEqual(server.loggedErrors(), []);
  });

  /** A new namespace for each cell: some calls end it. */
  async function namespaceFor(target: Target, isNew: boolean): Promise<string> {
    const name = `${target.startsWith('outside') ? 'other' : 'own'}-${++count}`;
    if (isNew ? target === 'own' : !target.includes('missing'))
      await admin.call('POST', `/v1/namespaces/${name}/docs`, { docs: [{ id: 'a', text: 'tide' }] });
    return name;
  }

  const targetsOfTool: Readonly<Record<string, readonly Target[]>> = {
    nothing: ['-'],
    namespace: ['own', 'outside', 'outside and missing', 'missing'],
    document: ['own', 'outside', 'missing'],
    'new namespace': ['new', 'outside', 'own'],
  };

  it('/mcp itself lists the tools that a credential may use, to nobody none', async () => {
    const reading = [...tools.values()].filter(({ reads }) => reads).map(({ name }) => name);
    for (const [credential, caller] of callers) {
      const { status, body } = await caller.send({ body: { jsonrpc: '2.0', id: 1, method: 'tools/list' } });
      const isNobody = ['none', 'garbage', 'revoked key', 'OAuth, expired', 'OAuth, revoked'].includes(
        credential,
      );
      assert.equal(status, isNobody ? 401 : 200, credential);
      if (isNobody) continue;
      const names = body.result.tools.map(({ name }: { readonly name: string }) => name);
      const readsOnly = credential === 'read key' || credential === 'OAuth, read-only';
      assert.deepEqual(names, readsOnly ? reading : [...tools.keys()], credential);
    }
  });

  it('a limited connection lists no other namespace', async () => {
    await admin.put('own-listed', [{ id: 'a', text: 'tide' }]);
    await admin.put('other-listed', [{ id: 'a', text: 'tide' }]);
    for (const credential of ['OAuth, limited to namespaces', 'admin key limited to namespaces'] as const) {
      const { structured } = (await callers.get(credential)?.call('list_namespaces', {})) ?? assert.fail();
      const names = JSON.parse(structured).namespaces.map(({ name }: { readonly name: string }) => name);
      assert.ok(names.includes('own-listed') && !names.includes('other-listed'), credential);
    }
  });

  it('a code or a refresh token is no credential', async () => {
    const { code, tokens } = await connect(server.url, { email: 'who@example.com', password });
    for (const token of [code, tokens.refresh_token]) {
      const caller = new McpCaller(server.url, token);
      assert.equal((await caller.send({ body: { jsonrpc: '2.0', id: 1, method: 'ping' } })).status, 401);
    }
  });

  for (const tool of tools.values()) {
    it(`${tool.name}`, async () => {
      const row = rows[tool.operation.name];
      for (const target of targetsOfTool[row.on] ?? []) {
        for (const [credential, caller] of callers) {
          const args = argumentsOf[tool.name]?.(await namespaceFor(target, row.on === 'new namespace')) ?? {};
          const params = { name: tool.name, arguments: args };
          const answer = await caller.send({ body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params } });
          const expected = expectedOf({ row, isBuilt: true, credential, target, isTool: true });
          const { result, error } = answer.body;
          const code = error?.data?.code ?? (result?.isError === true ? result.structuredContent.code : null);
          const shown = `${tool.name} ${credential} ${target}: ${answer.text.slice(0, 300)}`;
          const isNobody = expected.some((outcome) => outcome.startsWith('401'));
          const isTokenShort = credential === 'OAuth, read-only' && !tool.reads;
          assert.equal(answer.status, isNobody ? 401 : isTokenShort ? 403 : 200, shown);
          if (isTokenShort)
            assert.match(
              String(answer.headers['www-authenticate']),
              /^Bearer error="insufficient_scope", resource_metadata="[^"]+", scope="read write"$/,
            );
          const wanted = expected.map((outcome) => outcome.split(' ')[1] ?? null);
          assert.ok(wanted.includes(code), `${shown}; wanted ${expected}`);
        }
      }
    });
  }
});
