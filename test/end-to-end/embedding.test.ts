/**
 * Embedding through a whole server: four providers, each a double on this machine, and the model that is built in. What a
 * provider's call looks like to the last field is `actors/embedding/provider-client.test.ts`.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { KeyedProvider } from '../../actors/embedding/embedding-models.ts';
import type { EmbeddingKey } from '../../protocol/account.ts';
import { limits } from '../../protocol/limits.ts';
import { keyedProviders, type Namespace } from '../../protocol/namespace.ts';
import type { SearchAnswer } from '../../protocol/search.ts';
import { type ApiAnswer, ApiClient, documentPath } from '../support/api-client.ts';
import {
  type EmbeddingDouble,
  embeddingOf,
  type FaultMode,
  type FaultOptions,
  startEmbeddingDouble,
} from '../support/embedding-doubles.ts';
import { freePorts } from '../support/free-ports.ts';
import { filesBelow, readIfThere } from '../support/living-folder.ts';
import { restart, type ServerProcess, startServer, temporaryFolder } from '../support/server-process.ts';

/** `short`: a length that the model can be asked for. */
const providers = {
  openai: {
    key: 'sk-proj-Xq7vLeaky0OpenAi1Zt9wRfUj3mKd',
    model: 'text-embedding-3-small',
    dims: 1_536,
    short: 64,
  },
  cohere: { key: 'co.Bn4yLeaky0Cohere1Hs8pGcVa6eTx', model: 'embed-v4.0', dims: 1_536, short: 256 },
  google: {
    key: 'AIzaSyLeaky0Google1Mw5uDoQr2bEk7iPz',
    model: 'gemini-embedding-001',
    dims: 2_048,
    short: 128,
  },
  mistral: { key: 'mLeaky0Mistral1Fh3jYsNl8cOv5gXa', model: 'mistral-embed', dims: 1_024, short: null },
} as const;
const wrongKey = 'sk-Leaky0Wrong1Cq2xWz7vBn4mLk9jHg';
const ownModel = 'made-here-8';

const doubles = {} as Record<KeyedProvider, EmbeddingDouble>;
const answers: ApiAnswer[] = [];
/** What processes said that have ended. */
let saidBefore = '';
let server: ServerProcess;
let metricsPort = 0;
let anyone: ApiClient;
let api: ApiClient;

const keyPath = (provider: string) => `/v1/embedding-keys/${provider}`;
const putKey = (by: ApiClient, provider: KeyedProvider) =>
  by.call<EmbeddingKey>('PUT', keyPath(provider), { key: providers[provider].key });
const create = (name: string, rest: object) =>
  api.call<Namespace>('POST', '/v1/namespaces', { name, ...rest });
const patchPath = (name: string) => `/v1/namespaces/${name}`;
const setEmbed = (name: string, embed: object | null) =>
  api.call<Namespace>('PATCH', patchPath(name), { embed });

/** A tenant of its own with the keys of some providers. */
async function newTenant(name: string, keys: readonly KeyedProvider[] = []): Promise<ApiClient> {
  const tenant = anyone.as((await anyone.signup(`${name}@example.com`)).key);
  for (const provider of keys) await putKey(tenant, provider);
  return tenant;
}

/** What a piece of work asked of a provider, by text. */
async function askedBy(provider: KeyedProvider, work: () => Promise<unknown>): Promise<string[]> {
  const { requests } = doubles[provider];
  const from = requests.length;
  await work();
  return requests.slice(from).flatMap(({ texts }) => texts);
}

/** `text` null: the document has no vector. */
async function assertEmbedded(
  provider: KeyedProvider,
  namespace: string,
  id: string,
  text: string | null,
  dims: number = providers[provider].dims,
): Promise<void> {
  const { vector } = await api.get(namespace, id);
  if (text === null) return assert.equal(vector, undefined, id);
  const expected = scaled(embeddingOf(providers[provider].model, text, dims));
  assert.equal(vector?.length, dims, id);
  const off = Math.max(...expected.map((value, i) => Math.abs(value - (vector?.[i] ?? 0))));
  assert.ok(off < 1e-6, `${id} is off by ${off}`);
}

const scaled = (vector: readonly number[]) => vector.map((value) => value / Math.hypot(...vector));
const idsOf = ({ hits }: SearchAnswer) => hits.map(({ id }) => id);
const ones = (dims: number) => new Array<number>(dims).fill(0.5);

describe('embedding', { concurrency: 1 }, () => {
  before(async () => {
    for (const provider of keyedProviders) {
      const { key } = providers[provider];
      doubles[provider] = await startEmbeddingDouble(provider, { key, models: { [ownModel]: [8] } });
    }
    [metricsPort = 0] = await freePorts(1);
    server = await startServer({
      folder: temporaryFolder(),
      env: {
        TIDEBASE_COMMIT_MS: '20',
        TIDEBASE_LOG_LEVEL: 'debug',
        TIDEBASE_METRICS_PORT: String(metricsPort),
        OPENAI_BASE_URL: doubles.openai.baseUrl,
        COHERE_BASE_URL: doubles.cohere.baseUrl,
        GOOGLE_BASE_URL: doubles.google.baseUrl,
        MISTRAL_BASE_URL: doubles.mistral.baseUrl,
      },
    });
    anyone = new ApiClient(server.url);
    anyone.onAnswer = (answer) => answers.push(answer);
    api = anyone.as((await anyone.signup('embedding@example.com')).key);
  });

  after(async () => {
    anyone.close();
    assert.deepEqual(await server.stop(), { code: 0, signal: null });
    assert.deepEqual(server.loggedErrors(), []);
    for (const double of Object.values(doubles)) await double.close();
  });

  describe('a provider that the tenant has a key of', { concurrency: 1 }, () => {
    for (const provider of keyedProviders) {
      const { key, model, dims, short } = providers[provider];

      it(`tries the key of ${provider} with one tiny embedding, stores it and never shows it`, async () => {
        let first: EmbeddingKey | null = null;
        const from = doubles[provider].requests.length;

        const asked = await askedBy(provider, async () => {
          first = await putKey(api, provider);
        });
        const again = await putKey(api, provider);

        const { keys } = await api.call<{ keys: EmbeddingKey[] }>('GET', '/v1/embedding-keys');
        assert.deepEqual(asked, ['tide']);
        assert.equal(doubles[provider].requests[from]?.model, model);
        assert.deepEqual(again, { ...(first as unknown as EmbeddingKey), updated_at: again.updated_at });
        assert.ok(again.updated_at >= again.created_at);
        assert.ok(again.hint.length < key.length / 2 && !again.hint.includes(key.slice(0, 8)), again.hint);
        assert.deepEqual(
          keys.find((item) => item.provider === provider),
          again,
        );
      });

      it(`makes a namespace of ${provider}'s default model without asking`, async () => {
        let made: Namespace | null = null;

        const asked = await askedBy(provider, async () => {
          made = await create(`of-${provider}`, { embed: { provider } });
        });

        assert.deepEqual(asked, []);
        const described = made as unknown as Namespace;
        assert.deepEqual(described.vector, { dims, metric: 'cosine' });
        assert.deepEqual(described.embed, { provider, model });
        assert.deepEqual(await api.getNamespace(`of-${provider}`), described);
      });

      it(`embeds with ${provider} what has a text and no vector`, async () => {
        const name = `of-${provider}`;
        const docs = [
          { id: 'fox', text: 'the quick brown fox', meta: { kind: 'animal' } },
          { id: 'own', text: 'brings its own vector', vector: ones(dims) },
          { id: 'blank', text: ' \n\t ' },
          { id: 'late', text: `${' '.repeat(9_000)}words behind much space` },
          { id: 'wide', text: '\u3000\u00a0\u2003' },
          { id: 'empty', text: '' },
          { id: 'tide', text: 'low tide at the harbour', meta: { kind: 'water' } },
          { id: 'boat', text: 'boats in the harbour', meta: { kind: 'boat' } },
          { id: 'only-vector', vector: ones(dims) },
        ];

        const asked = await askedBy(provider, () => api.put(name, docs));

        assert.deepEqual(asked.sort(), [
          'boats in the harbour',
          'low tide at the harbour',
          'the quick brown fox',
          'words behind much space',
        ]);
        await assertEmbedded(provider, name, 'fox', 'the quick brown fox');
        await assertEmbedded(provider, name, 'tide', 'low tide at the harbour');
        await assertEmbedded(provider, name, 'late', 'words behind much space');
        for (const id of ['own', 'only-vector'])
          assert.deepEqual((await api.get(name, id)).vector, ones(dims));
        for (const id of ['blank', 'wide', 'empty']) await assertEmbedded(provider, name, id, null);
      });

      it(`finds by meaning with ${provider}, alone and with text, filter and rank`, async () => {
        const name = `of-${provider}`;
        const asked: string[][] = [];
        const search = async (request: object) => {
          let answer: SearchAnswer | null = null;
          asked.push(
            await askedBy(provider, async () => {
              answer = await api.search(name, request);
            }),
          );
          return answer as unknown as SearchAnswer;
        };

        const posted = await search({ semantic: 'harbour tide', limit: 2 });
        const got = await api.call<SearchAnswer>(
          'GET',
          `${patchPath(name)}/search?semantic=${encodeURIComponent('quick fox')}&limit=1`,
        );
        const both = await search({ semantic: 'harbour tide', q: 'boats' });
        const filtered = await search({ semantic: 'harbour tide', filter: { kind: 'boat' } });
        const ranked = await search({ semantic: 'harbour tide', q: 'harbour', rank: 'rrf' });

        assert.deepEqual(idsOf(posted), ['tide', 'boat']);
        assert.deepEqual(idsOf(got), ['fox']);
        assert.deepEqual(idsOf(both), ['boat']);
        assert.deepEqual(idsOf(filtered), ['boat']);
        assert.deepEqual(idsOf(ranked).sort(), ['boat', 'tide']);
        for (const semantic of ['', ' ', '\u3000']) {
          const refusal = { status: 422, code: 'invalid', fields: ['semantic'] };
          await api.refused(refusal, 'POST', `${patchPath(name)}/search`, { body: { semantic } });
        }
        assert.deepEqual(
          asked,
          asked.map(() => ['harbour tide']),
        );
        const { purpose } = doubles[provider].requests.at(-1) ?? {};
        const asQuery = { openai: null, cohere: 'search_query', google: 'RETRIEVAL_QUERY', mistral: null };
        assert.equal(purpose, asQuery[provider]);
      });

      it(`embeds with ${provider} a text that a patch changes, and nothing else`, async () => {
        const name = `of-${provider}`;

        const byText = await askedBy(provider, () => api.patch(name, [{ id: 'fox', text: 'a lazy dog' }]));
        await assertEmbedded(provider, name, 'fox', 'a lazy dog');
        const byOthers = await askedBy(provider, async () => {
          await api.patch(name, [{ id: 'fox', meta: { seen: 1 } }]);
          await assertEmbedded(provider, name, 'fox', 'a lazy dog');
          await api.patch(name, [{ id: 'boat', text: 'a ship', vector: ones(dims) }]);
          await api.deleteDocuments(name, ['tide']);
          await api.search(name, { q: 'ship' });
        });

        assert.deepEqual(byText, ['a lazy dog']);
        assert.deepEqual(byOthers, []);
        const boat = await api.get(name, 'boat');
        assert.deepEqual([boat.text, boat.vector], ['a ship', ones(dims)]);
      });

      if (short === null) continue;
      it(`asks ${provider} for the length of embed.dims`, async () => {
        const name = `short-${provider}`;
        const made = await create(name, { embed: { provider, dims: short } });

        await api.put(name, [{ id: 'a', text: 'short and sweet' }]);

        assert.deepEqual(made.embed, { provider, model, dims: short });
        assert.equal(made.vector?.dims, short);
        await assertEmbedded(provider, name, 'a', 'short and sweet', short);
      });
    }
  });

  /** Each is the answer to a write, a search and a change of the model. */
  const faults: readonly {
    readonly fault: FaultMode;
    readonly options?: FaultOptions;
    readonly status: number;
    readonly code: string;
    readonly retryAfter?: number;
  }[] = [
    { fault: 'bad-key', status: 422, code: 'embedding_key_invalid' },
    {
      fault: 'rate-limit',
      options: { retryAfter: '37' },
      status: 429,
      code: 'embedding_rate_limited',
      retryAfter: 37,
    },
    { fault: 'unknown-model', status: 422, code: 'embedding_rejected' },
    { fault: 'quote-key', status: 422, code: 'embedding_rejected' },
    { fault: 'server-error', status: 502, code: 'embedding_failed' },
    { fault: 'reset-midway', status: 502, code: 'embedding_failed' },
    { fault: 'wrong-length', status: 502, code: 'embedding_failed' },
    { fault: 'null-number', status: 502, code: 'embedding_failed' },
    { fault: 'beyond-float32', status: 502, code: 'embedding_failed' },
    { fault: 'too-few', status: 502, code: 'embedding_failed' },
  ];

  describe('a provider that fails', { concurrency: 1 }, () => {
    for (const { fault, options, ...refusal } of faults) {
      it(`by ${fault}: ${refusal.code}, and nothing is written or changed`, async () => {
        await Promise.all(
          keyedProviders.map(async (provider) => {
            const name = `of-${provider}`;
            const before = await api.search(name);
            const described = await api.getNamespace(name);
            const body = { docs: [{ id: 'lost', text: 'words that are lost' }], deletes: ['own'] };
            doubles[provider].fault(fault, options);

            const written = await api.refused(refusal, 'POST', `${patchPath(name)}/docs`, { body });
            // Of a model that makes one length only, the key is good whatever the length is.
            const keyRefused = provider !== 'mistral' || fault !== 'wrong-length';
            const others = await Promise.all([
              api.refused(refusal, 'PATCH', `${patchPath(name)}/docs`, {
                body: { docs: [{ id: 'own', text: 'other' }] },
              }),
              api.refused(refusal, 'POST', `${patchPath(name)}/search`, { body: { semantic: 'x' } }),
              api.refused(refusal, 'PATCH', patchPath(name), { body: { embed: { provider } } }),
              ...(keyRefused
                ? [api.refused(refusal, 'PUT', keyPath(provider), { body: { key: providers[provider].key } })]
                : []),
            ]);

            doubles[provider].fault(null);
            for (const error of [written, ...others]) {
              assert.equal(error.retry_after, refusal.retryAfter);
              assert.ok(error.error.includes(provider), error.error);
            }
            await api.refused({ status: 404, code: 'not_found' }, 'GET', documentPath(name, 'lost'));
            assert.equal((await api.get(name, 'own')).text, 'brings its own vector');
            assert.equal((await api.search(name)).version, before.version);
            assert.deepEqual(await api.getNamespace(name), described);
          }),
        );
      });
    }

    it('once only is asked again, and the client hears nothing of it', async () => {
      for (const mode of ['rate-limit', 'server-error', 'reset'] as const) {
        doubles.openai.fault(mode, { times: 1 });
        await api.put('of-openai', [{ id: `after-${mode}`, text: `after ${mode}` }]);
        await assertEmbedded('openai', 'of-openai', `after-${mode}`, `after ${mode}`);
      }
    });

    it('to answer has so many texts wait and no more; the rest hear when to come back', async () => {
      const { embeddingsInFlightMax: inFlight, embeddingsWaitingOfTenantMax: waiting } = limits;
      doubles.cohere.fault('hang', { times: inFlight });
      const statuses: number[] = [];

      const writes = Array.from({ length: inFlight + waiting + 5 }, async (_, n) => {
        const docs = [{ id: `crowd-${n}`, text: `crowd ${n}` }];
        const answer = await api.request('POST', `${patchPath('of-cohere')}/docs`, { body: { docs } });
        statuses.push(answer.status);
        if (answer.status !== 200) assert.equal((answer.json() as { code: string }).code, 'rate_limited');
      });
      while (statuses.length < 5 || doubles.cohere.hanging < inFlight) await soon();
      const refusal = { status: 429, code: 'rate_limited' };
      const body = { semantic: 'crowd' };
      await api.refused(refusal, 'POST', `${patchPath('of-openai')}/search`, { body });
      assert.deepEqual(new Set(statuses), new Set([429]));
      doubles.cohere.dropHanging();
      await Promise.all(writes);

      assert.equal(statuses.filter((status) => status === 200).length, inFlight + waiting);
      assert.equal((await api.count('of-cohere', { q: 'crowd' })).count, inFlight + waiting);
    });

    it('with a wrong key has the key refused, and the one before is kept', async () => {
      const tenant = await newTenant('wrong-key');
      const refusal = { status: 422, code: 'embedding_key_invalid' };
      const list = () => tenant.call<{ keys: EmbeddingKey[] }>('GET', '/v1/embedding-keys');

      for (const key of [wrongKey, 'with space', 'ключ', 'line\nbreak', 'x'.repeat(200)]) {
        const refused = await tenant.refused(refusal, 'PUT', keyPath('openai'), { body: { key } });
        assert.ok(!refused.error.includes(key), refused.error);
      }
      assert.deepEqual(await list(), { keys: [] });
      const stored = await putKey(tenant, 'openai');
      await tenant.refused(refusal, 'PUT', keyPath('openai'), { body: { key: wrongKey } });
      assert.deepEqual(await list(), { keys: [stored] });
    });

    it('slowly holds up only those who wait for it', async () => {
      const slow = doubles.mistral;
      const name = 'of-mistral';
      slow.fault('hang', { times: 1 });
      let ended = false;
      const waiting = api
        .put(name, [{ id: 'late', text: 'late words' }])
        .then(() => undefined)
        .finally(() => {
          ended = true;
        });

      while (slow.hanging === 0) await soon();
      await api.put(name, [{ id: 'beside', vector: ones(1_024) }]);
      await api.patch(name, [{ id: 'beside', meta: { n: 1 } }]);
      await api.put(name, [{ id: 'next', text: 'next words' }]);
      await api.search(name, { semantic: 'next words' });
      await api.get(name, 'beside');
      await api.put('of-openai', [{ id: 'elsewhere', text: 'elsewhere' }]);
      await setEmbed(name, null);
      await setEmbed(name, { provider: 'mistral' });

      assert.ok(!ended, 'it waits still');
      // The double lets go: the call is sent again, and answered.
      slow.dropHanging();
      await waiting;
      await assertEmbedded('mistral', name, 'late', 'late words');
    });
  });

  describe('keys of providers', { concurrency: 1 }, () => {
    it('are of four providers, and the built-in model has none', async () => {
      const missing = { status: 404, code: 'not_found' };
      for (const provider of ['service', 'nobody', 'OpenAI', '..', '%00', 'constructor']) {
        await api.refused(missing, 'PUT', keyPath(provider), { body: { key: wrongKey } });
        await api.refused(missing, 'DELETE', keyPath(provider));
      }
      const tenant = await newTenant('no-keys');
      await tenant.refused(missing, 'DELETE', keyPath('openai'));
      for (const body of [{}, { key: '' }, { key: 7 }, { key: wrongKey, more: 1 }])
        await api.refused({ status: 422, code: 'invalid' }, 'PUT', keyPath('openai'), { body });
      await api.refused({ status: 400, code: 'bad_request' }, 'PUT', keyPath('openai'), { body: '{' });
    });

    it('are managed by an admin key without limits only', async () => {
      const limited = [
        { name: 'read', scope: 'read' },
        { name: 'write', scope: 'write' },
        { name: 'some', scope: 'admin', namespaces: ['of-*'] },
        { name: 'capped', scope: 'admin', cap_queries: 1_000_000 },
        { name: 'capped-too', scope: 'admin', cap_writes: 1_000_000 },
      ];
      for (const request of limited) {
        const other = api.as((await api.createKey(request)).key);
        const asked = await askedBy('openai', async () => {
          const refusal = { status: 403, code: 'forbidden' };
          await other.refused(refusal, 'GET', '/v1/embedding-keys');
          await other.refused(refusal, 'PUT', keyPath('openai'), { body: { key: wrongKey } });
          await other.refused(refusal, 'DELETE', keyPath('openai'));
        });
        assert.deepEqual(asked, []);
      }
      await anyone.refused({ status: 401, code: 'unauthorized' }, 'GET', '/v1/embedding-keys');
      const login = anyone.as(await anyone.login('embedding@example.com'));
      const { keys } = await login.call<{ keys: EmbeddingKey[] }>('GET', '/v1/embedding-keys');
      assert.equal(keys.length, 4);
    });

    it('are of one tenant', async () => {
      const tenant = await newTenant('another-tenant');
      const embed = { provider: 'openai' };
      await tenant.call('POST', '/v1/namespaces', { name: 'of-openai', embed });
      const refusal = { status: 422, code: 'embedding_key_missing' };

      const body = { docs: [{ id: 'a', text: 'words' }] };
      await tenant.refused(refusal, 'POST', '/v1/namespaces/of-openai/docs', { body });
      await tenant.put('of-openai', [{ id: 'a', text: 'words', vector: ones(1_536) }]);
    });

    it('that are forgotten are used no more, at once', async () => {
      const tenant = await newTenant('forgetful', ['cohere']);
      await tenant.call('POST', '/v1/namespaces', { name: 'n', embed: { provider: 'cohere' } });
      await tenant.put('n', [{ id: 'a', text: 'first words' }]);

      await tenant.call('DELETE', keyPath('cohere'));
      const asked = await askedBy('cohere', async () => {
        const refusal = { status: 422, code: 'embedding_key_missing' };
        const docs = [{ id: 'a', text: 'second words' }];
        await tenant.refused(refusal, 'POST', '/v1/namespaces/n/docs', { body: { docs } });
        await tenant.refused(refusal, 'PATCH', '/v1/namespaces/n/docs', { body: { docs } });
        await tenant.refused(refusal, 'POST', '/v1/namespaces/n/search', { body: { semantic: 'first' } });
        await tenant.refused(refusal, 'PATCH', '/v1/namespaces/n', {
          body: { embed: { provider: 'cohere' } },
        });
        await tenant.refused({ status: 404, code: 'not_found' }, 'DELETE', keyPath('cohere'));
        await tenant.patch('n', [{ id: 'a', meta: { x: 1 } }]);
        await tenant.put('n', [{ id: 'b', text: 'own', vector: ones(1_536) }]);
      });
      assert.deepEqual(asked, []);
      assert.equal((await tenant.get('n', 'a')).text, 'first words');

      await putKey(tenant, 'cohere');
      assert.deepEqual(idsOf(await tenant.search('n', { semantic: 'first words', limit: 1 })), ['a']);
    });
  });

  describe('the model of a namespace', { concurrency: 1 }, () => {
    const dimsRefusal = { status: 409, code: 'embedding_dims' };

    it('must be of a length that is known, possible and agreed', async () => {
      const asked = await askedBy('openai', async () => {
        const unknown = { name: 'x', embed: { provider: 'openai', model: 'unheard-of' } };
        const refusal = { status: 422, code: 'invalid', fields: ['embed.dims'] };
        await api.refused(refusal, 'POST', '/v1/namespaces', { body: unknown });
        for (const request of [
          { embed: { provider: 'mistral', dims: 100 } },
          { embed: { provider: 'cohere', dims: 100 } },
          { embed: { provider: 'mistral' }, vector: { dims: 100 } },
          { embed: { provider: 'openai', dims: 100 }, vector: { dims: 200 } },
          { embed: { provider: 'service', dims: 100 } },
        ])
          await api.refused(dimsRefusal, 'POST', '/v1/namespaces', { body: { name: 'x', ...request } });
        for (const embed of [
          { provider: 'nobody' },
          { provider: 'openai', dims: 3_000 },
          { provider: 'openai', model: '' },
          { provider: 'google', model: '../../v1/models' },
          {},
        ])
          await api.refused({ status: 422, code: 'invalid' }, 'POST', '/v1/namespaces', {
            body: { name: 'x', embed },
          });
        await api.refused({ status: 404, code: 'not_found' }, 'GET', '/v1/namespaces/x');
      });
      assert.deepEqual(asked, []);

      const byVector = await create('by-vector', { embed: { provider: 'openai' }, vector: { dims: 32 } });
      const told = await create('told', { embed: { provider: 'openai', model: ownModel, dims: 8 } });
      assert.equal(byVector.vector?.dims, 32);
      assert.equal(told.vector?.dims, 8);
      await api.put('told', [{ id: 'a', text: 'words' }]);
      assert.equal((await api.get('told', 'a')).vector?.length, 8);
    });

    it('is tried when it is turned on, and must make vectors of the length that is there', async () => {
      await create('eight', { vector: { dims: 8, metric: 'euclidean' } });
      await create('plain', {});
      await create('wide', { vector: { dims: 1_536 } });
      await api.put('wide', [{ id: 'before', text: 'written before' }]);

      const asked = await askedBy('openai', async () => {
        const { vector, embed } = await setEmbed('eight', { provider: 'openai', model: ownModel });
        assert.deepEqual(vector, { dims: 8, metric: 'euclidean' });
        assert.deepEqual(embed, { provider: 'openai', model: ownModel });
        await setEmbed('wide', { provider: 'openai' });
      });

      assert.deepEqual(asked, ['tide', 'tide']);
      await api.put('eight', [{ id: 'a', text: 'words' }]);
      assert.equal((await api.get('eight', 'a')).vector?.length, 8);
      assert.equal((await api.get('wide', 'before')).vector, undefined);
      await api.patch('wide', [{ id: 'before', meta: { n: 1 } }]);
      assert.equal((await api.get('wide', 'before')).vector, undefined);
      for (const [name, embed] of [
        ['wide', { provider: 'mistral' }],
        ['wide', { provider: 'openai', model: ownModel }],
        ['wide', { provider: 'service' }],
        ['plain', { provider: 'openai' }],
        ['plain', { provider: 'service' }],
      ] as const)
        await api.refused(dimsRefusal, 'PATCH', patchPath(name), { body: { embed } });
      for (const body of [
        { embed: { provider: 'openai', dims: 1_536 } },
        { embed: { provider: 'service', model: 'another' } },
        { embed: { provider: 'nobody' } },
        {},
      ])
        await api.refused({ status: 422, code: 'invalid' }, 'PATCH', patchPath('wide'), { body });
      const none = { embed: { provider: 'openai' } };
      await api.refused({ status: 404, code: 'not_found' }, 'PATCH', patchPath('none'), { body: none });
      await api.refused({ status: 404, code: 'not_found' }, 'PATCH', patchPath('none'), {
        body: { embed: null },
      });
      assert.deepEqual((await api.getNamespace('wide')).embed, {
        provider: 'openai',
        model: 'text-embedding-3-small',
      });
    });

    it('is turned off and on again, and vectors stay', async () => {
      await create('on-off', { embed: { provider: 'openai', dims: 16 } });
      await api.put('on-off', [{ id: 'kept', text: 'kept words' }]);

      const asked = await askedBy('openai', async () => {
        assert.equal((await setEmbed('on-off', null)).embed, undefined);
        await api.put('on-off', [{ id: 'later', text: 'later words' }]);
        await api.refused(
          { status: 422, code: 'invalid', fields: ['semantic'] },
          'POST',
          '/v1/namespaces/on-off/search',
          {
            body: { semantic: 'kept words' },
          },
        );
      });

      assert.deepEqual(asked, []);
      await assertEmbedded('openai', 'on-off', 'kept', 'kept words', 16);
      await assertEmbedded('openai', 'on-off', 'later', null);
      await setEmbed('on-off', { provider: 'openai' });
      assert.deepEqual(idsOf(await api.search('on-off', { semantic: 'kept words' })), ['kept']);
    });

    it('is not what a read key may change', async () => {
      const reader = api.as((await api.createKey({ name: 'reader', scope: 'read' })).key);
      const elsewhere = api.as(
        (await api.createKey({ name: 'e', scope: 'write', namespaces: ['other'] })).key,
      );
      for (const other of [reader, elsewhere])
        await other.refused({ status: 403, code: 'forbidden' }, 'PATCH', patchPath('on-off'), {
          body: { embed: null },
        });
    });

    it('may change under a hundred writes, each of which is embedded wholly or not at all', async () => {
      await create('changing', { embed: { provider: 'openai', dims: 8 } });
      let stop = false;
      const flip = async () => {
        for (const embed of [null, { provider: 'openai' }, { provider: 'openai', model: ownModel }])
          await setEmbed('changing', embed);
      };
      const flipping = (async () => {
        while (!stop) await flip();
      })();

      const writers = Array.from({ length: 4 }, async (_, w) => {
        for (let n = 0; n < 25; n++) {
          await api.put('changing', [
            { id: `${w}-${n}-a`, text: `words ${n}` },
            { id: `${w}-${n}-b`, text: `more ${n}` },
          ]);
        }
      });
      await Promise.all(writers);
      stop = true;
      await flipping;

      const hits = await api.searchAll('changing', { include: ['vector'] });
      const lengths = new Map(hits.map(({ id, vector }) => [id, vector?.length]));
      assert.equal(lengths.size, 200);
      for (const [id, length] of lengths) assert.equal(length, lengths.get(`${id.slice(0, -1)}a`), id);
    });
  });

  describe('the built-in model', { concurrency: 1 }, () => {
    const embed = { provider: 'service' };
    const texts = {
      car: 'The vehicle would not start this morning.',
      soup: 'A recipe for hot vegetable soup.',
      rain: 'Heavy showers are expected tomorrow afternoon.',
    };
    const docs = Object.entries(texts).map(([id, text]) => ({ id, text }));

    it('needs no key and finds a paraphrase', async () => {
      const made = await create('here', { embed });
      await api.put('here', docs);

      assert.deepEqual(made.vector, { dims: 512, metric: 'cosine' });
      assert.deepEqual(made.embed, { provider: 'service', model: 'use-lite-512' });
      const find = async (semantic: string) => idsOf(await api.search('here', { semantic, limit: 1 }));
      assert.deepEqual(await find('my automobile broke down'), ['car']);
      assert.deepEqual(await find('what is the weather going to be like'), ['rain']);
      await api.patch('here', [{ id: 'car', text: 'How to cook pasta for dinner.' }]);
      assert.deepEqual(
        new Set(idsOf(await api.search('here', { semantic: 'preparing a meal', limit: 2 }))),
        new Set(['car', 'soup']),
      );
    });

    it('has one name', async () => {
      const other = { provider: 'service', model: 'text-embedding-3-small' };
      const refusal = { status: 422, code: 'invalid', fields: ['embed.model'] };
      await api.refused(refusal, 'POST', '/v1/namespaces', { body: { name: 'x', embed: other } });
      await api.refused(refusal, 'PATCH', patchPath('here'), { body: { embed: other } });
    });

    it('is turned off and on', async () => {
      await setEmbed('here', null);
      await api.put('here', [{ id: 'unseen', text: 'Not embedded.' }]);
      await setEmbed('here', { provider: 'service', model: 'use-lite-512' });
      await api.put('here', [{ id: 'seen', text: 'Embedded again.' }]);

      assert.equal((await api.get('here', 'unseen')).vector, undefined);
      assert.equal((await api.get('here', 'seen')).vector?.length, 512);
    });

    it('serves two tenants at once', async () => {
      const tenants = await Promise.all(['first', 'second'].map((name) => newTenant(`service-${name}`)));
      await Promise.all(
        tenants.map(async (tenant) => {
          await tenant.call('POST', '/v1/namespaces', { name: 'here', embed });
          await Promise.all(docs.map((doc) => tenant.put('here', [doc])));
          const answer = await tenant.search('here', { semantic: 'it is going to be wet outside', limit: 1 });
          assert.deepEqual(idsOf(answer), ['rain']);
        }),
      );
    });
  });

  describe('after kill -9 and a start on the same folder', { concurrency: 1 }, () => {
    it('keys, models and vectors are what they were, and nobody is asked again', async () => {
      const before = await everything();
      const asked = () => keyedProviders.map((provider) => doubles[provider].requests.length);
      const askedBefore = asked();

      await server.kill();
      saidBefore += server.output + server.errors;
      server = await restart(server);
      anyone.close();
      anyone = new ApiClient(server.url);
      anyone.onAnswer = (answer) => answers.push(answer);
      api = anyone.as(api.key);

      assert.deepEqual(await everything(), before);
      assert.deepEqual(asked(), askedBefore);
      for (const provider of keyedProviders) {
        const name = `of-${provider}`;
        await api.put(name, [{ id: 'reborn', text: 'written in a second life' }]);
        await assertEmbedded(provider, name, 'reborn', 'written in a second life');
        const found = await api.search(name, { semantic: 'a second life', limit: 1 });
        assert.deepEqual(idsOf(found), ['reborn']);
      }
      assert.deepEqual(idsOf(await api.search('here', { semantic: 'it will be wet', limit: 1 })), ['rain']);
    });

    async function everything(): Promise<unknown> {
      const { namespaces } = await api.listNamespaces();
      const contents = await Promise.all(
        namespaces.map(async ({ name }) => ({
          described: await api.getNamespace(name),
          hits: await api.searchAll(name, { include: ['text', 'vector'], limit: 100 }),
        })),
      );
      // What its objects take grows when what was in the log is stored.
      const described = contents.map((content) => ({
        ...content,
        described: { ...content.described, stored_bytes: 0 },
      }));
      return { described, keys: await api.call('GET', '/v1/embedding-keys') };
    }
  });

  describe('the keys of providers', () => {
    it('are in no answer, no line that was logged, no metric and no file', async () => {
      const folder = server.options.folder;
      const secrets = [...Object.values(providers).map(({ key }) => key), wrongKey];
      const needles = secrets.flatMap((key) => {
        const bytes = Buffer.from(key);
        return [key, bytes.toString('base64').slice(0, -4), bytes.toString('hex')];
      });
      const metrics = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
      const files = filesBelow(folder);
      const places = [
        { place: 'what the server said', bytes: Buffer.from(saidBefore + server.output + server.errors) },
        { place: 'the metrics', bytes: Buffer.from(metrics) },
        ...answers.map(({ body, headers }) => ({
          place: `an answer: ${body.toString().slice(0, 200)}`,
          bytes: Buffer.concat([body, Buffer.from(JSON.stringify(headers))]),
        })),
        ...files.map((place) => ({ place, bytes: readIfThere(place) ?? Buffer.alloc(0) })),
      ];

      for (const { place, bytes } of places) {
        for (const needle of needles) assert.ok(!bytes.includes(needle), place);
      }

      // What is looked through is what there is: other words of these tests are in it.
      const has = (word: string) =>
        places.filter(({ bytes }) => bytes.includes(word)).map(({ place }) => place);
      assert.ok(has('of-openai').some((place) => place.startsWith(folder)));
      assert.ok(has('tidebase listening on').includes('what the server said'));
      assert.ok(metrics.includes('tidebase_'), metrics.slice(0, 200));
      assert.ok(answers.length > 300, `${answers.length} answers`);
    });
  });
});

function soon(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 20));
}
