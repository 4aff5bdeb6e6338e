import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { piecesOf, planBatches } from '../../../actors/embedding/token-pieces.ts';

const tokensOf = (...lengths: number[]) => lengths.map((length) => new Uint16Array(length));
const lengthsOf = (tokens: readonly Uint16Array[]) =>
  piecesOf(tokens).map(({ text, tokenIds }) => [text, tokenIds.length]);

test('a text is cut every 128 tokens, and one without tokens has no piece', () => {
  assert.deepEqual(lengthsOf(tokensOf(128, 0, 300, 1)), [
    [0, 128],
    [2, 128],
    [2, 128],
    [2, 44],
    [3, 1],
  ]);
});

test('pieces of like length are computed together, the shortest first', () => {
  const batches = planBatches(piecesOf(tokensOf(128, 3, 20, 5, 120, 3, 24, 128, 128)));

  assert.deepEqual(
    batches.map((batch) => batch.map(({ tokenIds }) => tokenIds.length)),
    [
      [3, 3, 5],
      [20, 24],
      [120, 128],
      [128, 128],
    ],
  );
});

test('each piece stands in one batch, and no batch is larger than two of the longest pieces', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 1_000 })), (lengths) => {
      const pieces = piecesOf(tokensOf(...lengths));
      const batches = planBatches(pieces);

      assert.deepEqual(new Set(batches.flat()), new Set(pieces));
      assert.equal(batches.flat().length, pieces.length);
      for (const batch of batches) {
        const longest = Math.max(...batch.map(({ tokenIds }) => tokenIds.length));
        assert.ok(batch.length > 0 && batch.length * longest <= 2 * 128);
      }
    }),
  );
});
