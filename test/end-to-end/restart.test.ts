import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { KeyItem } from '../../protocol/account.ts';
import { ApiClient, documentPath } from '../support/api-client.ts';
import { type ServerProcess, startServer, temporaryFolder } from '../support/server-process.ts';

/** Everything that a client can read of a tenant, without what says how it was read. */
async function everything(api: ApiClient): Promise<unknown> {
  const { namespaces } = await api.listNamespaces();
  const contents = await Promise.all(
    namespaces.map(async ({ name }) => {
      const { version, docs, next } = await api.search(name, { q: 'fox', limit: 7 });
      const described = await api.getNamespace(name);
      return {
        name,
        version,
        docs,
        next,
        created: described.created_at,
        written: [described.docs_written, described.bytes_written],
        hits: await api.searchAll(name, { filter: { n: { gte: 0 } } }),
        count: (await api.count(name, { q: 'f[aeiou]x', regex: true })).ids,
        document: textOf(await api.request('GET', documentPath(name, 'd7'))),
      };
    }),
  );
  // What keys have used grows with every look.
  const keys = (await api.call<KeyItem[]>('GET', '/v1/keys')).map(
    ({ used_queries, used_writes, last_used_at, ...key }) => key,
  );
  return { contents, keys, me: await api.me() };
}

function textOf(answer: { readonly body: Buffer }): unknown {
  const { id, text, meta, written_at, code } = JSON.parse(answer.body.toString()) as Record<string, unknown>;
  return { id, text, meta, written_at, code };
}

// More than a manifest carries itself, so that a second life reads segments.
const filler = 'lorem ipsum '.repeat(1_000);
const documents = Array.from({ length: 40 }, (_, n) => ({
  id: `d${n}`,
  text: `fox ${n}\nfax\n${filler}`,
  meta: { n },
}));

/** Each on another HTTP engine: the one that is preferred, and the one that is always there. */
const ways = [
  { how: 'after SIGTERM', engine: 'node' },
  { how: 'after kill -9', engine: 'auto' },
] as const;

describe('a server that is started again on its folder', { concurrency: true }, () => {
  for (const { how, engine } of ways) {
    it(`answers as before ${how}, and goes on (HTTP engine ${engine})`, async () => {
      const env = { TIDEBASE_COMMIT_MS: '20' };
      let server = await startServer({ folder: temporaryFolder(), engine, env });
      let api = new ApiClient(server.url);
      const { key } = await api.signup('again@example.com');
      api = api.as(key);
      await api.createNamespace('empty');
      await api.put('one', documents);
      await api.put('two', documents.slice(0, 9));
      await api.createKey({ name: 'kept', scope: 'read', namespaces: ['one', 't*'] });
      const page = await api.search('one', { q: 'fox', limit: 10 });

      for (let life = 1; life <= 2; life++) {
        await change(api, life);
        const before = await everything(api);
        server = await again(server, how);
        api = new ApiClient(server.url, key);

        assert.deepEqual(await everything(api), before);
        // A cursor of a life before goes on where it was.
        const rest = await api.search('one', { q: 'fox', limit: 1_000, cursor: page.next });
        const seen = new Set(page.hits.map((hit) => hit.id));
        assert.ok(rest.hits.every((hit) => !seen.has(hit.id)));
      }

      await changeSegments(api);
      await server.kill();
    });
  }
});

async function again(server: ServerProcess, how: 'after SIGTERM' | 'after kill -9'): Promise<ServerProcess> {
  if (how === 'after SIGTERM') assert.deepEqual(await server.stop(), { code: 0, signal: null });
  else await server.kill();
  return startServer(server.options);
}

/** Replaces, patches and deletes what an earlier life left in segments. */
async function change(api: ApiClient, life: number): Promise<void> {
  await api.put('one', [{ id: `d${life}`, text: `fox again ${life}`, meta: { n: life, life } }]);
  await api.patch('one', [{ id: `d${life + 10}`, meta: { life, n: 100 + life } }]);
  assert.equal((await api.deleteDocuments('one', [`d${life + 20}`, 'absent'])).deleted, 1);
  assert.equal(
    (await api.put('two', [{ id: 'd7', text: 'new fox', meta: { n: life } }], { deletes: ['d7'] })).deleted,
    1,
  );
  await api.put(`made-${life}`, documents.slice(0, 3));
  if (life > 1) await api.deleteNamespace(`made-${life - 1}`);
}

async function changeSegments(api: ApiClient): Promise<void> {
  const { docs, version } = await api.search('one');
  const deleted = await api.deleteDocuments('one', ['d30', 'd30', 'd31', 'absent']);
  assert.deepEqual(
    [deleted.deleted, deleted.version],
    [2, version + 1],
    'an id that is named twice existed once',
  );
  assert.equal((await api.search('one')).docs, docs - 2);
  const refusal = { status: 404, code: 'not_found', fields: ['docs[1].id'] };
  const body = {
    docs: [
      { id: 'd32', text: 'x' },
      { id: 'd30', text: 'x' },
    ],
  };
  await api.refused(refusal, 'PATCH', '/v1/namespaces/one/docs', { body });
  assert.equal((await api.get('one', 'd32')).text, documents[32]?.text);
}
