import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { inspect } from 'node:util';
import { callLimits, type KeyedProvider, modelOf } from '../../../actors/embedding/embedding-models.ts';
import {
  type EmbedComponents,
  type Embedded,
  type EmbedRequest,
  embedByProvider,
} from '../../../actors/embedding/provider-client.ts';
import { ApiError, type ErrorCode } from '../../../protocol/errors.ts';
import { keyedProviders } from '../../../protocol/namespace.ts';
import { systemClock } from '../../../src/base/clock.ts';
import { systemRandom } from '../../../src/base/random.ts';
import {
  type EmbeddingDouble,
  embeddingOf,
  type FaultMode,
  startEmbeddingDouble,
  tokensOf,
} from '../../support/embedding-doubles.ts';

/** Waits are a twentieth of what they are, so that a test of three tries takes no seconds; and the process waits for them. */
const hurriedClock = {
  ...systemClock,
  after(ms: number, run: () => void) {
    const timer = setTimeout(run, ms / 20);
    return () => clearTimeout(timer);
  },
};
const noBaseUrls = { openai: null, cohere: null, google: null, mistral: null };

const key = 'secret-0123456789-abcdefghij';
const lengths = { openai: 1_536, cohere: 1_536, google: 2_048, mistral: 1_024 } as const;

/** Each number as a float32, scaled to the length of 1 where the client does it. */
function assertVectors(answer: Embedded, model: string, texts: readonly string[], dims: number): void {
  assert.equal(answer.dims, dims);
  assert.equal(answer.vectors.length, texts.length * dims);
  for (const [i, text] of texts.entries()) {
    const expected = embeddingOf(model, text, dims);
    const length = Math.hypot(...expected);
    const vector = answer.vectors.subarray(i * dims, (i + 1) * dims);
    for (const [at, value] of vector.entries())
      assert.ok(Math.abs(value - (expected[at] ?? 9) / length) < 1e-6, `number ${at} of text ${i}`);
  }
}

for (const provider of keyedProviders) describe(provider, () => suite(provider));

function suite(provider: KeyedProvider): void {
  const model = modelOf({ provider });
  const dims = lengths[provider];
  let double: EmbeddingDouble;
  let components: EmbedComponents;

  before(async () => {
    double = await startEmbeddingDouble(provider, { key });
    const baseUrls = { ...noBaseUrls, [provider]: double.baseUrl };
    components = { baseUrls, clock: hurriedClock, random: systemRandom, fetch: globalThis.fetch };
  });
  beforeEach(() => {
    double.fault(null);
    (double.requests as unknown[]).length = 0;
  });
  after(() => double.close());

  const embed = (change: Partial<EmbedRequest> = {}, changed: Partial<EmbedComponents> = {}) =>
    embedByProvider(
      {
        ...{ provider, model, dims, key, texts: ['one two', 'three'] },
        ...{ purpose: 'document', deadlineMs: 30_000, ...change },
      },
      { ...components, ...changed },
    );
  const refused = async (...asked: Parameters<typeof embed>): Promise<ApiError> => {
    const error: unknown = await embed(...asked).then(
      () => assert.fail('was not refused'),
      (thrown: unknown) => thrown,
    );
    assert.ok(error instanceof ApiError, inspect(error));
    assertNoKey(error);
    return error;
  };
  const refusedAs = async (code: ErrorCode, ...asked: Parameters<typeof embed>) => {
    const error = await refused(...asked);
    assert.equal(error.code, code, error.message);
    return error;
  };

  test('the default model embeds several texts, one text and none', async () => {
    const texts = ['der Fuchs', 'the fox 🦊', 'キツネ'];

    assertVectors(await embed({ texts }), model, texts, dims);
    assertVectors(await embed({ texts: ['alone'] }), model, ['alone'], dims);
    assert.equal((await embed({ texts: [] })).vectors.length, 0);

    assert.deepEqual(
      double.requests.map(({ texts, problem }) => [texts, problem]),
      [
        [texts, null],
        [['alone'], null],
      ],
    );
  });

  test('tokens are counted, or estimated as many', async () => {
    const texts = ['twelve bytes', 'four'];

    assert.equal((await embed({ texts })).tokens, tokensOf(texts));
  });

  test('the provider hears what the texts are for, where it asks', async () => {
    await embed({ purpose: 'document' });
    await embed({ purpose: 'query' });

    const heard = {
      cohere: ['search_document', 'search_query'],
      google: ['RETRIEVAL_DOCUMENT', 'RETRIEVAL_QUERY'],
    };
    const expected = provider === 'cohere' || provider === 'google' ? heard[provider] : [null, null];
    assert.deepEqual(
      double.requests.map(({ purpose }) => purpose),
      expected,
    );
  });

  test('a length is asked for where the model makes several', async () => {
    if (provider === 'mistral') {
      await embed({ dims: 1_024 });
      assert.equal(double.requests[0]?.dims, null);
      await refusedAs('embedding_dims', { dims: 512 });
    } else {
      assertVectors(await embed({ dims: 512 }), model, ['one two', 'three'], 512);
      assertVectors(await embed({ dims: null }), model, ['one two', 'three'], dims);
      assert.deepEqual(
        double.requests.map((request) => request.dims),
        [512, dims],
      );
    }
  });

  test('10,000 short texts go in as many calls as the limits need, and their vectors keep the order', async () => {
    const texts = Array.from({ length: 10_000 }, (_, i) => `text number ${i}`);
    const short = { openai: 64, cohere: 256, google: 128, mistral: 1_024 }[provider];

    const answer = await embed({ texts, dims: short }, { clock: systemClock });

    const { textsMax } = callLimits(provider, model, short);
    assert.equal(double.requests.length, Math.ceil(texts.length / textsMax));
    assert.ok(double.requests.every(({ problem, texts }) => problem === null && texts.length <= textsMax));
    for (const i of [0, 1, 95, 96, 4_321, 9_999]) {
      const vector = answer.vectors.slice(i * short, (i + 1) * short);
      assertVectors({ ...answer, vectors: vector }, model, [texts[i] as string], short);
    }
  });

  test('texts of two megabytes are cut, so that no provider refuses them', async () => {
    const texts = ['漢字'.repeat(300_000), '!'.repeat(2_000_000), 'short'];

    const answer = await embed({ texts });

    assert.equal(answer.vectors.length, 3 * dims);
    assert.ok(double.requests.every(({ problem }) => problem === null));
    assert.ok(
      double.requests.flatMap((request) => request.texts).every((text) => Buffer.byteLength(text) <= 8_000),
    );
  });

  test('a text with nothing to see gets zeros and costs nothing', async () => {
    const answer = await embed({ texts: ['', 'word', ' \n\t'] });

    assert.deepEqual(double.requests[0]?.texts, ['word']);
    assert.ok(answer.vectors.subarray(0, dims).every((value) => value === 0));
    assert.ok(answer.vectors.subarray(dims, 2 * dims).some((value) => value !== 0));
    assert.ok(answer.vectors.subarray(2 * dims).every((value) => value === 0));
  });

  test('a wrong key is the tenant’s to replace', async () => {
    const error = await refusedAs('embedding_key_invalid', { key: 'secret-9876543210-zyxwvutsrq' });

    assert.match(error.message, new RegExp(`PUT /v1/embedding-keys/${provider}`));
    assert.equal(double.requests.length, 1);
  });

  test('a key that cannot be sent is refused here', async () => {
    for (const bad of [`${key}\n`, `${key}\r\nx-evil: 1`, `${key} ä`, ''])
      await refusedAs('embedding_key_invalid', { key: bad });
    assert.equal(double.requests.length, 0);
  });

  test('an unknown model is refused in the words of the provider', async () => {
    const error = await refusedAs('embedding_rejected', { model: 'no-such-model' });

    assert.match(error.message, /no-such-model.*: the model `no-such-model` does not exist/);
    assert.equal(double.requests.length, 1);
  });

  test('what passes is tried again: a limited rate, a failure, a broken connection', async () => {
    for (const mode of ['rate-limit', 'server-error', 'reset', 'reset-midway'] as const) {
      double.fault(mode, { times: 1 });
      assertVectors(await embed(), model, ['one two', 'three'], dims);
    }
    double.fault('rate-limit', { times: 1, retryAfter: '1' });
    assertVectors(await embed(), model, ['one two', 'three'], dims);
    assert.equal(double.requests.length, 10);
  });

  const endless: readonly (readonly [FaultMode, ErrorCode, number])[] = [
    ['rate-limit', 'embedding_rate_limited', 3],
    ['server-error', 'embedding_failed', 3],
    ['reset', 'embedding_failed', 3],
    ['redirect', 'embedding_failed', 3],
    ['wrong-length', 'embedding_failed', 1],
    ['null-number', 'embedding_failed', 1],
    ['text-number', 'embedding_failed', 1],
    ['huge-number', 'embedding_failed', 1],
    ['beyond-float32', 'embedding_failed', 1],
    ['not-json', 'embedding_failed', 1],
    ['endless', 'embedding_failed', 1],
    ['quote-key', 'embedding_rejected', 1],
  ];
  for (const [mode, code, sends] of endless) {
    test(`${mode} for ever is ${code} after ${sends}`, async () => {
      double.fault(mode);

      const error = await refusedAs(code);

      assert.equal(double.requests.length, sends);
      if (mode === 'rate-limit') assert.equal(error.retryAfter, 20);
      if (mode === 'wrong-length')
        assert.match(error.message, new RegExp(`${dims - 1} numbers where ${dims}`));
      if (mode === 'quote-key') assert.match(error.message, /\[key\]/);
    });
  }

  test('too few vectors are refused', async () => {
    double.fault('too-few');

    assert.match(
      (await refusedAs('embedding_failed', { texts: ['a', 'b', 'c'] })).message,
      /2 vectors for 3 texts/,
    );
  });

  test('a long Retry-After is handed on at once', async () => {
    double.fault('rate-limit', { retryAfter: '40' });

    assert.equal((await refusedAs('embedding_rate_limited')).retryAfter, 40);
    assert.equal(double.requests.length, 1);
  });

  for (const mode of ['hang', 'hang-midway'] as const)
    test(`a provider that hangs (${mode}) is given up at the deadline`, async () => {
      double.fault(mode);
      const began = performance.now();

      const error = await refusedAs('embedding_failed', { deadlineMs: 300 }, { clock: systemClock });

      assert.match(error.message, /did not answer in time/);
      // The double itself would hang for ever.
      assert.ok(performance.now() - began >= 290);
    });

  test('the caller ends calls that are under way', async () => {
    double.fault('hang');
    const abort = new AbortController();
    const work = refused({ signal: abort.signal });
    while (double.requests.length === 0) await systemClock.sleep(5);

    abort.abort();

    assert.match((await work).message, /given up/);
    assert.match((await refused({ signal: AbortSignal.abort() })).message, /given up/);
    assert.equal(double.requests.length, 1);
  });

  test('one call that fails for good ends the others', async () => {
    double.fault('bad-request', { times: 1 });
    const texts = Array.from({ length: 3_000 }, (_, i) => `t${i}`);

    await refusedAs('embedding_rejected', { texts });

    assert.ok(double.requests.length <= 4, `${double.requests.length}`);
  });

  test('a provider that is not there cannot be reached', async () => {
    const gone = await startEmbeddingDouble(provider, { key });
    await gone.close();

    const error = await refusedAs(
      'embedding_failed',
      {},
      { baseUrls: { ...noBaseUrls, [provider]: gone.baseUrl } },
    );

    assert.match(error.message, /could not be reached \(ECONNREFUSED\)/);
  });
}

/** Nothing that is sent, logged or kept of an error holds the key, or the better part of it. */
function assertNoKey(error: ApiError): void {
  const everything = inspect(error, { depth: Number.POSITIVE_INFINITY, showHidden: true }) + error.stack;
  for (const piece of [key, 'secret-0123456789', 'secret-9876543210'])
    assert.ok(!everything.includes(piece), everything);
}

test('an account that may have one call at a time gets by with one', async () => {
  await using double = disposable(
    await startEmbeddingDouble('mistral', { key, inFlightMax: 1, delayMs: 10 }),
  );
  const [model, texts] = ['mistral-embed', Array.from({ length: 640 }, (_, i) => `text ${i}`)];

  const answer = await embedByProvider(
    { provider: 'mistral', model, dims: 1_024, key, texts, purpose: 'document', deadlineMs: 20_000 },
    {
      baseUrls: { ...noBaseUrls, mistral: double.baseUrl },
      clock: systemClock,
      random: systemRandom,
      fetch: globalThis.fetch,
    },
  );

  assertVectors(answer, model, texts, 1_024);
  // Twenty, and one for each of the three that were too many.
  assert.equal(double.requests.length, 23);
});

test('an error of the connection that quotes the request says nothing of it', async () => {
  const failures: readonly ((headers: string) => Error)[] = [
    (headers) => new TypeError(`invalid header ${headers}`),
    (headers) => new TypeError('fetch failed', { cause: new Error(`refused ${headers}`) }),
    (headers) => Object.assign(new Error(headers), { code: 'ECONNRESET', cause: { headers } }),
    (headers) => Object.assign(new Error(headers), { code: headers }),
  ];
  for (const provider of keyedProviders) {
    for (const failure of failures) {
      const fetch = async (_: unknown, init?: { headers?: unknown }) => {
        assert.ok(JSON.stringify(init?.headers).includes(key));
        throw failure(JSON.stringify(init?.headers));
      };
      const model = modelOf({ provider });
      const error: unknown = await embedByProvider(
        { provider, model, dims: null, key, texts: ['a'], purpose: 'query', deadlineMs: 10_000 },
        { baseUrls: noBaseUrls, clock: hurriedClock, random: systemRandom, fetch },
      ).catch((thrown: unknown) => thrown);

      assert.ok(error instanceof ApiError && error.code === 'embedding_failed');
      assertNoKey(error);
    }
  }
});

test('vectors that come in another order are put into theirs', async () => {
  for (const provider of ['openai', 'mistral'] as const) {
    await using double = disposable(await startEmbeddingDouble(provider, { key, backwards: true }));
    const baseUrls = { ...noBaseUrls, [provider]: double.baseUrl };
    const [model, dims, texts] = [modelOf({ provider }), lengths[provider], ['a', 'b', 'c']];

    const answer = await embedByProvider(
      { provider, model, dims, key, texts, purpose: 'document', deadlineMs: 10_000 },
      { baseUrls, clock: systemClock, random: systemRandom, fetch: globalThis.fetch },
    );

    assertVectors(answer, model, texts, dims);
  }
});

test('without a base URL the provider itself is asked, whatever the environment says', async () => {
  process.env.OPENAI_BASE_URL = 'http://127.0.0.1:9/elsewhere';
  const urls: string[] = [];
  const fetch = async (url: string | URL | Request) => {
    urls.push(String(url));
    return new Response('{}', { status: 401 });
  };
  for (const provider of keyedProviders) {
    const request = { provider, model: modelOf({ provider }), dims: null, key, texts: ['a', 'b'] };
    await assert.rejects(
      embedByProvider(
        { ...request, purpose: 'query', deadlineMs: 10_000 },
        { baseUrls: noBaseUrls, clock: systemClock, random: systemRandom, fetch },
      ),
      { code: 'embedding_key_invalid' },
    );
  }
  delete process.env.OPENAI_BASE_URL;

  assert.deepEqual(urls, [
    'https://api.openai.com/v1/embeddings',
    'https://api.cohere.com/v2/embed',
    'https://generativelanguage.googleapis.com/v1beta/models/gemini-embedding-001:batchEmbedContents',
    'https://api.mistral.ai/v1/embeddings',
  ]);
});

function disposable(double: EmbeddingDouble): EmbeddingDouble & AsyncDisposable {
  return { ...double, [Symbol.asyncDispose]: () => double.close() };
}
