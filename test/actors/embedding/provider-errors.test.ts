import assert from 'node:assert/strict';
import { test } from 'node:test';
import { apiErrorOf, mayPass, type ProviderFailure } from '../../../actors/embedding/provider-errors.ts';
import { retryInMs } from '../../../actors/embedding/provider-retries.ts';
import { readRefusal } from '../../../actors/embedding/read-refusal.ts';
import { systemRandom } from '../../../src/base/random.ts';

const key = 'sk-a-secret-that-nobody-may-see';
const context = { provider: 'openai', model: 'text-embedding-3-small', key } as const;
const nowMs = Date.UTC(2026, 0, 1);

const read = (status: number, body: unknown, headers: Record<string, string> = {}) =>
  readRefusal({ status, headers, body: typeof body === 'string' ? body : JSON.stringify(body), nowMs });
const told = (failure: ProviderFailure) => apiErrorOf(failure, context);

const google = (code: number, status: string, ...details: object[]) => ({
  error: { code, message: 'words', status, details },
});
const verdicts: readonly (readonly [string, ProviderFailure, string, number])[] = [
  ['401', read(401, { error: { message: 'm' } }), 'embedding_key_invalid', 422],
  ['403', read(403, {}), 'embedding_key_invalid', 422],
  ['Mistral 401', read(401, { detail: 'Unauthorized' }), 'embedding_key_invalid', 422],
  [
    "Google's wrong key",
    read(400, google(400, 'INVALID_ARGUMENT', { reason: 'API_KEY_INVALID' })),
    'embedding_key_invalid',
    422,
  ],
  ["Google's other 400", read(400, google(400, 'INVALID_ARGUMENT')), 'embedding_rejected', 422],
  [
    "OpenAI's missing model",
    read(403, { error: { message: 'm', code: 'model_not_found' } }),
    'embedding_rejected',
    422,
  ],
  ['400', read(400, { message: 'm' }), 'embedding_rejected', 422],
  ['402', read(402, { message: 'm' }), 'embedding_rejected', 422],
  ['404', read(404, 'not json'), 'embedding_rejected', 422],
  ['413', read(413, ''), 'embedding_rejected', 422],
  ['422', read(422, { detail: [{ msg: 'm' }] }), 'embedding_rejected', 422],
  ['429', read(429, {}), 'embedding_rate_limited', 429],
  ['500', read(500, 'oops'), 'embedding_failed', 502],
  ['529', read(529, ''), 'embedding_failed', 502],
  ['408', read(408, ''), 'embedding_failed', 502],
  ['no answer', { kind: 'unreachable', problem: 'ECONNRESET' }, 'embedding_failed', 502],
  ['time-out', { kind: 'timeout' }, 'embedding_failed', 502],
  ['garbage', { kind: 'unusable', problem: 'garbage' }, 'embedding_failed', 502],
];
for (const [name, failure, code, status] of verdicts) {
  test(`${name} is ${code}`, () => {
    const error = told(failure);

    assert.equal(error.code, code);
    assert.equal(error.status, status);
    assert.match(error.message, /openai/);
    assert.equal(error.cause, undefined);
  });
}

test('a refused request is explained in the words of the provider, whichever its shape', () => {
  for (const body of [
    { error: { message: 'unknown model x' } },
    { error: 'unknown model x' },
    { message: 'unknown model x' },
    { detail: 'unknown model x' },
    { detail: [{ msg: 'unknown model x' }] },
  ]) {
    assert.match(told(read(400, body)).message, /text-embedding-3-small \(status 400\): unknown model x$/);
  }
});

test('words are one line of bounded length, and nothing is repeated of a page', () => {
  const long = told(read(400, { message: `line\r\n\u0007${'x'.repeat(10_000)}` })).message;
  assert.ok(long.length < 450 && !/[\r\n\u0007]/.test(long), long);

  assert.doesNotMatch(told(read(400, '<html>page</html>')).message, /page/);
});

test('words that quote the key lose it, and those that quote a piece are left out', () => {
  assert.match(told(read(400, { message: `bad ${key}!` })).message, /bad \[key\]!/);

  const { message } = told(read(400, { message: `bad ${key.slice(0, 15)}***` }));
  assert.doesNotMatch(message, /sk-a/);
  assert.doesNotMatch(apiErrorOf(read(404, {}), { ...context, model: key }).message, /sk-a/);
});

test('a limited rate says when to come back', () => {
  const seconds = (body: unknown, headers: Record<string, string>) =>
    told(read(429, body, headers)).retryAfter;

  assert.equal(seconds({}, { 'retry-after': '7' }), 7);
  assert.equal(seconds({}, { 'retry-after': '0.2' }), 1);
  assert.equal(seconds({}, { 'retry-after': new Date(nowMs + 90_000).toUTCString() }), 90);
  assert.equal(seconds({}, { 'retry-after': new Date(nowMs - 90_000).toUTCString() }), 1);
  assert.equal(seconds({}, { 'retry-after': 'soon' }), 20);
  assert.equal(seconds({}, { 'retry-after': '-5' }), 20);
  assert.equal(seconds({}, { 'retry-after': '999999' }), 3_600);
  assert.equal(seconds({}, { 'retry-after-ms': '2500', 'retry-after': '9' }), 3);
  assert.equal(seconds(google(429, 'RESOURCE_EXHAUSTED', { retryDelay: '37s' }), {}), 37);
  assert.equal(seconds({}, {}), 20);
});

test('a used-up quota says so, and is not tried again', () => {
  const failure = read(429, {
    error: { message: 'm', type: 'insufficient_quota', code: 'insufficient_quota' },
  });

  assert.equal(told(failure).code, 'embedding_rate_limited');
  assert.match(told(failure).message, /quota .* used up/);
  assert.equal(mayPass(failure), false);
});

test('only what may pass is tried again, twice, while the time lasts', () => {
  const retry = (failure: ProviderFailure, attempts = 1, msLeft = 30_000) =>
    retryInMs({ failure, attempts, msLeft }, systemRandom);
  const waits = (failure: ProviderFailure, attempts: number, from: number, to: number) => {
    for (let i = 0; i < 100; i++) {
      const wait = retry(failure, attempts) ?? Number.NaN;
      assert.ok(wait >= from && wait <= to, `${wait}`);
    }
  };

  waits({ kind: 'timeout' }, 1, 200, 400);
  waits(read(503, ''), 2, 400, 800);
  waits(read(429, '', { 'retry-after': '2' }), 1, 2_000, 2_100);
  assert.equal(retry({ kind: 'timeout' }, 3), null);
  assert.equal(retry({ kind: 'timeout' }, 1, 300), null);
  assert.equal(retry(read(429, '', { 'retry-after': '30' })), null);
  assert.equal(retry(read(400, '')), null);
  assert.equal(retry(read(401, '')), null);
  assert.equal(retry({ kind: 'unusable', problem: 'garbage' }), null);
});
