import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type FoldedText,
  isSure,
  LiteralFinder,
  rowOf,
  type WantedPiece,
} from '../../../actors/kernels/literal-finder.ts';
import { documentTextLength, documentTextStart } from '../../../actors/storage/document-batch.ts';
import { entryOf, seededRandom } from '../../support/segments.ts';

const seed = Number(process.env.TIDEBASE_TEST_SEED ?? Math.floor(Math.random() * 1e9));
const finder = new LiteralFinder();

function foldedText(bytes: Uint8Array): FoldedText {
  const isLetter = (byte: number) => /[A-Za-z]/.test(String.fromCharCode(byte));
  const folds = bytes.map((byte) => (isLetter(byte) ? byte | 0x20 : byte));
  return { folds, masks: folds.map((byte) => (isLetter(byte) ? 0x20 : 0)) };
}

function isAt({ folds, masks }: FoldedText, bytes: Uint8Array, at: number): boolean {
  return folds.every((fold, i) => ((bytes[at + i] as number) | (masks[i] as number)) === fold);
}

/** Each with whether all of the literal is there, where the piece is found first in a text. */
function naiveRows(wanted: WantedPiece, bytes: Buffer, offsets: readonly number[]): [number, boolean][] {
  const { piece, literal, pieceStart, isExact } = wanted;
  return offsets.flatMap((offset, row) => {
    const start = documentTextStart(bytes, offset);
    const end = start + documentTextLength(bytes, offset);
    let at = start;
    while (at < end && !(at + piece.folds.length <= bytes.length && isAt(piece, bytes, at))) at++;
    if (at >= end) return [];
    const begin = at - pieceStart;
    const isWhole =
      literal !== null &&
      begin >= start &&
      begin + literal.folds.length <= end &&
      isAt(literal, bytes, begin);
    return isWhole || !isExact ? [[row, isWhole] as [number, boolean]] : [];
  });
}

test('finds the rows that a look at each byte finds, wherever they begin in their memory', (t) => {
  t.diagnostic(`TIDEBASE_TEST_SEED=${seed}`);
  const random = seededRandom(seed);
  const below = (bound: number) => Math.floor(random() * bound);
  // Few letters, in both cases, and bytes that differ from one by the bit of the case alone.
  const letters = Buffer.from('aaAbB@`\u0000', 'latin1');
  const some = (lengthMax: number) =>
    Buffer.from(
      Array.from(
        { length: below(lengthMax + 1) },
        () => letters[Math.floor(random() ** 2 * letters.length)] as number,
      ),
    );
  const counts = { sure: 0, unsure: 0 };
  for (let round = 0; round < 4_000; round++) {
    const entries = Array.from({ length: 1 + below(20) }, () =>
      entryOf({
        id: `${some(3)}a`,
        text: random() < 0.1 ? null : some(random() < 0.8 ? 20 : 90),
        meta: random() < 0.4 ? some(6) : null,
        vector: random() < 0.3 ? Float32Array.from([Buffer.from('aabb').readFloatLE(0)]) : null,
      }),
    );
    let end = 0;
    const offsets = entries.map((entry) => {
      const offset = end;
      end += entry.length;
      return offset;
    });
    const joined = Buffer.concat(entries);
    const place = below(8);
    const bytes = Buffer.from(new SharedArrayBuffer(joined.length + 8)).subarray(
      place,
      place + joined.length,
    );
    bytes.set(joined);
    // Mostly one that is there.
    const length = 1 + below(random() < 0.7 ? 6 : 32);
    const from = below(Math.max(1, joined.length - length));
    const literal =
      random() < 0.8 && joined.length >= length
        ? joined.subarray(from, from + length)
        : letters.subarray(0, 3);
    const pieceStart = random() < 0.5 ? 0 : below(literal.length);
    const pieceEnd = pieceStart + 1 + below(literal.length - pieceStart);
    const piece = foldedText(literal.subarray(pieceStart, pieceEnd));
    const wanted: WantedPiece = {
      piece: { ...piece, anchors: [below(piece.folds.length), below(piece.folds.length)] },
      literal: random() < 0.9 ? foldedText(literal) : null,
      pieceStart,
      isExact: piece.folds.length === literal.length && random() < 0.8,
    };
    if (wanted.literal === null && wanted.isExact) continue;

    const found = Array.from(finder.find(wanted, bytes), (row) => [rowOf(row), isSure(row)]);

    assert.deepEqual(found, naiveRows(wanted, bytes, offsets));
    for (const [, sure] of found) counts[sure ? 'sure' : 'unsure']++;
  }
  assert.ok(counts.sure > 3_000 && counts.unsure > 3_000, JSON.stringify(counts));
});

test('a text at the very end of the largest entries is found, and one that reaches out of it is not', () => {
  const text = foldedText(Buffer.from('end'));
  const wanted = {
    piece: { ...text, anchors: [0, 1] },
    literal: text,
    pieceStart: 0,
    isExact: true,
  } as const;
  const largest = (ending: string) => {
    const head = entryOf({ id: 'a', text: Buffer.alloc(0), meta: null, vector: null }).length;
    const words = Buffer.alloc(finder.bytesMax - head, 'x');
    words.write(ending, words.length - ending.length);
    return entryOf({ id: 'a', text: words, meta: null, vector: null });
  };
  assert.deepEqual([...finder.find(wanted, largest('END'))], [0]);
  assert.deepEqual([...finder.find(wanted, largest('EN'))], []);
});
