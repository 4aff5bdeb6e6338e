import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planNamespace } from '../../../actors/embedding/plan-namespace.ts';
import { ApiError } from '../../../protocol/errors.ts';
import type { NamespaceRequest } from '../../../protocol/namespace.ts';

type Wanted = Omit<NamespaceRequest, 'name'>;

const small = 'text-embedding-3-small';
const planned: readonly (readonly [string, Wanted, ReturnType<typeof planNamespace>])[] = [
  ['text only', {}, { vector: null, embed: null }],
  [
    'vectors of the caller',
    { vector: { dims: 3, metric: 'euclidean' } },
    { vector: { dims: 3, metric: 'euclidean' }, embed: null },
  ],
  [
    "a provider's default model in its own length",
    { embed: { provider: 'openai' } },
    { vector: { dims: 1_536, metric: 'cosine' }, embed: { provider: 'openai', model: small } },
  ],
  [
    'the length that embed asks for',
    { embed: { provider: 'openai', dims: 5 } },
    { vector: { dims: 5, metric: 'cosine' }, embed: { provider: 'openai', model: small, dims: 5 } },
  ],
  [
    'the length and the metric of vector',
    { embed: { provider: 'openai' }, vector: { dims: 6, metric: 'euclidean' } },
    { vector: { dims: 6, metric: 'euclidean' }, embed: { provider: 'openai', model: small } },
  ],
  [
    'the same length twice',
    { embed: { provider: 'openai', dims: 6 }, vector: { dims: 6, metric: 'cosine' } },
    { vector: { dims: 6, metric: 'cosine' }, embed: { provider: 'openai', model: small, dims: 6 } },
  ],
  [
    'a model that is not known, with the length of vector',
    { embed: { provider: 'mistral', model: 'new' }, vector: { dims: 7, metric: 'cosine' } },
    { vector: { dims: 7, metric: 'cosine' }, embed: { provider: 'mistral', model: 'new' } },
  ],
  [
    'the built-in model',
    { embed: { provider: 'service' } },
    { vector: { dims: 512, metric: 'cosine' }, embed: { provider: 'service', model: 'use-lite-512' } },
  ],
];
for (const [what, wanted, plan] of planned) {
  test(`a namespace is planned of ${what}`, () => {
    assert.deepEqual(planNamespace({ name: 'n', ...wanted }), plan);
  });
}

const refused: readonly (readonly [string, Wanted, string, string | null])[] = [
  ['a model of unknown length', { embed: { provider: 'openai', model: 'new' } }, 'invalid', 'embed.dims'],
  [
    'another name of the built-in model',
    { embed: { provider: 'service', model: small } },
    'invalid',
    'embed.model',
  ],
  [
    'a name that would be another call',
    { embed: { provider: 'google', model: 'a/b?c' } },
    'invalid',
    'embed.model',
  ],
  [
    'a length that the model cannot make',
    { embed: { provider: 'mistral', dims: 2 } },
    'embedding_dims',
    null,
  ],
  [
    'a length of vector that it cannot make',
    { embed: { provider: 'service' }, vector: { dims: 3, metric: 'cosine' } },
    'embedding_dims',
    null,
  ],
  [
    'two lengths',
    { embed: { provider: 'openai', dims: 3 }, vector: { dims: 4, metric: 'cosine' } },
    'embedding_dims',
    null,
  ],
];
for (const [what, wanted, code, field] of refused) {
  test(`a namespace of ${what} is refused as ${code}`, () => {
    assert.throws(
      () => planNamespace({ name: 'n', ...wanted }),
      (error: unknown) => {
        assert.ok(error instanceof ApiError);
        assert.deepEqual(
          [error.code, Object.keys(error.fields ?? {})],
          [code, field === null ? [] : [field]],
        );
        return true;
      },
    );
  });
}
