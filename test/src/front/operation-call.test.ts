import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { limits } from '../../../protocol/limits.ts';
import { type FrontInProcess, startFront } from '../../support/front-in-process.ts';

describe('an operation that is asked for inside another request', () => {
  let server: FrontInProcess;
  const notes = { name: 'notes' } as const;

  before(async () => {
    server = await startFront();
  });

  after(() => server.stop());

  it('answers as its REST request does: status, rate-limit headers and bytes', async () => {
    const put = await server.run('putDocuments', {
      parameters: notes,
      body: { docs: [{ id: 'a', text: 'tide' }] },
    });
    const search = await server.run('search', { parameters: notes, body: { q: 'tide' } });
    const document = await server.run('getDocument', { parameters: { ...notes, id: 'a' } });
    const gone = await server.run('deleteNamespace', { parameters: { name: 'nothing' } });

    assert.deepEqual([put.status, put.body.version], [200, 1]);
    assert.deepEqual(
      search.body.hits.map(({ id }: { id: string }) => id),
      ['a'],
    );
    assert.equal(document.body.text, 'tide');
    assert.deepEqual([gone.status, gone.body.code], [404, 'not_found']);
    for (const { headers } of [put, search, document, gone]) {
      assert.equal(headers.get('x-request-id'), 'test-1');
      assert.ok(headers.has('ratelimit-limit') || headers.has('RateLimit-Limit'), [...headers.keys()].join());
    }
  });

  it('is authorised as its caller, and refused before an actor hears of it', async () => {
    const before = server.calls.length;
    const readKey = { auth: 'key', role: null, scope: 'read', keyId: 5 } as const;
    const limitedKey = { ...readKey, namespaces: ['other*'] };

    const write = await server.run('putDocuments', {
      parameters: notes,
      body: { docs: [] },
      principal: readKey as never,
    });
    const outside = await server.run('count', {
      parameters: notes,
      body: {},
      principal: limitedKey as never,
    });

    assert.deepEqual([write.status, write.body.code], [403, 'forbidden']);
    assert.deepEqual([outside.status, outside.body.code], [403, 'forbidden']);
    assert.equal(server.calls.length, before);
  });

  it('refuses what its REST request refuses', async () => {
    const tooLong = 'a'.repeat(limits.queryBodyBytesMax);
    const missing = await server.run('sql', { parameters: notes });
    const wrongField = await server.run('search', { parameters: notes, body: { limit: -1 } });
    const wrongQuery = await server.run('listNamespaces', { query: 'limit=none' });
    const unknownQuery = await server.run('deleteNamespace', { parameters: notes, query: 'x=1' });
    const tooLarge = await server.run('search', { parameters: notes, body: { q: tooLong } });
    const wrongName = await server.run('search', { parameters: { name: 'A' }, body: {} });

    const codes = [missing, wrongField, wrongQuery, unknownQuery, tooLarge, wrongName].map(
      ({ status, body }) => `${status} ${body.code}`,
    );
    assert.deepEqual(codes, [
      '400 bad_request',
      '422 invalid',
      '422 invalid',
      '422 invalid',
      '413 too_large',
      '422 invalid',
    ]);
  });

  it('counts as a query or a write of its surface', async () => {
    await server.run('count', { parameters: notes, body: {}, surface: 'mcp' });
    await server.run('putDocuments', {
      parameters: notes,
      body: { docs: [{ id: 'b', text: 'ebb' }] },
      surface: 'mcp',
    });

    const { body } = await server.run('usage');

    assert.deepEqual([body.mcp_queries, body.mcp_writes], [1, 1]);
    assert.ok(body.queries > 1, `${body.queries} queries`);
  });

  it('is in flight until its answer is released', async () => {
    assert.equal(server.front.admission.inFlight, 0);
  });
});
