import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import type { KeyItem, NewKey } from '../../protocol/account.ts';
import { limits } from '../../protocol/limits.ts';
import type { Namespace } from '../../protocol/namespace.ts';
import type { SqlAnswer } from '../../protocol/sql.ts';
import type { ImportResult } from '../../protocol/write.ts';
import { loadUws } from '../../src/front/http-uws-load.ts';
import { ApiClient, documentPath } from '../support/api-client.ts';
import { connectRaw } from '../support/raw-http.ts';
import { type ServerProcess, startServer, temporaryFolder } from '../support/server-process.ts';
import { zstdSync } from '../support/zstd-sync.ts';

/**
 * What the walking skeleton can do, against a real server on a real port. On one HTTP engine, for what lies behind the
 * door does not know which it is; what each engine has to do is `contract/http.suite.ts`, and that each serves a whole
 * server is `restart.test.ts`.
 */
export function basicsSuite(): void {
  const loaded = loadUws();
  const engine = 'uws' in loaded ? 'uws' : 'node';

  describe(`the server on ${engine}`, { concurrency: 1 }, () => {
    let server: ServerProcess;
    let anyone: ApiClient;
    let api: ApiClient;

    before(async () => {
      // Groups of 20 ms, so that the suite does not wait for the log most of its time.
      const env = { TIDEBASE_COMMIT_MS: '20' };
      server = await startServer({ folder: temporaryFolder(), engine, env });
      anyone = new ApiClient(server.url);
      api = anyone.as((await anyone.signup(`suite@${engine}.example`)).key);
    });

    after(async () => {
      anyone.close();
      assert.deepEqual(await server.stop(), { code: 0, signal: null });
      assert.deepEqual(server.loggedErrors(), []);
    });

    describe('accounts', () => {
      it('sign up, log in and say who is asking', async () => {
        const made = await anyone.signup(' Ann@Example.com ', 'Ann');
        const token = await anyone.login('ann@EXAMPLE.com');

        const byKey = await anyone.as(made.key).me();
        const byLogin = await anyone.as(token).me();

        assert.match(made.key, /^tb_[0-9A-Za-z]{36}$/);
        assert.equal(made.key_prefix, made.key.slice(0, 11));
        assert.equal(byKey.auth, 'key');
        assert.equal(byKey.key?.id, made.key_id);
        // With a key: who made it.
        assert.deepEqual(byKey.person, byLogin.person);
        assert.equal(byLogin.auth, 'login');
        assert.deepEqual(byLogin.person, {
          id: made.id,
          email: 'Ann@Example.com',
          name: 'Ann',
          verified: false,
        });
        for (const me of [byKey, byLogin]) {
          assert.equal(me.tenant_id, made.tenant_id);
          assert.equal(me.scope, 'admin');
          assert.deepEqual(me.tenant, {
            id: made.tenant_id,
            name: 'Ann',
            plan: 'free',
            status: 'active',
            role: 'owner',
          });
        }
      });

      it('refuse an address that is taken, whatever its case', async () => {
        await anyone.signup('taken@example.com');

        const body = { email: 'TAKEN@example.com', name: 'Other', password: 'another pass' };
        await anyone.refused({ status: 409, code: 'conflict' }, 'POST', '/v1/signup', { body });
      });

      it('give one account to one of ten who race for the same address', async () => {
        const body = { email: 'race@example.com', name: 'Racer', password: 'correct horse' };

        const answers = await Promise.all(
          Array.from({ length: 10 }, () => anyone.request('POST', '/v1/signup', { body })),
        );

        const statuses = answers.map((answer) => answer.status).sort();
        assert.deepEqual(statuses, [201, ...Array.from({ length: 9 }, () => 409)]);
        await anyone.login('race@example.com');
      });

      it('answer a wrong password and an unknown address alike', async () => {
        await anyone.signup('real@example.com');
        const refusal = { status: 401, code: 'unauthorized' };

        const wrong = await anyone.refused(refusal, 'POST', '/v1/login', {
          body: { email: 'real@example.com', password: 'wrong horse' },
        });
        const unknown = await anyone.refused(refusal, 'POST', '/v1/login', {
          body: { email: 'nobody@example.com', password: 'wrong horse' },
        });

        assert.deepEqual(wrong, unknown);
      });

      it('act by login for the own tenant, and for no other', async () => {
        const first = await anyone.signup('one@example.com');
        const second = await anyone.signup('two@example.com');
        const login = anyone.as(await anyone.login('one@example.com'));
        const headers = (id: number) => ({ headers: { 'x-tenant': String(id) } });

        const own = await login.request('GET', '/v1/me', headers(first.tenant_id));

        assert.equal(own.status, 200);
        const foreign = await login.request('GET', '/v1/me', headers(second.tenant_id));
        const missing = await login.request('GET', '/v1/me', headers(123));
        assert.equal(foreign.status, 404);
        assert.equal(foreign.body.toString(), missing.body.toString());
      });

      it('refuse whoever has no live credential', async () => {
        const refusal = { status: 401, code: 'unauthorized' };
        const badChecksum = `${api.key?.slice(0, -1)}${api.key?.endsWith('0') ? '1' : '0'}`;

        for (const key of [null, 'tb_x', badChecksum, 'eyJhbGciOiJub25lIn0.e30.', 'nonsense']) {
          await anyone.as(key).refused(refusal, 'GET', '/v1/me');
          await anyone.as(key).refused(refusal, 'GET', '/v1/namespaces');
        }
        for (const authorization of ['Basic YTpi', 'Bearer', 'Bearer ', String(api.key)]) {
          await anyone.refused(refusal, 'GET', '/v1/me', { headers: { authorization } });
        }
      });

      it('take the key in either header, and refuse two that differ', async () => {
        const key = String(api.key);
        const other = (await anyone.signup('other-key@example.com')).key;
        const send = (headers: Record<string, string>) => anyone.request('GET', '/v1/me', { headers });

        assert.equal((await send({ 'x-api-key': key })).status, 200);
        assert.equal((await send({ authorization: `bearer ${key}` })).status, 200);
        assert.equal((await send({ 'x-api-key': key, authorization: `Bearer ${key}` })).status, 200);
        const headers = { 'x-api-key': other, authorization: `Bearer ${key}` };
        await anyone.refused({ status: 400, code: 'bad_request' }, 'GET', '/v1/me', { headers });
      });
    });

    describe('keys', () => {
      it('are made with the scope write, shown once, listed newest first', async () => {
        const owner = anyone.as((await anyone.signup('keys@example.com')).key);

        const made = await owner.createKey({ name: 'first' });
        const limited = await owner.createKey({
          name: 'second',
          scope: 'read',
          namespaces: ['notes', 'user-*'],
          rate_per_s: 5,
          cap_queries: 7,
        });
        const list = await owner.call<KeyItem[]>('GET', '/v1/keys');

        assert.equal(made.scope, 'write');
        assert.deepEqual(made.namespaces, []);
        assert.deepEqual(list.map((key) => key.name).slice(0, 2), ['second', 'first']);
        assert.equal(list.length, 3);
        assert.equal(JSON.stringify(list).includes(limited.key), false);
        assert.deepEqual(
          { ...list[0], created_at: '', last_used_at: null },
          {
            id: limited.id,
            name: 'second',
            prefix: limited.prefix,
            scope: 'read',
            namespaces: ['notes', 'user-*'],
            rate_per_s: 5,
            cap_queries: 7,
            cap_writes: null,
            used_queries: 0,
            used_writes: 0,
            created_at: '',
            last_used_at: null,
            created_by: 'keys@example.com',
          },
        );
      });

      it('are refused everywhere from the moment they are revoked', async () => {
        const owner = anyone.as((await anyone.signup('revoke@example.com')).key);
        await owner.put('notes', [{ id: 'a', text: 'a' }]);
        const requests = [
          ['GET', '/v1/me'],
          ['GET', '/v1/namespaces'],
          ['GET', '/v1/namespaces/notes/docs/a'],
          ['POST', '/v1/namespaces/notes/search', {}],
          ['POST', '/v1/namespaces/notes/docs', { docs: [{ id: 'late', text: 'late' }] }],
        ] as const;

        for (let round = 0; round < 10; round++) {
          const key = await owner.createKey({ name: `round ${round}` });
          const user = anyone.as(key.key);
          // Used before, so that whoever keeps keys in memory has this one.
          await user.get('notes', 'a');
          let revoked = false;
          const during = Promise.all(Array.from({ length: 8 }, () => useUntilRefused(user, () => revoked)));
          await owner.revokeKey(key.id);
          revoked = true;
          const after = requests.map(([method, path, body]) => user.request(method, path, { body }));

          for (const answer of await Promise.all(after)) assert.equal(answer.status, 401);
          assert.deepEqual(
            await during,
            Array.from({ length: 8 }, () => true),
          );
          await owner.refused({ status: 404, code: 'not_found' }, 'DELETE', `/v1/keys/${key.id}`);
        }
        await owner.refused({ status: 404, code: 'not_found' }, 'GET', documentPath('notes', 'late'));
      });

      it('of another tenant do not exist', async () => {
        const foreign = await anyone.signup('foreign-key@example.com');
        const refusal = { status: 404, code: 'not_found' };

        const theirs = await api.refused(refusal, 'DELETE', `/v1/keys/${foreign.key_id}`);
        const nobodys = await api.refused(refusal, 'DELETE', '/v1/keys/12345');

        assert.deepEqual(theirs, nobodys);
        await anyone.as(foreign.key).me();
      });

      it('can do what their scope allows and no more', async () => {
        await api.put('scopes', [{ id: 'a', text: 'a' }]);
        const forbidden = { status: 403, code: 'forbidden' };
        const clients = new Map<string, ApiClient>();
        for (const scope of ['read', 'write', 'admin']) {
          clients.set(scope, anyone.as((await api.createKey({ name: scope, scope })).key));
        }
        const reads = [
          ['GET', '/v1/namespaces'],
          ['GET', '/v1/namespaces/scopes'],
          ['GET', '/v1/namespaces/scopes/docs/a'],
          ['GET', '/v1/namespaces/scopes/search?q=a'],
          ['POST', '/v1/namespaces/scopes/count', {}],
          ['POST', '/v1/namespaces/scopes/warm'],
        ] as const;
        const writes = [
          ['POST', '/v1/namespaces/scopes/docs', { docs: [{ id: 'b', text: 'b' }] }],
          ['PATCH', '/v1/namespaces/scopes/docs', { docs: [{ id: 'b', text: 'c' }] }],
          ['POST', '/v1/namespaces/scopes/delete', { ids: ['b'] }],
          ['POST', '/v1/namespaces', { name: 'scopes-made' }],
          ['DELETE', '/v1/namespaces/scopes-made'],
        ] as const;
        const keys = [
          ['GET', '/v1/keys'],
          ['POST', '/v1/keys', { name: 'more' }],
        ] as const;

        for (const [scope, allowed, refused] of [
          ['read', [...reads], [...writes, ...keys]],
          ['write', [...reads, ...writes], [...keys]],
          ['admin', [...reads, ...writes, ...keys], []],
        ] as const) {
          const client = clients.get(scope) ?? api;
          for (const [method, path, body] of allowed) await client.call(method, path, body);
          for (const [method, path, body] of refused) await client.refused(forbidden, method, path, { body });
        }
      });

      it('with limits do not manage keys, even with the scope admin', async () => {
        const refusal = { status: 403, code: 'forbidden' };
        for (const limit of [
          { namespaces: ['a*'] },
          { rate_per_s: 100 },
          { cap_queries: 9 },
          { cap_writes: 9 },
        ]) {
          const made = await api.createKey({ name: 'limited', scope: 'admin', ...limit });

          await anyone.as(made.key).refused(refusal, 'GET', '/v1/keys');
          await anyone.as(made.key).refused(refusal, 'POST', '/v1/keys', { body: { name: 'free' } });
        }
      });

      it('with patterns see the namespaces of their patterns alone', async () => {
        for (const name of ['pat-a', 'pat-ab', 'pat-b', 'patience']) await api.createNamespace(name);
        const limited = await api.createKey({ name: 'limited', namespaces: ['pat-a*', 'patience'] });
        const user = anyone.as(limited.key);
        const forbidden = { status: 403, code: 'forbidden' };

        const names = (await user.listNamespaces()).namespaces.map(({ name }) => name);

        assert.deepEqual(names, ['pat-a', 'pat-ab', 'patience']);
        await user.put('pat-a-new', [{ id: 'x', text: 'x' }]);
        for (const name of ['pat-b', 'pat-none', 'patience2', 'pa']) {
          const path = `/v1/namespaces/${name}`;
          await user.refused({ status: 404, code: 'not_found' }, 'GET', path);
          await user.refused(forbidden, 'POST', `${path}/docs`, { body: { docs: [{ id: 'x', text: 'x' }] } });
          await user.refused(forbidden, 'POST', `${path}/search`, { body: {} });
          await user.refused(forbidden, 'GET', `${path}/docs/x`);
          await user.refused(forbidden, 'DELETE', path);
          await user.refused(forbidden, 'POST', '/v1/namespaces', { body: { name } });
        }
        assert.deepEqual((await user.me()).namespaces, ['pat-a*', 'patience']);
      });
    });

    describe('namespaces', () => {
      it('are created, described, listed by name in pages, deleted', async () => {
        const owner = anyone.as((await anyone.signup('spaces@example.com')).key);
        const names = ['b', 'a', 'c.1', 'c-2', 'c_3', 'c'];
        for (const name of names) assert.equal((await owner.createNamespace(name)).name, name);
        const pages: string[][] = [];
        for (let after = ''; ; ) {
          const page = await owner.listNamespaces(`?limit=2&after=${after}`);
          pages.push(page.namespaces.map(({ name }) => name));
          after = page.next;
          if (after === '') break;
        }

        assert.deepEqual(pages.flat(), [...names].sort());
        assert.deepEqual(
          pages.map((page) => page.length),
          [2, 2, 2],
        );
        await owner.refused({ status: 409, code: 'conflict' }, 'POST', '/v1/namespaces', {
          body: { name: 'a' },
        });
        assert.equal(await owner.deleteNamespace('a'), null);
        for (const method of ['GET', 'DELETE']) {
          await owner.refused({ status: 404, code: 'not_found' }, method, '/v1/namespaces/a');
        }
        assert.equal((await owner.listNamespaces()).namespaces.length, 5);
      });

      it('tell what was written to them', async () => {
        await api.put('counted', [
          { id: 'a', text: 'some text' },
          { id: 'b', text: 'more' },
        ]);
        await api.deleteDocuments('counted', ['a']);

        const described = await api.getNamespace('counted');

        assert.equal(described.docs_written, 3);
        assert.ok(described.bytes_written > 0);
        assert.ok(described.stored_bytes > 0);
        const age = Date.now() - Date.parse(described.created_at);
        assert.ok(age > -60_000 && age < 600_000, described.created_at);
      });

      it('that are made again never show the old documents', async () => {
        for (let round = 0; round < 5; round++) {
          await api.put('again', [
            { id: `old-${round}`, text: 'old words' },
            { id: 'same', text: `round ${round}` },
          ]);
          await api.deleteNamespace('again');
          await api.refused({ status: 404, code: 'not_found' }, 'POST', '/v1/namespaces/again/search', {
            body: {},
          });
          await api.refused({ status: 404, code: 'not_found' }, 'GET', documentPath('again', 'same'));
        }
        const made = await api.put('again', [{ id: 'new', text: 'new' }]);

        assert.equal(made.created, true);
        assert.deepEqual(
          (await api.search('again')).hits.map((hit) => hit.id),
          ['new'],
        );
        assert.equal((await api.count('again')).count, 1);
        assert.equal((await api.getNamespace('again')).docs_written, 1);
      });

      it('of one name belong to each tenant apart', async () => {
        const other = anyone.as((await anyone.signup('apart@example.com')).key);
        await api.put('apart', [{ id: 'mine', text: 'mine' }]);
        const refusal = { status: 404, code: 'not_found' };

        await other.refused(refusal, 'GET', documentPath('apart', 'mine'));
        await other.refused(refusal, 'POST', '/v1/namespaces/apart/search', { body: {} });
        await other.refused(refusal, 'DELETE', '/v1/namespaces/apart');
        assert.equal((await other.put('apart', [{ id: 'theirs', text: 'theirs' }])).created, true);

        assert.deepEqual(
          (await other.search('apart')).hits.map((hit) => hit.id),
          ['theirs'],
        );
        assert.deepEqual(
          (await api.search('apart')).hits.map((hit) => hit.id),
          ['mine'],
        );
      });

      it('are created once, however many first writes race', async () => {
        const results = await Promise.all(
          Array.from({ length: 20 }, (_, i) => api.put('raced', [{ id: `d${i}`, text: 'x' }])),
        );

        assert.equal(results.filter(({ created }) => created).length, 1);
        assert.deepEqual(
          results.map(({ version }) => version).sort((a, b) => a - b),
          upTo(20),
        );
        assert.equal((await api.count('raced')).count, 20);
      });
    });

    describe('documents', () => {
      it('come back as they went in, at once', async () => {
        const meta =
          '{"n":435090932899640449,"f":3.0,"s":"ä\\u0000","b":true,"nested":{"a":[1,null]},"__proto__":{"x":1}}';
        const text = 'Zeile eins\nline two 語 😀\u2028end';
        const body = `{"docs":[{"id":"whole","text":${JSON.stringify(text)},"meta":${meta}}]}`;

        const written = await api.call<{ version: number }>('POST', '/v1/namespaces/whole/docs', body);
        const answer = await api.request('GET', documentPath('whole', 'whole'));

        const { text: readText } = answer.json() as { text: string };
        assert.equal(readText, text);
        assert.ok(answer.body.toString().includes(`"meta":${meta}`), answer.body.toString());
        assert.equal(written.version, 1);
      });

      it('have ids that are opaque: slashes, dots, escapes, spaces, any language', async () => {
        const ids = [
          'a/b/c',
          '/lead',
          'trail/',
          'a//b',
          '..',
          '../../etc/passwd',
          '.',
          'a?b#c&d=e',
          '100%',
          '%41',
          'a+b c',
        ];
        ids.push(
          'ключ/鍵/😀',
          '"quoted\\"',
          "it's",
          '{id}',
          '__proto__',
          'constructor',
          `${'é'.repeat(256)}`,
        );
        await api.put(
          'ids',
          ids.map((id) => ({ id, text: `text of ${id}` })),
        );

        for (const id of ids) {
          const byParts = await api.get('ids', id);
          const whole = await api.request('GET', `/v1/namespaces/ids/docs/${encodeURIComponent(id)}`);

          assert.equal(byParts.id, id);
          assert.equal(byParts.text, `text of ${id}`);
          assert.equal((whole.json() as { id: string }).id, id);
        }
        const found = await api.searchAll('ids');
        assert.deepEqual(found.map((hit) => hit.id).sort(), [...ids].sort());
        assert.equal((await api.deleteDocuments('ids', ids)).deleted, ids.length);
        assert.equal((await api.count('ids')).count, 0);
      });

      it('refuse a path whose escapes are not UTF-8', async () => {
        const refusal = { status: 400, code: 'bad_request' };
        for (const id of ['%', '%zz', '%ff', '%c3', 'a%2']) {
          await api.refused(refusal, 'GET', `/v1/namespaces/ids/docs/${id}`);
        }
      });

      it('written twice in one request: the last one stays', async () => {
        const first = await api.put('twice', [
          { id: 'x', text: 'one' },
          { id: 'y', text: 'y' },
          { id: 'x', text: 'two' },
        ]);

        assert.equal((await api.get('twice', 'x')).text, 'two');
        assert.equal((await api.count('twice')).count, 2);
        assert.equal(first.version, 1);
        assert.deepEqual(
          (await api.search('twice')).hits.map((hit) => hit.id),
          ['x', 'y'],
        );
      });

      it('deleted and put in one request stay', async () => {
        await api.put('both', [{ id: 'x', text: 'old', meta: { old: true } }]);

        const result = await api.put('both', [{ id: 'x', text: 'new' }], { deletes: ['x', 'absent', 'x'] });

        assert.equal(result.written, 1);
        assert.equal(result.deleted, 1);
        const read = await api.get('both', 'x');
        assert.deepEqual([read.text, read.meta], ['new', {}]);
        assert.equal((await api.count('both')).count, 1);
      });

      it('count as deleted where they existed', async () => {
        await api.put('deleted', [
          { id: 'a', text: 'a' },
          { id: 'b', text: 'b' },
        ]);

        assert.equal((await api.deleteDocuments('deleted', ['a', 'absent'])).deleted, 1);
        assert.equal((await api.deleteDocuments('deleted', ['a'])).deleted, 0);
        assert.equal((await api.put('deleted', [], { deletes: ['b'] })).deleted, 1);
        const nothing = await api.deleteDocuments('deleted', []);

        assert.equal(nothing.version, 4);
        await api.refused({ status: 404, code: 'not_found' }, 'GET', documentPath('deleted', 'a'));
      });

      it('are patched key by key, and the second patch builds on the first', async () => {
        await api.put('patched', [{ id: 'x', text: 'text', meta: { a: 1, b: 'two', c: true } }]);

        const result = await api.patch('patched', [
          { id: 'x', meta: { a: null, b: 'new', n: 2 ** 53 } },
          { id: 'x', text: 'changed', meta: { d: [1, 2] } },
        ]);
        const read = await api.get('patched', 'x');

        assert.equal(result.version, 2);
        assert.equal(result.created, false);
        assert.equal(read.text, 'changed');
        assert.deepEqual(read.meta, { b: 'new', c: true, n: 2 ** 53, d: [1, 2] });
      });

      it('that do not exist are not patched, nor are the others of the request', async () => {
        await api.put('half', [{ id: 'x', text: 'before' }]);
        const body = {
          docs: [
            { id: 'x', text: 'after' },
            { id: 'absent', text: 'after' },
          ],
        };

        const refusal = { status: 404, code: 'not_found', fields: ['docs[1].id'] };
        await api.refused(refusal, 'PATCH', '/v1/namespaces/half/docs', { body });

        assert.equal((await api.get('half', 'x')).text, 'before');
        assert.equal((await api.search('half')).version, 1);
      });

      it('are not written by halves: one wrong document refuses all', async () => {
        const docs = [...upTo(50).map((i) => ({ id: `d${i}`, text: 'x' })), { id: '', text: 'x' }];

        const refusal = { status: 422, code: 'invalid', fields: ['docs[50].id'] };
        await api.refused(refusal, 'POST', '/v1/namespaces/atomic/docs', { body: { docs } });

        await api.refused({ status: 404, code: 'not_found' }, 'GET', '/v1/namespaces/atomic');
      });

      it('patches and deletes do not make a namespace', async () => {
        const refusal = { status: 404, code: 'not_found' };
        const path = '/v1/namespaces/never';
        await api.refused(refusal, 'PATCH', `${path}/docs`, { body: { docs: [{ id: 'a', text: 'a' }] } });
        await api.refused(refusal, 'POST', `${path}/delete`, { body: { ids: ['a'] } });
        await api.refused(refusal, 'POST', `${path}/docs`, { body: { deletes: ['a'] } });
        await api.refused(refusal, 'GET', path);
      });

      it('written side by side get versions that rise without a gap', async () => {
        await api.createNamespace('rising');
        const results = await Promise.all(
          upTo(100).map((i) =>
            api.put('rising', [{ id: `d${i % 10}`, text: `${i}` }], { wait: i % 2 === 0 }),
          ),
        );

        assert.deepEqual(
          results.map(({ version }) => version).sort((a, b) => a - b),
          upTo(100),
        );
        assert.ok(results.every(({ created }) => !created));
        const listed = await api.searchAll('rising');
        // Newest first is by commit, so the last version of each id decides.
        const expected = new Map(
          results
            .map(({ version }, i) => ({ version, id: `d${(i + 1) % 10}`, text: `${i + 1}` }))
            .sort((a, b) => a.version - b.version)
            .map(({ id, text }) => [id, text]),
        );
        for (const hit of listed) assert.equal(hit.line, expected.get(hit.id));
        assert.equal(listed.length, 10);
      });

      it('patched side by side lose no patch', async () => {
        await api.put('counter', [{ id: 'x', text: 'x' }]);

        await Promise.all(upTo(60).map((i) => api.patch('counter', [{ id: 'x', meta: { [`k${i}`]: i } }])));

        assert.equal(Object.keys((await api.get('counter', 'x')).meta).length, 60);
      });

      it('of the largest request are written together', async () => {
        const docs = Array.from({ length: 10_000 }, (_, i) => ({ id: `doc-${i}`, text: `text number ${i}` }));

        const result = await api.put('largest', docs);

        assert.equal(result.written, 10_000);
        const found = await api.count('largest', { q: 'NUMBER 999' });
        assert.equal(found.count, 11);
      });
    });

    describe('search', () => {
      before(async () => {
        await api.put('words', [
          { id: 'one', text: 'The quick brown fox', meta: { kind: 'a', n: 1, ok: true } },
          { id: 'two', text: 'first line\nthe QUICK red fox\nlast', meta: { kind: 'b', n: 2.5 } },
          { id: 'three', text: 'nothing here', meta: { kind: 'a', n: 3, ok: false } },
          { id: 'four', text: '', meta: { kind: 'c' } },
        ]);
      });

      it('finds literal text whatever its case, newest first', async () => {
        const { hits, next, docs, partial, version } = await api.search('words', { q: 'quick' });

        assert.deepEqual(
          hits.map((hit) => hit.id),
          ['two', 'one'],
        );
        assert.deepEqual([next, docs, partial, version], ['', 4, false, 1]);
        assert.deepEqual(
          { ...hits[0], written_at: '' },
          {
            id: 'two',
            match: 'QUICK',
            line: 'the QUICK red fox',
            line_number: 2,
            start: 15,
            end: 20,
            meta: { kind: 'b', n: 2.5 },
            written_at: '',
          },
        );
        assert.match(hits[0]?.written_at ?? '', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3,6}Z$/);
      });

      it('finds by regex, case-sensitive unless asked otherwise', async () => {
        const ids = async (q: string) => {
          return (await api.search('words', { q, regex: true })).hits.map((hit) => hit.id);
        };

        assert.deepEqual(await ids('qu[a-z]+k'), ['one']);
        assert.deepEqual(await ids('(?i)qu[a-z]+k'), ['two', 'one']);
        assert.deepEqual(await ids('^nothing'), ['three']);
        assert.deepEqual(await ids('fox$'), ['one']);
        assert.deepEqual(await ids('(?m)fox$'), ['two', 'one']);
      });

      it('refuses a pattern that is no RE2 regex', async () => {
        for (const q of ['(', '[', '(?=a)', '\\1', 'a{2000}{2000}']) {
          const refusal = { status: 422, code: 'invalid', fields: ['q'] };
          await api.refused(refusal, 'POST', '/v1/namespaces/words/search', { body: { q, regex: true } });
        }
      });

      it('keeps what the filter lets through', async () => {
        const ids = async (filter: object) =>
          (await api.search('words', { filter })).hits.map((hit) => hit.id);

        assert.deepEqual(await ids({ kind: 'a' }), ['three', 'one']);
        assert.deepEqual(await ids({ kind: ['b', 'c'] }), ['four', 'two']);
        assert.deepEqual(await ids({ kind: { ne: 'a' } }), ['four', 'two']);
        assert.deepEqual(await ids({ n: { gt: 1, lte: 3 } }), ['three', 'two']);
        assert.deepEqual(await ids({ n: 3.0, ok: false }), ['three']);
        assert.deepEqual(await ids({ ok: { ne: true } }), ['four', 'three', 'two']);
        assert.deepEqual(await ids({ n: '3' }), []);
        for (const filter of [{ n: { gt: 'a' } }, { n: { like: 'a' } }, [], 'a', { n: {} }]) {
          const refusal = { status: 422, code: 'invalid' };
          await api.refused(refusal, 'POST', '/v1/namespaces/words/search', { body: { filter } });
        }
      });

      it('answers GET as it answers POST', async () => {
        const filter = encodeURIComponent('{"kind":"a"}');
        const path = `/v1/namespaces/words/search?q=The%20Quick&filter=${filter}&limit=5&regex=false`;

        const found = await api.call<{ hits: { id: string }[] }>('GET', path);
        const counted = await api.call<{ count: number }>(
          'GET',
          `/v1/namespaces/words/count?q=quick&filter=${filter}`,
        );

        assert.deepEqual(
          found.hits.map((hit) => hit.id),
          ['one'],
        );
        assert.equal(counted.count, 1);
        const estimated = await api.call('GET', '/v1/namespaces/words/count?q=quick&exact=false');
        const { count, low, high, exact } = estimated as Record<string, unknown>;
        assert.deepEqual({ low, high, exact }, { low: count, high: count, exact: true });
        for (const query of [
          'limit=0',
          'limit=x',
          'regex=maybe',
          'unknown=1',
          'filter=%7B',
          'exact=maybe',
          'cursor=abc',
        ]) {
          const name = query.split('=')[0] ?? '';
          const refusal = { status: 422, code: 'invalid', fields: [name] };
          await api.refused(refusal, 'GET', `/v1/namespaces/words/search?${query}`);
        }
      });

      it('pages through all hits while others write, and no later write shifts a page', async () => {
        const docs = Array.from({ length: 150 }, (_, i) => ({
          id: `p${i}`,
          text: `page me ${i}`,
          meta: { i },
        }));
        for (let at = 0; at < docs.length; at += 30) await api.put('paged', docs.slice(at, at + 30));
        const seen: string[] = [];
        let writes = 0;

        for (let cursor = ''; ; ) {
          const page = await api.search('paged', { q: 'page me', limit: 7, cursor });
          seen.push(...page.hits.map((hit) => hit.id));
          cursor = page.next;
          if (cursor === '') break;
          assert.equal(page.hits.length, 7);
          await api.put('paged', [{ id: `later${writes++}`, text: 'page me too' }]);
        }

        assert.deepEqual(seen, docs.map(({ id }) => id).reverse());
        assert.ok(writes >= 20);
        const first = await api.search('paged', { q: 'page me', limit: 3 });
        const refusal = { status: 422, code: 'invalid', fields: ['cursor'] };
        const body = { q: 'page', limit: 3, cursor: first.next };
        await api.refused(refusal, 'POST', '/v1/namespaces/paged/search', { body });
      });

      it('counts exactly, with the newest ids', async () => {
        const counted = await api.count('words', { q: 'fox' });
        const all = await api.count('words');

        assert.deepEqual([counted.count, counted.exact, counted.ids], [2, true, ['two', 'one']]);
        assert.deepEqual([all.count, all.docs], [4, 4]);
        assert.deepEqual(all.ids, ['four', 'three', 'two', 'one']);
      });

      it('waits for a version it was told of, and says so when it does not come', async () => {
        await api.createNamespace('versions');
        const waiting = api.search('versions', { min_version: 2 });
        await api.put('versions', [{ id: 'a', text: 'a' }]);
        await api.put('versions', [{ id: 'b', text: 'b' }]);

        assert.ok((await waiting).version >= 2);
        assert.equal((await api.get('versions', 'a', '?min_version=2')).id, 'a');
        const refusal = { status: 503, code: 'unavailable' };
        await Promise.all([
          api.refused(refusal, 'POST', '/v1/namespaces/versions/search', { body: { min_version: 9 } }),
          api.refused(refusal, 'POST', '/v1/namespaces/versions/count', { body: { min_version: 9 } }),
          api.refused(refusal, 'GET', `${documentPath('versions', 'a')}?min_version=9`),
        ]);
      });

      it('says what it read, and warms a namespace', async () => {
        const warmed = await api.call<{ temperature: string; queries: unknown }>(
          'POST',
          '/v1/namespaces/words/warm',
          { queries: ['fox', 'red'] },
        );
        const { temperature, store_gets, store_bytes, cpu_ms, timed_out } = await api.search('words', {
          q: 'fox',
        });

        assert.equal(warmed.temperature, 'warm');
        assert.deepEqual(warmed.queries, [
          { q: 'fox', ready: true },
          { q: 'red', ready: true },
        ]);
        assert.deepEqual([temperature, store_gets, store_bytes, timed_out], ['warm', 0, 0, false]);
        assert.ok(cpu_ms >= 0);
      });

      it('by a vector ranks what the text and the filter let through', async () => {
        const vector = { dims: 3, metric: 'euclidean' };
        const made = await api.call<Namespace>('POST', '/v1/namespaces', { name: 'places', vector });
        await api.put('places', [
          { id: 'pier', text: 'an old pier', vector: [1, 0, 0], meta: { sea: true } },
          { id: 'mole', text: 'a new mole', vector: [0, 0.5, 0.1], meta: { sea: true } },
          { id: 'hill', vector: [0, 0, 9] },
          { id: 'word', text: 'a pier without a place' },
        ]);
        const search = (request: object) => api.search('places', { vector: [1, 0, 0.25], ...request });
        const ids = async (request: object) => (await search(request)).hits.map(({ id }) => id);

        const { hits, next } = await search({ include: ['vector'] });
        assert.deepEqual(made.vector, vector);
        assert.deepEqual((await api.getNamespace('places')).vector, vector);
        assert.equal(next, '');
        assert.deepEqual(
          hits.map(({ id, match, line, distance, score }) => [id, match, line, distance, score]),
          [
            ['pier', '', 'an old pier', 0.25, 0.8],
            ['mole', '', 'a new mole', hits[1]?.distance, 1 / (1 + (hits[1]?.distance ?? 0))],
            ['hill', '', '', hits[2]?.distance, 1 / (1 + (hits[2]?.distance ?? 0))],
          ],
        );
        assert.deepEqual(hits[1]?.vector, [0, 0.5, 0.1]);
        assert.deepEqual(await ids({ q: 'pier' }), ['pier']);
        assert.deepEqual(await ids({ filter: { sea: true } }), ['pier', 'mole']);
        assert.deepEqual(await ids({ limit: 1, vector: [0, 0, 8] }), ['hill']);
        assert.deepEqual(await ids({ rank: 'rrf', q: 'pier' }), ['pier', 'word']);
        assert.deepEqual((await api.get('places', 'mole')).vector, [0, 0.5, 0.1]);

        await api.patch('places', [{ id: 'hill', text: 'a hill' }]);
        await api.patch('places', [{ id: 'mole', vector: [1, 0, 0.25] }]);
        assert.deepEqual((await api.get('places', 'hill')).vector, [0, 0, 9]);
        assert.deepEqual(await ids({}), ['mole', 'pier', 'hill']);
      });

      it('by a vector of another length, or where there are none, is refused', async () => {
        const refusal = (...fields: string[]) => ({ status: 422, code: 'invalid', fields });
        const bytes = Buffer.from(Float32Array.of(0.5, -1).buffer).toString('base64');
        await api.put('flat', [{ id: 'a', text: 'a', vector_b64: bytes }]);
        await api.put('wordy', [{ id: 'a', text: 'a' }]);
        const post = (path: string, body: object, ...fields: string[]) =>
          api.refused(refusal(...fields), 'POST', `/v1/namespaces/${path}`, { body });

        assert.deepEqual((await api.getNamespace('flat')).vector, { dims: 2, metric: 'cosine' });
        assert.deepEqual((await api.get('flat', 'a')).vector, [0.5, -1]);
        assert.equal((await api.getNamespace('wordy')).vector, undefined);
        await post('flat/search', { vector: [1, 2, 3] }, 'vector');
        await post('flat/search', { vector: [1, 1e39] }, 'vector');
        await post('wordy/search', { vector: [1] }, 'vector');
        await post(
          'flat/docs',
          {
            docs: [
              { id: 'b', text: 'b' },
              { id: 'c', vector: [1] },
            ],
          },
          'docs[1].vector',
        );
        await post('wordy/docs', { docs: [{ id: 'b', vector: [1] }] }, 'docs[0].vector');
        assert.equal((await api.count('flat')).count, 1);
      });

      it('of a namespace that does not exist answers 404', async () => {
        const refusal = { status: 404, code: 'not_found' };
        for (const what of ['search', 'count', 'warm']) {
          await api.refused(refusal, 'POST', `/v1/namespaces/absent/${what}`, { body: {} });
        }
      });
    });

    describe('SQL', () => {
      const sql = (namespace: string, text: string) =>
        api.call<SqlAnswer>('POST', `/v1/namespaces/${namespace}/sql`, { sql: text });

      before(async () => {
        await api.put('ledger', [
          { id: 'a', text: 'Invoice paid', meta: { city: 'Oslo', cents: 1250 } },
          { id: 'b', text: 'Invoice open', meta: { city: 'Rome', cents: 99, late: true } },
          { id: 'c', text: 'Refund', meta: { city: 'Oslo', cents: -50 } },
        ]);
      });

      it('answers over what was written, at once', async () => {
        const answer = await sql(
          'ledger',
          'SELECT city, COUNT(*) AS bills, SUM(cents) FROM docs GROUP BY city ORDER BY bills DESC',
        );

        const { took_ms, cpu_ms, store_gets, store_bytes, ...rest } = answer;
        assert.deepEqual(rest, {
          namespace: 'ledger',
          columns: ['city', 'bills', 'c3'],
          types: ['text', 'int', 'int'],
          rows: [
            ['Oslo', 2, 1200],
            ['Rome', 1, 99],
          ],
          chunks: 1,
          scanned: 1,
          partial: false,
          truncated: false,
          temperature: 'warm',
          timed_out: false,
        });
        assert.ok(took_ms > 0 && cpu_ms > 0 && store_gets === 0 && store_bytes === 0);
      });

      it('finds text and values together', async () => {
        const { rows } = await sql(
          'ledger',
          "SELECT id FROM docs WHERE contains(text, 'invoice') AND NOT grep(text, 'open') AND cents > 0",
        );

        assert.deepEqual(rows, [['a']]);
      });

      it('finds documents by id, imported ones too', async () => {
        await api.call('POST', '/v1/namespaces/by-id/import?id=k', 'k,n\na,1\nb,2\nc,3\nb,4\n');
        await api.put('by-id', [{ id: 'c', text: '', meta: { n: 5 } }]);
        const ask = async (where: string) =>
          (await sql('by-id', `SELECT id, n FROM docs WHERE ${where} ORDER BY id`)).rows;

        assert.deepEqual(await ask("id = 'b'"), [['b', 4]]);
        assert.deepEqual(await ask("id IN ('c', 'a', 'nobody') AND n > 1"), [['c', 5]]);
        assert.deepEqual(await ask("'a' = id OR n = 5"), [
          ['a', 1],
          ['c', 5],
        ]);
        assert.deepEqual(await ask("id = 'nobody'"), []);
      });

      it('sees neither what was replaced nor what was deleted', async () => {
        await api.put(
          'changing',
          [1, 2, 3].map((n) => ({ id: `d${n}`, text: '', meta: { n } })),
        );
        await api.put('changing', [{ id: 'd1', text: '', meta: { n: 10 } }]);
        await api.call('POST', '/v1/namespaces/changing/delete', { ids: ['d3'] });

        const { rows } = await sql('changing', 'SELECT COUNT(*), SUM(n) FROM docs');
        assert.deepEqual(rows, [[2, 12]]);
      });

      it('lists columns', async () => {
        const { rows } = await sql('ledger', 'SHOW COLUMNS');

        assert.deepEqual(rows, [
          ['id', 'text', 1],
          ['city', 'text', 1],
          ['cents', 'int', 1],
          ['late', 'int', 1],
        ]);
      });

      it('says where a statement is wrong', async () => {
        const path = '/v1/namespaces/ledger/sql';
        const body = { sql: 'SELECT city\nFROM docs WHERE cents / 2 > 1' };

        const error = await api.refused({ status: 422, code: 'invalid' }, 'POST', path, { body });

        assert.deepEqual(error.fields, { sql: 'line 2, column 23: / is not supported: + and - are' });
        for (const wrong of [{}, { sql: '' }, { sql: 7 }, { sql: 'SELECT 1 FROM docs', limit: 0 }])
          await api.refused({ status: 422, code: 'invalid' }, 'POST', path, { body: wrong });
        const missing = { status: 404, code: 'not_found' };
        const elsewhere = '/v1/namespaces/nowhere/sql';
        await api.refused(missing, 'POST', elsewhere, { body: { sql: 'SHOW COLUMNS' } });
      });
    });

    describe('import', () => {
      const path = '/v1/namespaces/imported/import';
      const csv =
        'key,note,day,n\na,"The tide, at noon",2024-01-02,1\nb,Low water,2024-01-03,435090932899640449\n';

      it('makes documents of rows, all at once', async () => {
        const answer = await api.call<ImportResult>('POST', `${path}?id=key&text=note`, csv);

        const { took_ms, stored_bytes, ...rest } = answer;
        assert.deepEqual(rest, { written: 2, deleted: 0, version: 1, created: true, rows: 2, text_only: 0 });
        assert.ok(took_ms > 0 && stored_bytes > 0);
        assert.deepEqual(
          (await api.search('imported', { q: 'TIDE' })).hits.map(({ id }) => id),
          ['a'],
        );
        const sql = "SELECT key, day, n FROM docs WHERE day > '2024-01-02'";
        const { rows, types } = await api.call<SqlAnswer>('POST', '/v1/namespaces/imported/sql', { sql });
        assert.deepEqual([types, rows.length], [['text', 'date', 'int'], 1]);
      });

      it('takes files in chunks, of every format', async () => {
        const lines = Array.from({ length: 5_000 }, (_, n) => Buffer.from(`{"n":${n},"note":"line ${n}"}\n`));
        const options = { chunks: lines };
        const answer = await api.request(
          'POST',
          '/v1/namespaces/lines/import?format=ndjson&text=note',
          options,
        );

        assert.deepEqual([answer.status, (answer.json() as ImportResult).rows], [200, 5_000]);
        assert.equal((await api.count('lines', { q: 'line 4999' })).count, 1);
      });

      it('takes files that several threads read, and numbers their rows as one would', async () => {
        const rows = 150_000;
        const row = (n: number) => `${n * 2},${n % 9 === 0 ? `"row\n${n}"` : `row ${n}`},${'x'.repeat(50)}\n`;
        const lines = Array.from({ length: rows }, (_, n) => row(n + 1));
        const fileOf = (all: readonly string[]) => Buffer.from(`n,note,padding\n${all.join('')}`);
        const body = fileOf(lines);
        assert.ok(body.length > limits.importHelpedBytesMin);
        const path = '/v1/namespaces/long/import?format=csv&text=note&skip=padding,note';

        const answer = await api.request('POST', path, { body });

        assert.deepEqual([answer.status, (answer.json() as ImportResult).rows], [200, rows]);
        for (const n of [1, 65_536, 65_537, 131_073, rows]) {
          const { meta } = await api.call<{ meta: object }>('GET', `/v1/namespaces/long/docs/${n}`);
          assert.deepEqual(meta, { n: n * 2 });
        }
        const sql = 'SELECT COUNT(*), MIN(n), MAX(n), SUM(n) FROM docs';
        const answered = await api.call<SqlAnswer>('POST', '/v1/namespaces/long/sql', { sql });
        assert.deepEqual(answered.rows, [[rows, 2, 2 * rows, rows * (rows + 1)]]);
        const wrong = fileOf(lines.with(140_000, '1,"never\n').with(100_000, '1,2,3,4\n'));
        const refused = await api.refused({ status: 422, code: 'invalid' }, 'POST', path, { body: wrong });
        assert.match(refused.error, /row 100001: it has 4 fields/u);
      });

      it('takes files that are packed, whole or in chunks', async () => {
        const lines = Buffer.from(Array.from({ length: 20_000 }, (_, n) => `{"n":${n}}\n`).join(''));
        for (const [encoding, packed] of [
          ['gzip', gzipSync(lines)],
          ['zstd', zstdSync(lines)],
          ['identity', lines],
        ] as const)
          for (const content of [
            { body: packed },
            { chunks: [packed.subarray(0, 999), packed.subarray(999)] },
          ]) {
            const name = `packed-${encoding}`;
            const options = { ...content, headers: { 'content-encoding': encoding } };
            const answer = await api.request('POST', `/v1/namespaces/${name}/import?format=ndjson`, options);
            assert.equal(answer.status, 200, answer.body.toString());
            assert.equal((await api.count(name, { filter: { n: 19_999 } })).count, 1);
          }
      });

      it('refuses a packed file that is a bomb, cut, or packed otherwise, while a neighbour is served', async () => {
        const bomb = gzipSync(Buffer.alloc(48 * 1024 * 1024));
        const packed = gzipSync(csv);
        for (const [status, code, encoding, body] of [
          [413, 'too_large', 'gzip', Buffer.concat([bomb, bomb])],
          [413, 'too_large', 'zstd', zstdSync(Buffer.alloc(200 * 1024 * 1024))],
          [422, 'invalid', 'gzip', packed.subarray(0, -5)],
          [422, 'invalid', 'zstd', packed],
          [415, 'bad_request', 'br', packed],
          [415, 'bad_request', 'gzip, gzip', packed],
          [400, 'bad_request', 'gzip', ''],
        ] as const) {
          const options = { body, headers: { 'content-encoding': encoding } };
          const refused = api.refused({ status, code }, 'POST', '/v1/namespaces/bombed/import', options);
          const [, found] = await Promise.all([refused, api.search('imported', { q: 'TIDE' })]);
          assert.equal(found.hits.length, 1);
        }
        await api.refused({ status: 404, code: 'not_found' }, 'GET', '/v1/namespaces/bombed');
      });

      it('refuses what is wrong, and then nothing is there', async () => {
        const invalid = { status: 422, code: 'invalid' };
        const elsewhere = '/v1/namespaces/elsewhere/import';
        const error = await api.refused(invalid, 'POST', elsewhere, { body: 'a,b\n1\n' });
        assert.deepEqual(error.fields, { file: 'row 1: it has 1 field where there are 2 columns' });
        await api.refused(invalid, 'POST', `${elsewhere}?format=xml`, { body: csv });
        await api.refused(invalid, 'POST', `${elsewhere}?format=parquet`, { body: csv });
        await api.refused(invalid, 'POST', `${elsewhere}?schema=a`, { body: csv });
        await api.refused({ status: 400, code: 'bad_request' }, 'POST', elsewhere, { body: '' });
        await api.refused({ status: 404, code: 'not_found' }, 'POST', '/v1/namespaces/elsewhere/sql', {
          body: { sql: 'SHOW COLUMNS' },
        });
        const reader = await api.call<NewKey>('POST', '/v1/keys', { name: 'reads', scope: 'read' });
        await api
          .as(reader.key)
          .refused({ status: 403, code: 'forbidden' }, 'POST', elsewhere, { body: csv });
      });
    });

    describe('the surface', () => {
      it('answers health and its own description without a key', async () => {
        const health = await anyone.request('GET', '/healthz');
        const description = await anyone.request('GET', '/openapi.json');

        assert.equal(health.body.toString(), 'ok');
        assert.match(String(health.headers['content-type']), /^text\/plain/);
        const { openapi, paths, servers } = description.json() as Record<string, unknown>;
        assert.equal(openapi, '3.1.0');
        assert.deepEqual(servers, [{ url: server.url }]);
        assert.ok(Object.hasOwn(paths as object, '/v1/namespaces/{name}/search'));
      });

      it('answers HEAD as GET without the body', async () => {
        await api.put('heads', [{ id: 'a', text: 'a' }]);
        for (const path of [
          '/healthz',
          '/openapi.json',
          '/v1/me',
          '/v1/namespaces',
          documentPath('heads', 'a'),
        ]) {
          const get = await api.request('GET', path);
          const head = await api.request('HEAD', path);

          assert.equal(head.status, 200, path);
          assert.equal(head.headers['content-type'], get.headers['content-type'], path);
          if (!path.includes('/docs/'))
            assert.equal(head.headers['content-length'], String(get.body.byteLength), path);
        }
        assert.equal((await api.request('HEAD', documentPath('heads', 'absent'))).status, 404);
        assert.equal((await api.request('HEAD', '/nothing')).status, 404);
      });

      it('says 404 where nothing is and 405 where the method is wrong', async () => {
        for (const path of [
          '//',
          '/v1',
          '/v2/me',
          '/v1/me/',
          '/v1/namespaces/',
          '/v1//me',
          '/V1/me',
          '/v1/namespaces/a/docs',
        ]) {
          const answer = await anyone.request('GET', path);
          assert.ok([404, 405].includes(answer.status), `${path}: ${answer.status}`);
        }
        for (const [method, path, allow] of [
          ['PUT', '/v1/namespaces', 'GET, HEAD, POST'],
          ['DELETE', '/v1/me', 'GET, HEAD'],
          ['GET', '/v1/signup', 'POST'],
          ['GET', '/v1/namespaces/a/docs', 'PATCH, POST'],
          ['OPTIONS', '/healthz', 'GET, HEAD'],
          ['POST', '/', 'GET, HEAD'],
        ] as const) {
          const answer = await anyone.request(method, path);
          assert.equal(answer.status, 405, `${method} ${path}`);
          assert.deepEqual(String(answer.headers.allow).split(', ').sort(), allow.split(', '));
        }
      });

      it('says of what it cannot do yet that it is not built', async () => {
        await api.refused({ status: 501, code: 'not_implemented' }, 'POST', '/v1/billing/checkout');
      });

      it('gives every request an id of its own', async () => {
        const answers = await Promise.all(upTo(20).map(() => anyone.request('GET', '/healthz')));

        assert.equal(new Set(answers.map((answer) => answer.headers['x-request-id'])).size, 20);
      });

      it('answers requests that a client sends without waiting in their order, or ends the connection', async () => {
        await api.put(
          'pipeline',
          upTo(9).map((i) => ({ id: `d${i}`, text: `${i}` })),
        );
        const connection = await connectRaw(server.port);
        const head = `Host: x\r\nAuthorization: Bearer ${api.key}\r\n`;
        connection.send(
          upTo(9)
            .map((i) => `GET /v1/namespaces/pipeline/docs/d${i} HTTP/1.1\r\n${head}\r\n`)
            .join(''),
        );

        const answers = await connection.waitForAnswers(9);

        const ids = answers.map((answer) => (JSON.parse(answer.body.toString()) as { id: string }).id);
        assert.ok(ids.length === 9 || connection.closed);
        assert.deepEqual(
          ids,
          upTo(ids.length).map((i) => `d${i}`),
        );
        connection.destroy();
      });
    });
  });
}

/** 1, 2, 3, … n */
function upTo(n: number): number[] {
  return Array.from({ length: n }, (_, i) => i + 1);
}

/** Reads on and on; true once a request that began after the revocation was refused, and none of those was served. */
async function useUntilRefused(user: ApiClient, isRevoked: () => boolean): Promise<boolean> {
  for (;;) {
    const beganAfter = isRevoked();
    const { status } = await user.request('GET', documentPath('notes', 'a'));
    if (beganAfter) return status === 401;
    assert.ok(status === 200 || status === 401, String(status));
  }
}
