import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { ApiClient } from '../support/api-client.ts';
import { type ServerProcess, startServer, temporaryFolder } from '../support/server-process.ts';

interface Description {
  readonly info: { readonly version: string; readonly license: { readonly name: string } };
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly 'x-metering'?: string }>>>>;
}

/** What the service's description says of the interface as a whole, asked of a running server. */
describe('the interface', { concurrency: 1 }, () => {
  let server: ServerProcess;
  let api: ApiClient;

  before(async () => {
    server = await startServer({ folder: temporaryFolder() });
    const anyone = new ApiClient(server.url);
    api = anyone.as((await anyone.signup('interface@example.com')).key);
    await api.put('kept', [{ id: 'a', text: 'hello', meta: { k: 1 }, vector: [1, 2] }]);
  });

  after(async () => {
    api.close();
    assert.deepEqual(await server.stop(), { code: 0, signal: null });
  });

  it('states version 0.1.0, its licence, and what each group of operations is for', async () => {
    const { info, tags } = await api.call<Description>('GET', '/openapi.json');

    assert.equal(info.version, '0.1.0');
    assert.ok(info.license.name.length > 0);
    for (const { name, description } of tags) assert.ok(description.length > 10, name);
  });

  it('marks what is metered as a query or as a write', async () => {
    const { paths } = await api.call<Description>('GET', '/openapi.json');

    const marked = Object.entries(paths).flatMap(([path, item]) =>
      Object.entries(item).flatMap(([method, operation]) => {
        const marker = operation['x-metering'];
        return marker === undefined
          ? []
          : [`${method} ${path.replace('/v1/namespaces/{name}', '')} ${marker}`];
      }),
    );
    assert.deepEqual(marked.toSorted(), [
      'get /count query',
      'get /docs/{id} query',
      'get /search query',
      'patch /docs write',
      'post /count query',
      'post /delete write',
      'post /docs write',
      'post /import write',
      'post /search query',
      'post /sql query',
      'post /warm query',
    ]);
  });

  it('answers 404 to a key whose patterns do not cover the namespace, as if it were missing', async () => {
    const limited = api.as((await api.createKey({ name: 'limited', namespaces: ['other-*'] })).key);
    const missing = { status: 404, code: 'not_found' };

    const outside = await limited.refused(missing, 'GET', '/v1/namespaces/kept');
    const absent = await api.refused(missing, 'GET', '/v1/namespaces/absent');

    assert.equal(outside.error.replace('kept', 'absent'), absent.error);
    await limited.refused({ status: 403, code: 'forbidden' }, 'POST', '/v1/namespaces/kept/search', {
      body: {},
    });
  });

  it('has no namespaces named . and ..', async () => {
    for (const name of ['.', '..']) {
      const refusal = { status: 422, code: 'invalid', fields: ['name'] };
      await api.refused(refusal, 'POST', '/v1/namespaces', { body: { name } });
      await api.refused(refusal, 'GET', `/v1/namespaces/${name}`);
      await api.refused(refusal, 'GET', `/v1/namespaces/${encodeURIComponent(name).replaceAll('.', '%2E')}`);
      await api.refused(refusal, 'POST', `/v1/namespaces/${name}/docs`, {
        body: { docs: [{ id: 'a', text: '' }] },
      });
    }
    assert.equal((await api.createNamespace('...')).name, '...');
  });

  it('takes an optional field that is null for one that is absent', async () => {
    const written = await api.put(
      'nulls',
      [{ id: 'a', text: 'hi', meta: null, vector: null, vector_b64: null }],
      {
        deletes: null,
        wait: null,
      },
    );
    const patched = await api.patch('nulls', [{ id: 'a', text: null, meta: { gone: null }, vector: null }], {
      wait: null,
    });
    const made = await api.call<object>('POST', '/v1/namespaces', {
      name: 'null-made',
      vector: { dims: 2, metric: null },
      embed: null,
    });

    assert.deepEqual([written.written, patched.written], [1, 1]);
    assert.equal((await api.get('nulls', 'a')).text, 'hi');
    assert.deepEqual('vector' in made && made.vector, { dims: 2, metric: 'cosine' });
    assert.ok(!('embed' in made));
    const nothing = { q: null, filter: null, limit: null, cursor: null, vector: null, include: null };
    assert.equal((await api.search('kept', nothing)).hits.length, 1);
    assert.equal((await api.count('kept', { q: 'hello', exact: null, filter: null })).count, 1);
    await api.call('POST', '/v1/namespaces/kept/sql', { sql: 'SELECT k FROM docs', min_version: null });
    await api.call('POST', '/v1/namespaces/kept/warm', { queries: null, regex: null });
    assert.equal(
      (await api.createKey({ name: 'k', scope: null, namespaces: null, rate_per_s: null })).scope,
      'write',
    );
    // `embed` of a PATCH is required, and null turns embedding off.
    const required = { status: 422, code: 'invalid', fields: ['embed'] };
    await api.refused(required, 'PATCH', '/v1/namespaces/kept', { body: {} });
    assert.equal(
      (await api.call<{ name: string }>('PATCH', '/v1/namespaces/kept', { embed: null })).name,
      'kept',
    );
  });

  it('blames a wrong vector on the field that it came in', async () => {
    const put = (document: object, padding = '') => ({
      body: { docs: [{ id: 'p', text: padding }, document] },
    });
    const three = Buffer.from(new Float32Array([1, 2, 3]).buffer).toString('base64');
    const refused = (field: string, options: object) =>
      api.refused(
        { status: 422, code: 'invalid', fields: [field] },
        'POST',
        '/v1/namespaces/kept/docs',
        options,
      );

    await refused('docs[1].vector', put({ id: 'b', vector: [1, 2, 3] }));
    await refused('docs[1].vector_b64', put({ id: 'b', vector_b64: three }));
    // A body of this size is parsed on another thread.
    await refused('docs[1].vector_b64', put({ id: 'b', vector_b64: three }, 'x'.repeat(500_000)));
  });

  it('says in plain words what is not set up', async () => {
    const refusal = { status: 501, code: 'not_implemented' };

    const { error } = await api.refused(refusal, 'POST', '/v1/billing/checkout');

    assert.match(error, /^this server has no payment provider/);
  });
});
