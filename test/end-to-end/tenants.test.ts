/** Tenants of a person, limits of keys, requests that are repeated, and old paths, at a server over a folder. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { KeyItem, NewKey, SignupAnswer, Tenant } from '../../protocol/account.ts';
import { limits } from '../../protocol/limits.ts';
import { type ApiAnswer, ApiClient, type RequestOptions } from '../support/api-client.ts';
import { filesBelow, readIfThere } from '../support/living-folder.ts';
import { restart, type ServerProcess, startServer, temporaryFolder } from '../support/server-process.ts';
import { setTenantStatus } from '../support/tenant-status.ts';

const notFound = { status: 404, code: 'not_found' };
const unauthorized = { status: 401, code: 'unauthorized' };
const forbidden = { status: 403, code: 'forbidden' };

describe('tenants', { concurrency: 1 }, () => {
  const folder = temporaryFolder();
  const env = { TIDEBASE_COMMIT_MS: '20' };
  let server: ServerProcess;
  let anyone: ApiClient;
  let people = 0;

  before(async () => {
    server = await startServer({ folder, env });
    anyone = new ApiClient(server.url);
  });

  after(async () => {
    anyone.close();
    assert.deepEqual(await server.stop(), { code: 0, signal: null });
    assert.deepEqual(server.loggedErrors(), []);
  });

  async function person(): Promise<{ readonly made: SignupAnswer; readonly login: ApiClient }> {
    const email = `person-${people++}@example.com`;
    const made = await anyone.signup(email, 'Person');
    return { made, login: anyone.as(await anyone.login(email)) };
  }

  const actingFor = (tenantId: number, options: RequestOptions = {}): RequestOptions => ({
    ...options,
    headers: { ...options.headers, 'x-tenant': String(tenantId) },
  });
  const create = (login: ApiClient, name: string) => login.call<Tenant>('POST', '/v1/tenants', { name });
  const list = (client: ApiClient) => client.call<Tenant[]>('GET', '/v1/tenants');

  async function keyOf(login: ApiClient, tenantId: number, name = 'a key'): Promise<NewKey> {
    const body = { name, scope: 'admin' };
    const answer = await login.request('POST', '/v1/keys', actingFor(tenantId, { body }));
    assert.equal(answer.status, 201, answer.body.toString());
    return answer.json() as NewKey;
  }

  async function objects(): Promise<string[]> {
    const root = join(folder, 'objects');
    return filesBelow(root).map((path) => relative(root, path));
  }

  it('are listed with the role, by a login all of them, by a key its own', async () => {
    const { made, login } = await person();
    const second = await create(login, ' Second ');
    const key = anyone.as((await keyOf(login, second.id)).key);

    assert.deepEqual(
      (await list(login)).map(({ id, name, role, plan, status }) => [id, name, role, plan, status]),
      [
        [made.tenant_id, 'Person', 'owner', 'free', 'active'],
        [second.id, 'Second', 'owner', 'free', 'active'],
      ],
    );
    assert.ok(Date.parse(second.created_at) <= Date.now());
    assert.deepEqual(await list(key), [second]);
    assert.deepEqual(
      (await list(anyone.as(made.key))).map(({ id }) => id),
      [made.tenant_id],
    );
    const me = (await login.request('GET', '/v1/me', actingFor(second.id))).json() as { tenant: Tenant };
    assert.deepEqual(me.tenant, {
      id: second.id,
      name: 'Second',
      plan: 'free',
      status: 'active',
      role: 'owner',
    });
    assert.equal((await login.me()).tenant_id, made.tenant_id);
  });

  it('are what a login is for where it names one of theirs; one of others is like none', async () => {
    const { made, login } = await person();
    const stranger = await person();
    const second = await create(login, 'Second');
    const gone = await create(login, 'Gone');
    assert.equal((await login.request('DELETE', `/v1/tenants/${gone.id}`)).status, 204);
    const email = (await login.me()).person?.email;
    const logIn = (tenant: string, password = 'correct horse') =>
      anyone.request('POST', '/v1/login', { body: { email, password }, headers: { 'x-tenant': tenant } });

    const answer = await logIn(String(second.id));

    assert.equal(answer.status, 200);
    const forSecond = anyone.as((answer.json() as { token: string }).token);
    assert.equal((await forSecond.me()).tenant_id, second.id);
    // A request may still name another one.
    const first = await forSecond.request('GET', '/v1/me', actingFor(made.tenant_id));
    assert.equal((first.json() as { tenant_id: number }).tenant_id, made.tenant_id);
    assert.equal((await list(forSecond)).length, 2);
    const refusals: ApiAnswer[] = [];
    for (const id of [String(stranger.made.tenant_id), String(gone.id), '1', '0', 'x', '', '9'.repeat(400)])
      refusals.push(await logIn(id));
    for (const { status, body } of refusals) {
      assert.equal(status, 404);
      assert.deepEqual(body, refusals[0]?.body);
    }
    assert.equal((await logIn(String(second.id), 'wrong horse')).status, 401);
    assert.equal((await logIn(String(stranger.made.tenant_id), 'wrong horse')).status, 401);
    assert.equal((await login.request('DELETE', `/v1/tenants/${second.id}`)).status, 204);
    await forSecond.refused({ status: 404, code: 'not_found' }, 'GET', '/v1/me');
  });

  it('are apart: what one has the other has not', async () => {
    const { made, login } = await person();
    const second = await create(login, 'Second');
    const key = anyone.as((await keyOf(login, second.id)).key);
    await key.put('notes', [{ id: 'a', text: 'second' }]);
    await anyone.as(made.key).put('notes', [{ id: 'a', text: 'first' }]);

    assert.equal((await key.get('notes', 'a')).text, 'second');
    assert.equal((await login.get('notes', 'a')).text, 'first');
    const asSecond = await login.request('GET', '/v1/namespaces/notes/docs/a', actingFor(second.id));
    assert.equal((asSecond.json() as { text: string }).text, 'second');
  });

  it('are made by a login only, and so many of a person', async () => {
    const { made, login } = await person();
    await anyone.as(made.key).refused(forbidden, 'POST', '/v1/tenants', { body: { name: 'x' } });
    for (let count = 1; count < limits.tenantsOfPersonMax; count++) await create(login, `tenant ${count}`);
    const refused = { status: 409, code: 'conflict' };

    await login.refused(refused, 'POST', '/v1/tenants', { body: { name: 'one more' } });
    const listed = await list(login);
    assert.equal(listed.length, limits.tenantsOfPersonMax);
    assert.equal((await login.request('DELETE', `/v1/tenants/${listed.at(-1)?.id}`)).status, 204);
    await create(login, 'in its place');
  });

  it('are made once with one Idempotency-Key, whichever tenant the login acts for', async () => {
    const { login } = await person();
    const second = await create(login, 'Second');
    const body = { name: 'Third' };
    const headers = { 'idempotency-key': 'one' };

    const first = await login.request('POST', '/v1/tenants', { body, headers });
    const again = await login.request('POST', '/v1/tenants', actingFor(second.id, { body, headers }));

    assert.equal(first.status, 201);
    assert.deepEqual(again.json(), first.json());
    assert.equal(again.headers['idempotent-replayed'], 'true');
    assert.equal((await list(login)).length, 3);
  });

  it('that are deleted are gone at once, with keys, namespaces and objects', async () => {
    const { made, login } = await person();
    const second = await create(login, 'Second');
    const made2 = await keyOf(login, second.id);
    const key = anyone.as(made2.key);
    const limitedBody = { name: 'reader', scope: 'read' };
    const reader = anyone.as((await key.createKey(limitedBody)).key);
    await key.put('notes', [{ id: 'a', text: 'words that nobody else wrote' }]);
    await key.createNamespace('empty');
    await reader.get('notes', 'a');

    assert.equal((await login.request('DELETE', `/v1/tenants/${second.id}`)).status, 204);

    for (const gone of [key, reader]) {
      await gone.refused(unauthorized, 'GET', '/v1/me');
      await gone.refused(unauthorized, 'GET', '/v1/namespaces/notes/docs/a');
    }
    const missing = await login.refused(notFound, 'GET', '/v1/me', actingFor(12345));
    assert.deepEqual(await login.refused(notFound, 'GET', '/v1/me', actingFor(second.id)), missing);
    assert.deepEqual(
      (await list(login)).map(({ id }) => id),
      [made.tenant_id],
    );
    await login.refused(notFound, 'DELETE', `/v1/tenants/${second.id}`);
    const left = (await objects()).filter((path) => !path.startsWith('log/'));
    assert.deepEqual(
      left.filter(
        (path) =>
          path.startsWith('ns/') &&
          readIfThere(join(folder, 'objects', path))?.includes('nobody else') === true,
      ),
      [],
    );
  });

  it('of others, the own first one and none at all are refused', async () => {
    const { made, login } = await person();
    const other = await person();
    const theirs = await create(other.login, 'Theirs');
    const conflict = { status: 409, code: 'conflict' };

    await login.refused(conflict, 'DELETE', `/v1/tenants/${made.tenant_id}`);
    const missing = await login.refused(notFound, 'DELETE', '/v1/tenants/123');
    for (const id of [theirs.id, other.made.tenant_id, 0, 'x', '1e3', 2 ** 48])
      assert.deepEqual(await login.refused(notFound, 'DELETE', `/v1/tenants/${id}`), missing);
    await anyone.as(made.key).refused(forbidden, 'DELETE', `/v1/tenants/${made.tenant_id}`);
    assert.equal((await list(other.login)).length, 2);
  });

  it('keep nothing of a deleted one but a remnant, over restarts and kills', async () => {
    const { login, made } = await person();
    const second = await create(login, 'A name to be forgotten');
    const third = await create(login, 'Third');
    const key = anyone.as((await keyOf(login, second.id, 'forget this key')).key);
    await key.put('notes', [{ id: 'a', text: 'x' }]);
    await server.kill();
    server = await restart(server);
    anyone.close();
    anyone = new ApiClient(server.url);
    const again = anyone.as(login.key);

    // The answer may be lost with the process: then the deletion is begun, done or not begun.
    const lost = again.request('DELETE', `/v1/tenants/${second.id}`).catch(() => null);
    await new Promise((resolve) => setTimeout(resolve, 60));
    await server.kill();
    await lost;
    server = await restart(server);
    anyone.close();
    anyone = new ApiClient(server.url);
    const owner = anyone.as(login.key);
    const { status } = await owner.request('DELETE', `/v1/tenants/${second.id}`);

    assert.ok(status === 204 || status === 404, `answered ${status}`);
    assert.deepEqual(
      (await list(owner)).map(({ id }) => id),
      [made.tenant_id, third.id],
    );
    await anyone.as(key.key).refused(unauthorized, 'GET', '/v1/me');
    await server.stop();
    const kept = (await objects()).filter((path) => path.startsWith('tenant/') || path.startsWith('ns/'));
    const naming = kept.filter((path) => {
      const bytes = readFileSync(join(folder, 'objects', path));
      return bytes.includes('A name to be forgotten') || bytes.includes('forget this key');
    });
    assert.deepEqual(naming, []);
    server = await restart(server);
    anyone.close();
    anyone = new ApiClient(server.url);
  });

  it('that are suspended are refused everywhere, those that are past due are served', async () => {
    const { made, login } = await person();
    const late = await person();
    await login.put('notes', [{ id: 'a', text: 'x' }]);
    const second = await create(login, 'Second');
    await server.stop();
    await setTenantStatus(folder, [made.tenant_id], 'suspended');
    await setTenantStatus(folder, [late.made.tenant_id], 'past_due');
    server = await restart(server);
    anyone.close();
    anyone = new ApiClient(server.url);

    for (const client of [anyone.as(made.key), anyone.as(login.key)]) {
      for (const path of ['/v1/usage', '/v1/tenants', '/v1/namespaces/notes/docs/a'])
        await client.refused(forbidden, 'GET', path);
      await client.refused(forbidden, 'POST', '/v1/email/verify/resend');
    }
    await anyone.as(made.key).refused(forbidden, 'GET', '/v1/me');
    assert.equal((await anyone.as(login.key).me()).tenant.status, 'suspended');
    assert.equal((await anyone.as(login.key).call<{ plan: string }>('GET', '/v1/billing')).plan, 'free');
    const listed = await anyone.as(login.key).request('GET', '/v1/tenants', actingFor(second.id));
    assert.deepEqual(
      (listed.json() as Tenant[]).map(({ status }) => status),
      ['suspended', 'active'],
    );
    const me = await anyone.as(late.made.key).me();
    assert.equal(me.tenant.status, 'past_due');
    await server.stop();
    await setTenantStatus(folder, [made.tenant_id], 'active');
    server = await restart(server);
    anyone.close();
    anyone = new ApiClient(server.url);
    assert.equal((await anyone.as(made.key).get('notes', 'a')).text, 'x');
  });

  describe('limits of a key', () => {
    it('hold from the moment they are answered, for a key in use', async () => {
      const owner = anyone.as((await person()).made.key);
      await owner.put('notes', [{ id: 'a', text: 'x' }]);
      await owner.put('other', [{ id: 'a', text: 'x' }]);
      const made = await owner.createKey({ name: 'used', scope: 'admin' });
      const user = anyone.as(made.key);
      const path = `/v1/keys/${made.id}/limits`;

      for (let round = 0; round < 10; round++) {
        await user.get('other', 'a');
        await owner.call('PUT', path, { namespaces: ['n*'], cap_writes: 1_000 });
        await user.refused(forbidden, 'GET', '/v1/namespaces/other/docs/a');
        await user.refused(forbidden, 'GET', '/v1/keys');
        await user.get('notes', 'a');
        await owner.call('PUT', path, {});
      }

      await user.call('PUT', path, { rate_per_s: 1_000 });
      await user.refused(forbidden, 'PUT', path, { body: {} });
      const items = await owner.call<KeyItem[]>('GET', '/v1/keys');
      const item = items.find(({ id }) => id === made.id);
      assert.deepEqual(
        [item?.namespaces, item?.rate_per_s, item?.cap_queries, item?.cap_writes],
        [[], 1_000, null, null],
      );
    });

    it('are refused for a key that is not there, and where they are wrong', async () => {
      const { made } = await person();
      const other = await person();
      const owner = anyone.as(made.key);
      const invalid = { status: 422, code: 'invalid', fields: ['cap_queries', 'name'] };

      const missing = await owner.refused(notFound, 'PUT', '/v1/keys/1/limits', { body: {} });
      const foreign = `/v1/keys/${other.made.key_id}/limits`;
      assert.deepEqual(await owner.refused(notFound, 'PUT', foreign, { body: {} }), missing);
      const body = { cap_queries: -1, name: 'x' };
      await owner.refused(invalid, 'PUT', `/v1/keys/${made.key_id}/limits`, { body });
    });
  });

  describe('a request with an Idempotency-Key', () => {
    const keyed = (body: unknown, key = 'one'): RequestOptions => ({
      body,
      headers: { 'idempotency-key': key },
    });
    const replayed = (answer: ApiAnswer) => answer.headers['idempotent-replayed'];

    it('is done once, also after a kill: a key, a namespace, a tenant', async () => {
      const requests = [
        ['/v1/keys', { name: 'made once' }],
        ['/v1/namespaces', { name: 'made-once' }],
        ['/v1/tenants', { name: 'made once' }],
      ] as const;
      const { login } = await person();
      const before: ApiAnswer[][] = [];
      for (const [path, body] of requests) {
        const first = await login.request('POST', path, keyed(body, path));
        assert.equal(first.status, 201, first.body.toString());
        assert.equal(replayed(first), undefined);
        before.push([first, await login.request('POST', path.replace('/v1/', '/api/'), keyed(body, path))]);
      }

      await server.kill();
      server = await restart(server);
      anyone.close();
      anyone = new ApiClient(server.url);
      const client = anyone.as(login.key);

      for (const [at, [path, body]] of requests.entries()) {
        const third = await client.request('POST', path, keyed(body, path));
        const [first, second] = before[at] ?? [];
        for (const again of [second, third]) {
          assert.equal(again?.status, 201, path);
          assert.equal(again.body.toString(), first?.body.toString());
          assert.equal(replayed(again), 'true');
        }
        const invalid = { status: 422, code: 'invalid', fields: ['Idempotency-Key'] };
        await client.refused(invalid, 'POST', path, keyed({ name: 'another' }, path));
        const other = await client.request('POST', path, keyed({ name: 'another' }, `${path} two`));
        assert.equal(other.status, 201);
        const items = await client.call<Tenant[] | { namespaces: unknown[] }>('GET', path);
        // A new person has a tenant and a key already.
        assert.equal(Array.isArray(items) ? items.length - 1 : items.namespaces.length, 2);
      }
    });

    it('that was refused leaves its key free', async () => {
      const { login } = await person();
      for (const path of ['/v1/keys', '/v1/namespaces', '/v1/tenants']) {
        const invalid = { status: 422, code: 'invalid', fields: ['nam'] };
        await login.refused(invalid, 'POST', path, keyed({ nam: 'x' }, path));
        const malformed = { status: 400, code: 'bad_request' };
        await login.refused(malformed, 'POST', path, keyed('{', path));
        const made = await login.request('POST', path, keyed({ name: 'right' }, path));
        assert.equal(made.status, 201, made.body.toString());
      }
    });

    it('makes one tenant of many at once', async () => {
      const { login } = await person();

      const body = { name: 'at once' };
      const answers = await Promise.all(
        Array.from({ length: 8 }, () => login.request('POST', '/v1/tenants', keyed(body))),
      );

      const statuses = answers.map(({ status }) => status).sort();
      assert.deepEqual(statuses, [201, ...Array.from({ length: 7 }, () => 409)]);
      assert.equal((await list(login)).length, 2);
    });

    it('is its login’s own, and shared by the keys of a tenant', async () => {
      const { login, made } = await person();
      const owner = anyone.as(made.key);
      const other = anyone.as((await owner.createKey({ name: 'other', scope: 'admin' })).key);
      const body = { name: 'shared' };

      const first = await owner.request('POST', '/v1/keys', keyed(body));
      const second = await other.request('POST', '/v1/keys', keyed(body));
      const third = await login.request('POST', '/v1/keys', keyed(body));

      assert.equal(second.body.toString(), first.body.toString());
      assert.notEqual(third.body.toString(), first.body.toString());
    });

    it('is refused where the key is none, and heeded by nothing else', async () => {
      const owner = anyone.as((await person()).made.key);
      const invalid = { status: 422, code: 'invalid', fields: ['Idempotency-Key'] };

      // uWebSockets leaves out what is no ASCII before anybody sees it.
      for (const key of ['a'.repeat(256), 'a\tb'])
        await owner.refused(invalid, 'POST', '/v1/keys', keyed({ name: 'x' }, key));
      const longest = await owner.request('POST', '/v1/keys', keyed({ name: 'x' }, 'a'.repeat(255)));
      assert.equal(longest.status, 201);
      for (let time = 0; time < 2; time++) {
        const answer = await owner.request(
          'POST',
          '/v1/namespaces/n/docs',
          keyed({ docs: [{ id: 'a', text: 'x' }] }),
        );
        assert.equal(replayed(answer), undefined);
      }
    });
  });

  it('answer at old paths as at the new ones, and say so', async () => {
    const owner = anyone.as((await person()).made.key);
    await owner.put('notes', [{ id: 'a/b', text: 'x' }]);
    const answers = [
      await owner.request('GET', '/api/namespaces/notes/docs/a/b'),
      await owner.request('GET', '/api/namespaces/none'),
      await owner.request('PUT', '/api/namespaces/notes'),
      await anyone.as(null).request('GET', '/api/me?x=1'),
    ];

    assert.deepEqual(
      answers.map(({ status, headers }) => [status, headers.deprecation, headers.link]),
      [
        [200, '@1767225600', '</v1/namespaces/notes/docs/a/b>; rel="successor-version"'],
        [404, '@1767225600', '</v1/namespaces/none>; rel="successor-version"'],
        [405, '@1767225600', '</v1/namespaces/notes>; rel="successor-version"'],
        [401, '@1767225600', '</v1/me>; rel="successor-version"'],
      ],
    );
    const plain = await owner.request('GET', '/v1/me');
    const nothing = await owner.request('GET', '/api/nothing');
    for (const { headers } of [plain, nothing])
      assert.deepEqual([headers.deprecation, headers.link], [undefined, undefined]);
    const openApi = await anyone.request('GET', '/openapi.json');
    assert.equal(openApi.body.includes('/api/'), false);
  });
});
