import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Usage } from '../../protocol/account.ts';
import { ApiClient } from '../support/api-client.ts';
import { connectRaw, type RawConnection } from '../support/raw-http.ts';
import { type ServerProcess, startServer, temporaryFolder } from '../support/server-process.ts';

/** What happens while a body is on its way. */
describe('a body that takes its time', { concurrency: 1 }, () => {
  let server: ServerProcess;
  let anyone: ApiClient;
  let owner: ApiClient;

  before(async () => {
    server = await startServer({ folder: temporaryFolder(), env: { TIDEBASE_COMMIT_MS: '20' } });
    anyone = new ApiClient(server.url);
    owner = anyone.as((await anyone.signup('slow@example.com')).key);
  });

  after(async () => {
    anyone.close();
    assert.deepEqual(await server.stop(), { code: 0, signal: null });
    assert.deepEqual(server.loggedErrors(), []);
  });

  /** The head and the first bytes of a request. */
  async function begun(key: string, path: string, body: string, sent = 5): Promise<RawConnection> {
    const connection = await connectRaw(server.port);
    connection.send(
      `POST ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\nContent-Length: ${body.length}\r\n\r\n`,
    );
    connection.send(body.slice(0, sent));
    // It has to have been let in by then.
    await new Promise((resolve) => setTimeout(resolve, 200));
    return connection;
  }

  it('makes no key for whom is revoked by its end', async () => {
    const { key, id } = await owner.createKey({ name: 'gone', scope: 'admin' });
    const body = JSON.stringify({ name: 'late', scope: 'admin' });
    const connection = await begun(key, '/v1/keys', body);
    await owner.revokeKey(id);

    connection.send(body.slice(5));
    const [answer] = await connection.waitForAnswers(1);

    assert.equal(answer?.status, 401);
    assert.ok(!(await owner.call<{ name: string }[]>('GET', '/v1/keys')).some(({ name }) => name === 'late'));
  });

  it('writes nothing where the key may not by its end', async () => {
    const { key, id } = await owner.createKey({ name: 'narrowed', scope: 'write' });
    const body = JSON.stringify({ docs: [{ id: 'a', text: 'x' }] });
    const connection = await begun(key, '/v1/namespaces/narrow/docs', body);
    await owner.request('PUT', `/v1/keys/${id}/limits`, { body: { namespaces: ['other*'] } });

    connection.send(body.slice(5));
    const [answer] = await connection.waitForAnswers(1);

    assert.equal(answer?.status, 403);
    await owner.refused({ status: 404, code: 'not_found' }, 'GET', '/v1/namespaces/narrow');
  });

  it('is imported for nobody who is revoked by its end', async () => {
    const { key, id } = await owner.createKey({ name: 'importer', scope: 'write' });
    const file = 'a,b\n1,2\n3,4\n';
    const connection = await begun(key, '/v1/namespaces/imported/import?format=csv', file);
    await owner.revokeKey(id);

    connection.send(file.slice(5));
    const [answer] = await connection.waitForAnswers(1);

    assert.equal(answer?.status, 401);
    await owner.refused({ status: 404, code: 'not_found' }, 'GET', '/v1/namespaces/imported');
  });

  it('of one tenant’s imports leaves room for those of others', async () => {
    const key = owner.key ?? '';
    const file = `a\n${'1\n'.repeat(100)}`;
    const held = await Promise.all(
      Array.from({ length: 40 }, () => begun(key, '/v1/namespaces/held/import?format=csv', file)),
    );
    const other = anyone.as((await anyone.signup('other@example.com')).key);
    const options = { body: 'a\n1\n', headers: { 'content-type': 'application/octet-stream' } };

    const answer = await other.request('POST', '/v1/namespaces/n/import?format=csv', options);

    assert.equal(answer.status, 200);
    const refused = held.flatMap((connection) => connection.answers().map(({ status }) => status));
    // Those that have no place wait for one, and those that stand still may be ended for them.
    assert.deepEqual(
      refused.filter((status) => status !== 408),
      [],
    );
    for (const connection of held) connection.socket.destroy();
  });

  it('of a query that was refused after its work is metered, and none of wrong words', async () => {
    await owner.put('metered', [{ id: 'a', text: 'x' }]);
    const before = await owner.call<Usage>('GET', '/v1/usage');
    await owner.refused({ status: 404, code: 'not_found' }, 'GET', '/v1/namespaces/metered/docs/nothing');
    await owner.refused({ status: 422, code: 'invalid' }, 'POST', '/v1/namespaces/metered/search', {
      body: { limit: -1 },
    });
    for (const [path, body] of [
      ['search', { q: '(', regex: true }],
      ['sql', { sql: 'SELEC 1' }],
      ['sql', { sql: 'SELECT nothing(1) FROM metered' }],
    ] as const) {
      const where = `/v1/namespaces/metered/${path}`;
      await owner.refused({ status: 422, code: 'invalid' }, 'POST', where, { body });
    }

    const after = await owner.call<Usage>('GET', '/v1/usage');

    assert.equal(after.queries - before.queries, 1);
    assert.ok(after.cpu_ms > before.cpu_ms);
  });
});
