import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EmbeddedVectors, embeddingsProblem, inOrder } from '../../../actors/embedding/provider-answer.ts';

const two = { texts: 2, dims: 2 };

test('vectors are what they should be', () => {
  assert.equal(
    embeddingsProblem(
      [
        [1, 0.5],
        [0, -1],
      ],
      two,
    ),
    null,
  );
});

const wrong: readonly (readonly [string, number[][], RegExp])[] = [
  ['too few', [[1, 2]], /1 vectors for 2 texts/],
  ['too many', [[1], [2], [3]], /3 vectors for 2 texts/],
  ['short', [[1, 2], [1]], /vectors of 1 numbers where 2 are needed/],
  ['empty', [[1, 2], []], /empty/],
  [
    'not a number',
    [
      [1, 2],
      [Number.NaN, 1],
    ],
    /none, or too large/,
  ],
  [
    'beyond float32',
    [
      [1, 2],
      [1e39, 1],
    ],
    /none, or too large/,
  ],
];
for (const [name, embeddings, problem] of wrong) {
  test(`${name}: refused`, () => assert.match(embeddingsProblem(embeddings, two) ?? '', problem));
}

test('the first answer says the length where none is given, and the others keep to it', () => {
  const vectors = new EmbeddedVectors({ texts: 3, dims: null, scaled: false });

  assert.equal(vectors.take([[1, 2]], [2]), null);
  assert.match(vectors.take([[1, 2, 3]], [0]) ?? '', /vectors of 3 numbers where 2/);
  assert.equal(vectors.take([[3, 4]], [0]), null);

  assert.deepEqual([...vectors.values], [3, 4, 0, 0, 1, 2]);
  assert.equal(vectors.dims, 2);
});

test('scaled vectors have the length of 1, but for one of zeros', () => {
  const vectors = new EmbeddedVectors({ texts: 2, dims: 2, scaled: true });

  vectors.take(
    [
      [3, 4],
      [0, 0],
    ],
    [0, 1],
  );

  assert.deepEqual([...vectors.values], [Math.fround(0.6), Math.fround(0.8), 0, 0]);
});

test('vectors are put in the order of their places', () => {
  const places = (...indices: unknown[]) => ({ data: indices.map((index) => ({ index })) });

  assert.deepEqual(inOrder([[1], [2], [3]], places(2, 0, 1)), [[2], [3], [1]]);
  for (const body of [undefined, null, {}, { data: 7 }, places(undefined, undefined), { data: [null, 7] }])
    assert.deepEqual(inOrder([[1], [2]], body), [[1], [2]]);
  for (const body of [places(0, 0), places(1, 2), places(-1, 0), places(0.5, 0), places(1e9, 0)])
    assert.equal(inOrder([[1], [2]], body), null);
});
