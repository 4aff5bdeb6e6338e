/** Secrets of the server that are replaced while it is in use. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { NewKey } from '../../protocol/account.ts';
import { ApiClient } from '../support/api-client.ts';
import { restart, startServer, temporaryFolder } from '../support/server-process.ts';

const key = (byte: number) => Buffer.alloc(32, byte).toString('base64');
const conflict = { status: 409, code: 'conflict' } as const;

describe('keys of the server that are rotated', () => {
  it('are accepted beside their successors, and not needed once everything was written anew', async () => {
    const oldEnv = {
      TIDEBASE_COMMIT_MS: '20',
      TIDEBASE_LOGIN_TOKEN_KEY: key(1),
      TIDEBASE_KEY_ENCRYPTION_KEY: key(2),
    };
    let server = await startServer({ folder: temporaryFolder(), env: oldEnv });
    let anyone = new ApiClient(server.url);
    const again = async (env: Readonly<Record<string, string>>) => {
      anyone.close();
      assert.deepEqual(await server.stop(), { code: 0, signal: null });
      server = await restart(server, { env: { TIDEBASE_COMMIT_MS: '20', ...env } });
      anyone = new ApiClient(server.url);
    };
    const made = await anyone.signup('ada@example.com');
    const token = await anyone.login('ada@example.com');
    // An answer that is kept sealed, because it shows a key.
    const once = {
      body: { name: 'once', scope: 'admin' },
      headers: { 'idempotency-key': 'one' },
    };
    const asked = () => anyone.as(made.key).request('POST', '/v1/keys', once);
    const first = (await asked()).json() as NewKey;
    await anyone.as(made.key).put('notes', [
      { id: 'a', text: 'tide' },
      { id: 'b', text: 'tide' },
    ]);
    const page = await anyone.as(made.key).search('notes', { q: 'tide', limit: 1 });
    const nextOf = (cursor: string) => anyone.as(made.key).search('notes', { q: 'tide', limit: 1, cursor });

    const newKeys = { TIDEBASE_LOGIN_TOKEN_KEY: key(3), TIDEBASE_KEY_ENCRYPTION_KEY: key(4) };
    await again({
      ...newKeys,
      TIDEBASE_LOGIN_TOKEN_KEY_PREVIOUS: key(1),
      TIDEBASE_KEY_ENCRYPTION_KEY_PREVIOUS: key(2),
    });

    assert.equal((await anyone.as(token).me()).person?.id, made.id);
    assert.deepEqual(
      (await nextOf(page.next)).hits.map(({ id }) => id),
      ['a'],
    );
    const replayed = await asked();
    assert.equal(replayed.headers['idempotent-replayed'], 'true');
    assert.deepEqual(replayed.json(), first);
    const newToken = await anyone.login('ada@example.com');
    const newPage = await anyone.as(made.key).search('notes', { q: 'tide', limit: 1 });
    assert.notEqual(newPage.next, page.next);
    // The next write of the tenant's record seals its secrets anew.
    await anyone.as(made.key).createKey({ name: 'another' });

    await again(newKeys);

    assert.equal((await anyone.as(newToken).me()).person?.id, made.id);
    await anyone.as(token).refused({ status: 401, code: 'unauthorized' }, 'GET', '/v1/me');
    assert.deepEqual(
      (await nextOf(newPage.next)).hits.map(({ id }) => id),
      ['a'],
    );
    const body = { q: 'tide', limit: 1, cursor: page.next };
    const refusal = { status: 422, code: 'invalid', fields: ['cursor'] } as const;
    await anyone.as(made.key).refused(refusal, 'POST', '/v1/namespaces/notes/search', { body });
    assert.deepEqual((await asked()).json(), first, 'it was sealed anew');

    // Without a rotation it can't be opened any more, and is not done again.
    await again({ TIDEBASE_LOGIN_TOKEN_KEY: key(3), TIDEBASE_KEY_ENCRYPTION_KEY: key(5) });
    const { error } = await anyone.as(made.key).refused(conflict, 'POST', '/v1/keys', once);
    assert.match(error, /another TIDEBASE_KEY_ENCRYPTION_KEY/);
    anyone.close();
    assert.deepEqual(await server.stop(), { code: 0, signal: null });
    assert.deepEqual(server.loggedErrors(), []);
  });
});
