import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type FoldedPiece, PieceFinder } from '../../../actors/kernels/piece-finder.ts';
import { seededRandom } from '../../support/segments.ts';

const seed = Number(process.env.TIDEBASE_TEST_SEED ?? Math.floor(Math.random() * 1e9));
const finder = new PieceFinder();

function naiveNext({ folds, masks }: FoldedPiece, text: Uint8Array, from: number): number {
  for (let at = from; at + folds.length <= text.length; at++)
    if (folds.every((fold, i) => ((text[at + i] as number) | (masks[i] as number)) === fold)) return at;
  return -1;
}

function all(next: (from: number) => number): number[] {
  const found: number[] = [];
  for (let at = next(0); at >= 0; at = next(at + 1)) found.push(at);
  return found;
}

test('finds every place of a piece that a look at each byte finds, wherever the text begins in its memory', (t) => {
  t.diagnostic(`TIDEBASE_TEST_SEED=${seed}`);
  const random = seededRandom(seed);
  const below = (bound: number) => Math.floor(random() * bound);
  // Few letters, in both cases, and bytes that differ from one by the bit of the case alone.
  const bytes = Buffer.from('aaAbB@`\u0000\u00ff', 'latin1');
  let places = 0;
  for (let round = 0; round < 4_000; round++) {
    const memory = new Uint8Array(new SharedArrayBuffer(below(700) + 8));
    memory.forEach((_, at) => {
      memory[at] = bytes[Math.floor(random() ** 2 * bytes.length)] as number;
    });
    const start = below(8);
    const text = memory.subarray(start, start + below(memory.length - start + 1));
    const length = 1 + below(random() < 0.7 ? 4 : 32);
    const from = below(Math.max(1, text.length - length));
    // Mostly one that is there.
    const sample =
      random() < 0.8 && text.length >= length ? text.slice(from, from + length) : bytes.subarray(0, 3);
    const folds = sample.map((byte) => (/[A-Za-z]/.test(String.fromCharCode(byte)) ? byte | 0x20 : byte));
    const masks = folds.map((byte) => (byte >= 0x61 && byte <= 0x7a ? 0x20 : 0));
    const piece: FoldedPiece = { folds, masks, anchors: [below(folds.length), below(folds.length)] };

    finder.load(piece, text);
    const found = all((next) => finder.next(next));

    assert.deepEqual(
      found,
      all((next) => naiveNext(piece, text, next)),
    );
    places += found.length;
  }
  assert.ok(places > 10_000, `${places} places`);
});

test('a piece at the very end of the largest text is found, and one that reaches out of it is not', () => {
  const text = new Uint8Array(finder.textBytesMax);
  const piece: FoldedPiece = {
    folds: Buffer.from('end'),
    masks: new Uint8Array(3).fill(0x20),
    anchors: [0, 1],
  };
  text.set(Buffer.from('END'), text.length - 3);
  finder.load(piece, text);
  assert.equal(finder.next(0), text.length - 3);
  finder.load(piece, text.subarray(0, text.length - 1));
  assert.equal(finder.next(0), -1);
});
