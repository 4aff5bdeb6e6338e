import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  answerBytesMax,
  askedDims,
  callLimits,
  lengthOf,
  modelOf,
  modelProblem,
  mustScale,
  purposeIsParameter,
  textFor,
} from '../../../actors/embedding/embedding-models.ts';
import { limits } from '../../../protocol/limits.ts';
import { embedProviders } from '../../../protocol/namespace.ts';

test('every provider has a default model of a known length that we take', () => {
  for (const provider of embedProviders) {
    const length = lengthOf(provider, modelOf({ provider }), undefined);
    assert.ok(typeof length === 'number' && length <= limits.vectorDimsMax, provider);
  }
});

test('a model that is named is taken', () => {
  assert.equal(modelOf({ provider: 'openai', model: 'mine' }), 'mine');
});

const lengths: readonly (readonly [Parameters<typeof lengthOf>, ReturnType<typeof lengthOf>])[] = [
  [['openai', 'text-embedding-3-small', undefined], 1_536],
  [['openai', 'text-embedding-3-small', 1], 1],
  [['openai', 'text-embedding-3-small', 1_537], 'impossible'],
  [['openai', 'text-embedding-3-large', undefined], 2_048],
  [['openai', 'text-embedding-3-large', 256], 256],
  [['openai', 'text-embedding-3-large', 3_072], 'impossible'],
  [['openai', 'text-embedding-ada-002', undefined], 1_536],
  [['openai', 'text-embedding-ada-002', 1_536], 1_536],
  [['openai', 'text-embedding-ada-002', 512], 'impossible'],
  [['cohere', 'embed-v4.0', undefined], 1_536],
  [['cohere', 'embed-v4.0', 1_024], 1_024],
  [['cohere', 'embed-v4.0', 1_000], 'impossible'],
  [['cohere', 'embed-english-light-v3.0', undefined], 384],
  [['cohere', 'embed-english-v3.0', 512], 'impossible'],
  [['google', 'gemini-embedding-001', undefined], 2_048],
  [['google', 'gemini-embedding-001', 768], 768],
  [['google', 'gemini-embedding-001', 127], 'impossible'],
  [['mistral', 'mistral-embed', undefined], 1_024],
  [['mistral', 'mistral-embed', 512], 'impossible'],
  [['service', 'use-lite-512', undefined], 512],
  [['service', 'use-lite-512', 511], 'impossible'],
  [['openai', 'not-yet-known', undefined], 'unknown'],
  [['openai', 'not-yet-known', 700], 700],
  [['openai', 'not-yet-known', 3_072], 'impossible'],
  [['openai', 'constructor', undefined], 'unknown'],
];
for (const [[provider, model, dims], length] of lengths) {
  test(`${provider} ${model} asked for ${dims} makes ${length}`, () => {
    assert.equal(lengthOf(provider, model, dims), length);
  });
}

test('a length is asked for only where the model makes several', () => {
  assert.equal(askedDims('openai', 'text-embedding-3-large', 1_024), 1_024);
  assert.equal(askedDims('openai', 'text-embedding-3-large', null), 2_048);
  assert.equal(askedDims('openai', 'text-embedding-ada-002', 1_536), null);
  assert.equal(askedDims('mistral', 'mistral-embed', 1_024), null);
  assert.equal(askedDims('openai', 'not-yet-known', 700), null);
});

test("only short vectors of Gemini's first model are scaled", () => {
  assert.equal(mustScale('google', 'gemini-embedding-001', 768), true);
  assert.equal(mustScale('google', 'gemini-embedding-001', 3_072), false);
  assert.equal(mustScale('google', 'gemini-embedding-2', 768), false);
  assert.equal(mustScale('openai', 'text-embedding-3-small', 256), false);
});

test("the purpose is a parameter, or the beginning of Gemini's second model's text, or unsaid", () => {
  assert.equal(purposeIsParameter('cohere', 'embed-v9.0'), true);
  assert.equal(purposeIsParameter('google', 'gemini-embedding-001'), true);
  assert.equal(purposeIsParameter('google', 'gemini-embedding-2'), false);
  assert.equal(textFor('google', 'gemini-embedding-001', 'a', 'query'), 'a');
  assert.equal(textFor('google', 'gemini-embedding-2', 'a', 'query'), 'task: search result | query: a');
  assert.equal(textFor('google', 'gemini-embedding-2', 'a', 'document'), 'title: none | text: a');
});

test('a model of the service other than its one, and a Google model that would change the URL, have a problem', () => {
  assert.equal(modelProblem('service', 'use-lite-512'), null);
  assert.match(modelProblem('service', 'other') ?? '', /must be use-lite-512/);
  assert.equal(modelProblem('google', 'gemini-embedding-001'), null);
  for (const model of ['../files', 'a/b', 'a?b', 'a#b', 'a b'])
    assert.notEqual(modelProblem('google', model), null);
  assert.equal(modelProblem('openai', 'someone/their-model:latest'), null);
});

test('calls keep the provider’s count, and the count that a thread can read at once', () => {
  assert.equal(callLimits('openai', 'text-embedding-3-small', 64).textsMax, 2_048);
  assert.equal(callLimits('openai', 'text-embedding-3-small', 1_536).textsMax, 170);
  assert.equal(callLimits('openai', 'not-yet-known', null).textsMax, 64);
  assert.equal(callLimits('cohere', 'embed-v4.0', null).textsMax, 96);
  assert.equal(callLimits('google', 'gemini-embedding-001', 2_048).textsMax, 100);
  assert.deepEqual(callLimits('mistral', 'mistral-embed', 1_024), { textsMax: 32, bytesMax: 16_000 });
});

test('an answer may be as long as its vectors can be', () => {
  const longest = JSON.stringify(
    Array.from({ length: 1_536 }, () => -1.2345678901234567e-100),
    null,
    8,
  );

  assert.ok(longest.length < answerBytesMax(1, 1_536));
});
