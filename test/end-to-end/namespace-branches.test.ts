import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { SignupAnswer, Usage } from '../../protocol/account.ts';
import type { Namespace } from '../../protocol/namespace.ts';
import { ApiClient } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { McpCaller } from '../support/mcp-calls.ts';
import { restart, type ServerProcess, startServer, temporaryFolder } from '../support/server-process.ts';

const conflict = { status: 409, code: 'conflict' };
const missing = { status: 404, code: 'not_found' };
const invalid = (field: string) => ({ status: 422, code: 'invalid', fields: [field] });

describe('branches of namespaces, and links that stay at a version', { concurrency: 1 }, () => {
  let server: ServerProcess;
  let api: ApiClient;

  before(async () => {
    server = await startServer({
      folder: temporaryFolder(),
      env: { TIDEBASE_COMMIT_MS: '5', TIDEBASE_ACTOR_THREADS: '1' },
    });
    const anyone = new ApiClient(server.url);
    const { key } = await anyone.call<SignupAnswer>('POST', '/v1/signup', {
      email: 'branches@example.com',
      name: 'B',
      password: 'correct horse',
    });
    api = anyone.as(key);
    const rows = Array.from({ length: 3_000 }, (_, i) => `${i},tide ${i} turns at ${i % 7}`);
    await api.call('POST', '/v1/namespaces/source/import?id=id&text=text', `id,text\n${rows.join('\n')}\n`);
    await api.put('source', [{ id: 'fresh', text: 'a tide in memory', meta: { id: 9 } }]);
  });

  after(async () => {
    api.close();
    await server.stop();
  });

  const make = (kind: 'branch' | 'link', name: string, body: object): Promise<Namespace> =>
    api.call('POST', `/v1/namespaces/${name}/${kind}`, body);

  it('begin as their source is, and are written to, searched, filtered and asked in SQL by themselves', async () => {
    const { stored_bytes } = await api.getNamespace('source');
    const made = await make('branch', 'branch', { source: 'source' });

    assert.deepEqual(made.branched, { source: 'source', version: 2 });
    // What was near for its source is near for it.
    await api.count('source', { q: 'turns at 3' });
    const first = await api.count('branch', { q: 'turns at 3' });
    assert.deepEqual([first.store_gets, first.temperature === 'cold'], [0, false]);
    assert.deepEqual(await api.getNamespace('branch'), made);
    assert.ok(made.stored_bytes < stored_bytes / 4, `${made.stored_bytes} of ${stored_bytes}`);
    assert.equal(made.docs_written, (await api.getNamespace('source')).docs_written);
    assert.equal((await api.count('branch', { q: 'tide' })).count, 3_001);
    const written = await api.put('branch', [{ id: '5', text: 'ebb' }], { deletes: ['6'] });
    assert.deepEqual([written.version, written.deleted], [3, 1]);
    assert.equal((await api.count('branch', { q: 'tide' })).count, 2_999);
    assert.equal((await api.count('source', { q: 'tide' })).count, 3_001);
    assert.equal((await api.count('branch', { filter: { text: 'tide 8 turns at 1' } })).count, 1);
    const sql = await api.call<{ rows: unknown[] }>('POST', '/v1/namespaces/branch/sql', {
      sql: "SELECT COUNT(*) FROM docs WHERE contains(text, 'tide')",
    });
    assert.deepEqual(sql.rows, [[2_999]]);
    const mcp = new McpCaller(server.url, api.key);
    assert.match((await mcp.call('count', { namespace: 'branch', query: 'ebb' })).structured, /"count":1/);
    const patched = await mcp.call('write_documents', {
      namespace: 'branch',
      docs: [{ id: 'agent', text: 'written by a tool' }],
    });
    assert.match(patched.structured, /"version":4/);
    assert.match(
      (await mcp.call('list_namespaces', {})).structured,
      /"branched":\{"source":"source","version":2\}/,
    );
  });

  it('stay at a version, whatever becomes of the source, until the source is gone', async () => {
    const pinned = await make('link', 'pinned', { source: 'source', version: 2 });
    assert.deepEqual(pinned.linked, { source: 'source', version: 2, follows: false });
    await api.put('source', [{ id: 'later', text: 'a later tide' }], { deletes: ['1', '2'] });
    const counted = await api.count('pinned', { q: 'tide' });
    assert.deepEqual([counted.count, counted.version, counted.namespace], [3_001, 2, 'pinned']);
    await api.refused(conflict, 'POST', '/v1/namespaces/pinned/docs', { body: { deletes: ['1'] } });
    await api.refused(invalid('filter'), 'POST', '/v1/namespaces/pinned/count', {
      body: { filter: { a: 1 } },
    });
    await api.refused(invalid('sql'), 'POST', '/v1/namespaces/pinned/sql', { body: { sql: 'SHOW COLUMNS' } });
    await api.refused(conflict, 'POST', '/v1/namespaces/pinned/import?id=id', {
      body: 'id\na\n',
      headers: { 'content-type': 'application/octet-stream' },
    });
    await api.refused(invalid('version'), 'POST', '/v1/namespaces/other/link', {
      body: { source: 'source', version: 1 },
    });
    await api.refused(invalid('version'), 'POST', '/v1/namespaces/other/branch', {
      body: { source: 'source', version: 99 },
    });
    await make('branch', 'at-2', { source: 'source', version: 2 });
    assert.equal((await api.count('at-2', { q: 'tide' })).count, 3_001);
  });

  it('refuse what can be no branch', async () => {
    const at = (name: string) => `/v1/namespaces/${name}/branch`;
    await api.refused(invalid('source'), 'POST', at('self'), { body: { source: 'self' } });
    await api.refused(missing, 'POST', at('other'), { body: { source: 'none' } });
    await api.refused(conflict, 'POST', at('branch'), { body: { source: 'source' } });
    await api.refused(invalid('source'), 'POST', at('other'), { body: { source: '' } });
    await api.refused(invalid('version'), 'POST', at('other'), { body: { source: 'source', version: '2' } });
    const limited = api.as((await api.createKey({ name: 'k', scope: 'write', namespaces: ['my*'] })).key);
    const forbidden = { status: 403, code: 'forbidden' };
    await limited.refused(forbidden, 'POST', at('mine'), { body: { source: 'source' } });
    await limited.refused(forbidden, 'POST', at('other'), { body: { source: 'mine' } });
    await api.refused(missing, 'GET', '/v1/namespaces/other');
  });

  it('outlive the process and their source, whose bytes count for as long as they are held', async () => {
    const usage = async () => (await api.call<Usage>('GET', '/v1/usage')).stored_bytes;
    const before = await usage();
    await server.kill();
    server = await restart(server);
    api.close();
    api = new ApiClient(server.url).as(api.key);
    assert.equal((await api.count('pinned', { q: 'tide' })).count, 3_001);

    await api.deleteNamespace('source');

    await api.refused(missing, 'POST', '/v1/namespaces/pinned/count', { body: {} });
    assert.equal((await api.count('at-2', { q: 'tide' })).count, 3_001);
    assert.equal((await api.count('branch', { q: 'tide' })).count, 2_999);
    // The last word on it is told before the deletion is answered, mostly.
    await eventually(async () => (await usage()) > before / 2, 'what is held counts');
    for (const name of ['pinned', 'branch', 'at-2']) await api.deleteNamespace(name);
    await eventually(async () => (await usage()) === 0, 'nothing is stored');
  });
});
