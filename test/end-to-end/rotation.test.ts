/** Secrets of the server that are replaced while it is in use. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { NewKey } from '../../protocol/account.ts';
import { ApiClient } from '../support/api-client.ts';
import { type ClusterServer, clusterSecrets, ServerCluster } from '../support/cluster.ts';
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

  it('are replaced on several servers, one after another, while each accepts what the other has made', async () => {
    const cluster = await ServerCluster.start({ servers: 2 });
    const made = await new ApiClient(cluster.servers[0]?.process.url ?? '').signup('ada@example.com');
    const once = { body: { name: 'once', scope: 'admin' }, headers: { 'idempotency-key': 'one' } };
    let first: unknown = null;
    let token = '';

    async function checkEachByTheOther(): Promise<void> {
      const clients = cluster.clients(made.key);
      for (const [at, from] of clients.entries()) {
        token = await from.login('ada@example.com');
        // Tenants and namespaces are placed by chance: some are sealed by one server and opened by the other.
        await from.put(`notes-${at}`, [
          { id: 'a', text: 'tide' },
          { id: 'b', text: 'tide' },
        ]);
        const asked = (await from.request('POST', '/v1/keys', once)).json();
        first ??= asked;
        assert.deepEqual(asked, first);
        const { next } = await from.search(`notes-${at}`, { q: 'tide', limit: 1 });
        for (const to of clients) {
          assert.equal((await to.as(token).me()).person?.id, made.id);
          const { hits } = await to.search(`notes-${at}`, { q: 'tide', limit: 1, cursor: next });
          assert.equal(hits.length, 1);
        }
      }
      for (const client of clients) client.close();
    }

    /** As deploy/README.md says it: of one server after another. */
    async function restartAll(env: Readonly<Record<string, string>>): Promise<void> {
      for (const server of cluster.servers) {
        assert.deepEqual(await server.process.stop(), { code: 0, signal: null });
        await cluster.whenActive();
        const without = Object.fromEntries(
          Object.entries(server.options.env ?? {}).filter(([name]) => !(name in clusterSecrets)),
        );
        server.process = await startServer({ ...server.options, env: { ...without, ...env } });
        await cluster.whenActive();
        await checkEachByTheOther();
      }
    }

    const names = Object.keys(clusterSecrets);
    const old = (suffix: string) => names.map((name) => [`${name}${suffix}`, clusterSecrets[name] ?? '']);
    const successor = (suffix: string) => names.map((name, at) => [`${name}${suffix}`, key(10 + at)]);
    await checkEachByTheOther();
    const before = token;

    await restartAll(Object.fromEntries([...old(''), ...successor('_PREVIOUS')]));
    await restartAll(Object.fromEntries([...successor(''), ...old('_PREVIOUS')]));
    // The next write of the tenant's record seals its secrets anew.
    await cluster.clients(made.key)[0]?.createKey({ name: 'another' });
    await restartAll(Object.fromEntries(successor('')));

    const [one] = cluster.clients(before);
    await one?.refused({ status: 401, code: 'unauthorized' }, 'GET', '/v1/me');
    one?.close();
    await cluster.stop();
    const errors = cluster.servers.flatMap(({ process }: ClusterServer) => process.loggedErrors());
    assert.deepEqual(errors, []);
  });
});
