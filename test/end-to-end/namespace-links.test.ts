import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { SignupAnswer } from '../../protocol/account.ts';
import type { Namespace } from '../../protocol/namespace.ts';
import { ApiClient } from '../support/api-client.ts';
import { McpCaller } from '../support/mcp-calls.ts';
import { restart, type ServerProcess, startServer, temporaryFolder } from '../support/server-process.ts';

const conflict = { status: 409, code: 'conflict' };
const missing = { status: 404, code: 'not_found' };
const forbidden = { status: 403, code: 'forbidden' };
const invalid = (field: string) => ({ status: 422, code: 'invalid', fields: [field] });

describe('links to namespaces', { concurrency: 1 }, () => {
  let server: ServerProcess;
  let api: ApiClient;

  before(async () => {
    server = await startServer({
      folder: temporaryFolder(),
      env: { TIDEBASE_COMMIT_MS: '5', TIDEBASE_ACTOR_THREADS: '2' },
    });
    const anyone = new ApiClient(server.url);
    const { key } = await anyone.call<SignupAnswer>('POST', '/v1/signup', {
      email: 'links@example.com',
      name: 'L',
      password: 'correct horse',
    });
    api = anyone.as(key);
    await api.put('source', [
      { id: 'noon', text: 'The tide turns at noon.', meta: { year: 2025 }, vector: [1, 0] },
      { id: 'dusk', text: 'Low tide is at dusk.', meta: { year: 2026 }, vector: [0, 1] },
    ]);
  });

  after(async () => {
    api.close();
    await server.stop();
  });

  const link = (name: string, body: object): Promise<Namespace> =>
    api.call('POST', `/v1/namespaces/${name}/link`, body);

  it('is a namespace that says so, with the vectors of its source and nothing of its own', async () => {
    const made = await link('alias', { source: 'source' });

    const { created_at, ...rest } = made;
    assert.deepEqual(rest, {
      name: 'alias',
      vector: { dims: 2, metric: 'cosine' },
      docs_written: 0,
      bytes_written: 0,
      stored_bytes: 0,
      linked: { source: 'source', version: 1, follows: true },
    });
    assert.deepEqual(await api.getNamespace('alias'), made);
    const { namespaces } = await api.listNamespaces();
    assert.deepEqual(
      namespaces.map(({ name, linked }) => [name, linked?.source]),
      [
        ['alias', 'source'],
        ['source', undefined],
      ],
    );
    assert.equal(created_at, namespaces[0]?.created_at);
  });

  it('answers every read as its source does, under its own name', async () => {
    const without = ({
      took_ms,
      cpu_ms,
      temperature,
      ...rest
    }: Record<string, unknown>): Record<string, unknown> => rest;
    for (const [operation, body] of [
      ['search', { q: 'tide' }],
      ['search', { q: 't[iu]', regex: true, include: ['text', 'matches'] }],
      ['search', { vector: [1, 0.1] }],
      ['count', { q: 'tide' }],
      ['count', {}],
      ['count', { q: 'tide', exact: false }],
    ] as const) {
      const asked = (name: string): Promise<Record<string, unknown>> =>
        api.call('POST', `/v1/namespaces/${name}/${operation}`, body);
      const ofLink = without(await asked('alias'));
      assert.notEqual(ofLink.docs, 0);
      assert.deepEqual(ofLink, { ...without(await asked('source')), namespace: 'alias' });
    }
    const byGet = await api.call<Record<string, unknown>>('GET', '/v1/namespaces/alias/search?q=dusk');
    assert.deepEqual([byGet.namespace, byGet.version, byGet.docs], ['alias', 1, 2]);
    const document = await api.get('alias', 'noon');
    assert.equal(document.text, 'The tide turns at noon.');
    assert.equal((await api.get('alias', 'noon', '?lines=1')).id, 'noon');
    await api.refused(missing, 'GET', '/v1/namespaces/alias/docs/none');
    const warmed = await api.call<Record<string, unknown>>('POST', '/v1/namespaces/alias/warm', {
      queries: ['tide'],
    });
    assert.equal(warmed.namespace, 'alias');
  });

  it('pages by cursors that are its own', async () => {
    const first = await api.search('alias', { q: 'tide', limit: 1 });
    const second = await api.search('alias', { q: 'tide', limit: 1, cursor: first.next });

    assert.deepEqual([first.hits[0]?.id, second.hits[0]?.id], ['dusk', 'noon']);
    await api.refused(invalid('cursor'), 'POST', '/v1/namespaces/source/search', {
      body: { q: 'tide', limit: 1, cursor: first.next },
    });
  });

  it('sees each acknowledged write of its source', async () => {
    for (let i = 0; i < 5; i++) {
      const { version } = await api.put('source', [
        { id: 'latest', text: `the tide of ${i}`, vector: [1, 1] },
      ]);
      const found = await api.search('alias', { q: 'the tide of', min_version: version });
      assert.deepEqual([found.version, found.hits[0]?.line], [version, `the tide of ${i}`]);
    }
    assert.equal((await api.getNamespace('alias')).linked?.version, 6);
  });

  it('refuses writes, filters and SQL', async () => {
    const at = '/v1/namespaces/alias';
    await api.refused(conflict, 'POST', `${at}/docs`, { body: { docs: [{ id: 'a', text: 'b' }] } });
    await api.refused(conflict, 'POST', `${at}/docs`, { body: { deletes: ['noon'] } });
    await api.refused(conflict, 'PATCH', `${at}/docs`, { body: { docs: [{ id: 'noon', meta: { a: 1 } }] } });
    await api.refused(conflict, 'POST', `${at}/delete`, { body: { ids: ['noon'] } });
    await api.refused(conflict, 'POST', `${at}/import?id=id`, {
      body: 'id\na\n',
      headers: { 'content-type': 'application/octet-stream' },
    });
    await api.refused(conflict, 'PATCH', at, { body: { embed: null } });
    await api.refused(invalid('filter'), 'POST', `${at}/search`, { body: { filter: { year: 2025 } } });
    await api.refused(invalid('filter'), 'POST', `${at}/search`, { body: { filter: {} } });
    await api.refused(invalid('filter'), 'POST', `${at}/count`, { body: { filter: { year: 2025 } } });
    const filter = encodeURIComponent('{"year":2025}');
    await api.refused(invalid('filter'), 'GET', `${at}/count?filter=${filter}`);
    await api.refused(invalid('sql'), 'POST', `${at}/sql`, { body: { sql: 'SELECT COUNT(*) FROM docs' } });
    assert.equal((await api.count('source')).count, 3);
  });

  it('refuses what can be no link', async () => {
    const make = (name: string) => `/v1/namespaces/${name}/link`;
    await api.refused(invalid('source'), 'POST', make('self'), { body: { source: 'self' } });
    await api.refused(invalid('source'), 'POST', make('source'), { body: { source: 'source' } });
    await api.refused(missing, 'POST', make('other'), { body: { source: 'none' } });
    await api.refused(conflict, 'POST', make('alias'), { body: { source: 'source' } });
    await api.refused(conflict, 'POST', make('source'), { body: { source: 'alias' } });
    await api.refused(invalid('source'), 'POST', make('other'), { body: { source: 'No Name' } });
    await api.refused(invalid('source'), 'POST', make('other'), { body: {} });
    await api.refused(invalid('version'), 'POST', make('other'), { body: { source: 'source', version: -1 } });
    await api.refused(invalid('follow'), 'POST', make('other'), { body: { source: 'source', follow: 1 } });
    await api.refused({ status: 400, code: 'bad_request' }, 'POST', make('other'), { body: '{' });
    await api.refused(conflict, 'POST', '/v1/namespaces', { body: { name: 'alias' } });
    await api.refused(missing, 'GET', '/v1/namespaces/other');
  });

  it('of a link leads to the source of that one', async () => {
    const made = await link('alias-2', { source: 'alias' });

    assert.equal(made.linked?.source, 'source');
    await api.deleteNamespace('alias');
    assert.equal((await api.count('alias-2')).count, 3);
    assert.equal((await api.count('source')).count, 3);
    await api.refused(missing, 'POST', '/v1/namespaces/alias/count', { body: {} });
    await link('alias', { source: 'source' });
  });

  it('is made by who may use its name and its source, and read by who may use its name', async () => {
    const keyOf = async (namespaces: readonly string[], scope = 'write') =>
      api.as((await api.createKey({ name: 'k', scope, namespaces })).key);
    const make = (name: string) => `/v1/namespaces/${name}/link`;
    const both = await keyOf(['pub*', 'source']);
    await both.call('POST', make('pub-link'), { source: 'source' });
    const reader = await keyOf(['pub*'], 'read');
    assert.equal((await reader.count('pub-link')).count, 3);
    assert.equal((await reader.listNamespaces()).namespaces.length, 1);
    await reader.refused(forbidden, 'POST', '/v1/namespaces/source/count', { body: {} });
    await reader.refused(forbidden, 'POST', make('pub-2'), { body: { source: 'pub-link' } });
    const linker = await keyOf(['pub*']);
    await linker.refused(forbidden, 'POST', make('pub-2'), { body: { source: 'source' } });
    await linker.refused(forbidden, 'POST', make('pub-2'), { body: { source: 'none' } });
    await linker.refused(forbidden, 'POST', make('other'), { body: { source: 'pub-link' } });
    await linker.call('POST', make('pub-2'), { source: 'pub-link' });
    assert.equal((await reader.count('pub-2')).count, 3);
    const ofSource = await keyOf(['source']);
    await ofSource.refused(forbidden, 'POST', '/v1/namespaces/pub-link/count', { body: {} });
  });

  it('is done once with an Idempotency-Key', async () => {
    const headers = { 'idempotency-key': 'once' };
    const make = (name: string) =>
      api.request('POST', `/v1/namespaces/${name}/link`, { body: { source: 'source' }, headers });
    const [first, again] = [await make('once'), await make('once')];

    assert.deepEqual([first.status, again.status], [201, 201]);
    assert.equal(first.body.toString(), again.body.toString());
    assert.equal(again.headers['idempotent-replayed'], 'true');
    assert.equal((await make('twice')).status, 422);
  });

  it('is read by MCP tools, and is in their list', async () => {
    const mcp = new McpCaller(server.url, api.key);
    const found = await mcp.call('search', { namespace: 'alias', query: 'dusk' });
    assert.equal(found.isError, false, found.structured);
    assert.match(found.structured, /"namespace":"alias"/);
    assert.match((await mcp.call('get_document', { namespace: 'alias', id: 'noon' })).structured, /at noon/);
    assert.match((await mcp.call('count', { namespace: 'alias' })).structured, /"count":3/);
    assert.match((await mcp.call('warm_namespace', { namespace: 'alias' })).structured, /"alias"/);
    assert.match((await mcp.call('list_namespaces', {})).structured, /"linked":\{"source":"source"/);
    for (const [tool, args, code] of [
      ['sql_query', { namespace: 'alias', sql: 'SHOW COLUMNS' }, 'invalid'],
      ['search', { namespace: 'alias', filter: { year: 1 } }, 'invalid'],
      ['write_documents', { namespace: 'alias', docs: [{ id: 'a', text: 'b' }] }, 'conflict'],
      ['delete_documents', { namespace: 'alias', ids: ['a'] }, 'conflict'],
      ['update_namespace', { name: 'alias' }, 'conflict'],
    ] as const) {
      const { isError, structured } = await mcp.call(tool, args);
      assert.ok(isError && structured.includes(`"code":"${code}"`), structured);
    }
    assert.equal((await mcp.call('delete_namespace', { name: 'once' })).structured, '{"deleted":true}');
  });

  it('outlives the process, and not its source', async () => {
    await server.kill();
    server = await restart(server);
    api.close();
    api = new ApiClient(server.url).as(api.key);
    assert.deepEqual((await api.search('alias', { q: 'dusk' })).hits[0]?.id, 'dusk');
    const { version } = await api.count('source');
    await link('stays', { source: 'source', version });

    await api.deleteNamespace('source');

    const isGone = async () => {
      for (const operation of ['search', 'count', 'warm'])
        await api.refused(missing, 'POST', `/v1/namespaces/alias/${operation}`, { body: {} });
      await api.refused(missing, 'GET', '/v1/namespaces/alias/docs/noon');
      await api.refused(missing, 'GET', '/v1/namespaces/alias');
      await api.refused(missing, 'POST', '/v1/namespaces/alias-3/link', { body: { source: 'alias' } });
      await api.refused(missing, 'POST', '/v1/namespaces/alias-3/branch', { body: { source: 'alias' } });
      const docs = [{ id: 'a', text: 'b' }];
      for (const name of ['alias', 'stays']) {
        const { error } = await api.refused(missing, 'POST', `/v1/namespaces/${name}/docs`, {
          body: { docs },
        });
        assert.equal(
          error,
          `"${name}" is a link whose source, "source", is gone: delete the link to use its name again`,
        );
        await api.refused(missing, 'PATCH', `/v1/namespaces/${name}/docs`, { body: { docs } });
        await api.refused(missing, 'POST', `/v1/namespaces/${name}/delete`, { body: { ids: ['a'] } });
        await api.refused(missing, 'PATCH', `/v1/namespaces/${name}`, { body: { embed: null } });
        await api.refused(missing, 'POST', `/v1/namespaces/${name}/import?id=id`, {
          body: 'id\na\n',
          headers: { 'content-type': 'application/octet-stream' },
        });
      }
    };
    await isGone();
    await api.put('source', [{ id: 'noon', text: 'Another namespace by the same name.' }]);
    await isGone();
    await api.deleteNamespace('source');
    await link('source', { source: (await api.createNamespace('third')).name });
    await isGone();
    // It is in the list, so that it can be found and deleted.
    const { namespaces } = await api.listNamespaces();
    for (const name of ['alias', 'stays']) {
      const { linked } =
        namespaces.find((each) => each.name === name) ?? assert.fail(`${name} is not listed`);
      assert.deepEqual([linked?.source, linked?.gone], ['source', true], name);
    }
    assert.equal(namespaces.find(({ name }) => name === 'source')?.linked?.gone, undefined);
    await api.deleteNamespace('alias');
    await api.put('alias', [{ id: 'a', text: 'A namespace of its own.' }]);
  });
});
