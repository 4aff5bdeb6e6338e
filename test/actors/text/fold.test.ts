import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { encodeUtf8, foldCodePoint, foldedBytesMax, foldUtf8 } from '../../../actors/text/fold.ts';
import { compileMatcher } from '../../../actors/text/regex.ts';
import { foldTableSource, type Orbit, observedOrbits, representativeOf } from '../../support/folding.ts';
import { repositoryRoot } from '../../support/repository.ts';
import { seededRandom } from '../../support/segments.ts';

const tablePath = join(repositoryRoot(), 'actors/text/fold-table.ts');
let orbits: readonly Orbit[] | undefined;
const observed = () => {
  orbits ??= observedOrbits();
  return orbits;
};

function folded(text: string | Uint8Array): Buffer {
  const source = Buffer.from(text as string);
  const target = Buffer.alloc(foldedBytesMax(source.length) + 2, 0x7a);
  const end = foldUtf8(source, 0, source.length, target, 1);
  assert.deepEqual([target[0], target[end]], [0x7a, 0x7a], 'writes only where it says');
  return target.subarray(1, end);
}

test('the table is what the installed RE2 does, for every code point', () => {
  const source = foldTableSource(observed());
  if (process.env.UPDATE_GOLDEN === '1') writeFileSync(tablePath, source);

  assert.equal(readFileSync(tablePath, 'utf8'), source, 'UPDATE_GOLDEN=1 writes the table anew');
});

test('code points fold to the representative of their orbit, all others to themselves', () => {
  const representatives = new Map(
    observed().flatMap((orbit) => orbit.map((codePoint) => [codePoint, representativeOf(orbit)] as const)),
  );
  const bytes = Buffer.alloc(8);
  for (let codePoint = 0; codePoint < 0x110000; codePoint++) {
    const expected = representatives.get(codePoint) ?? codePoint;
    if (foldCodePoint(codePoint) !== expected)
      assert.fail(`U+${codePoint.toString(16)} folds to U+${foldCodePoint(codePoint).toString(16)}`);
    if (codePoint >= 0xd800 && codePoint <= 0xdfff) continue;
    const end = encodeUtf8(codePoint, bytes, 0);
    const foldedEnd = foldUtf8(bytes, 0, end, bytes, 0);
    if (foldedEnd > foldedBytesMax(end) || bytes.toString('utf8', 0, foldedEnd).codePointAt(0) !== expected)
      assert.fail(`U+${codePoint.toString(16)}, as bytes`);
  }
});

test('famous characters meet, and what only full folding would join does not', () => {
  assert.equal(folded('K\u212a\u017fSÅ\u212bΣς').toString(), 'kkssÅÅΣΣ'.replaceAll('Å', '\u00c5'));
  assert.equal(folded('İıIi').toString(), 'İıii');
  assert.equal(folded('ßẞ').toString(), 'ßß');
  assert.equal(folded('ﬀ').toString(), 'ﬀ');
  assert.equal(folded('A\u030a').toString(), 'a\u030a', 'a combining mark is a character of its own');
});

test('classes under (?i) take whole orbits, negated ones leave whole orbits out', () => {
  const matches = (pattern: string, text: string) => compileMatcher(pattern, true).test(Buffer.from(text));

  assert.deepEqual(
    [matches('(?i)[j-l]', '\u212a'), matches('(?i)[^k]', '\u212a'), matches('[^k]', '\u212a')],
    [true, false, true],
  );
  assert.deepEqual([matches('(?i)\\W', '\u017f'), matches('\\W', '\u017f')], [false, true]);
  assert.deepEqual([matches('(?i)\\p{Lu}', 'a'), matches('(?i)[[:upper:]]', '\u017f')], [true, true]);
});

test('bytes that are no UTF-8 are copied, and what follows them is folded', () => {
  const source = Buffer.from([
    0x41, 0xff, 0x42, 0xe2, 0x84, 0x43, 0xc1, 0x81, 0x80, 0xed, 0xa0, 0x80, 0xf5, 0x80, 0x44, 0xf0, 0x9f,
    0xe2, 0x84,
  ]);
  const expected = Buffer.from(source).map((byte) => (byte >= 0x41 && byte <= 0x5a ? byte + 0x20 : byte));

  assert.deepEqual(folded(source), Buffer.from(expected));
});

test('folding a part equals the part of what the whole folds to, at every border of characters', () => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  const random = seededRandom(seed);
  const alphabet = [...'aZkK\u212a\u017fÄßẞΣςיִ潮😀𐐀𐐨\u0000'];
  for (let round = 0; round < 200; round++) {
    const pick = () => alphabet[Math.floor(random() * alphabet.length)] ?? '';
    const [left, right] = [
      Array.from({ length: 9 }, pick).join(''),
      Array.from({ length: 9 }, pick).join(''),
    ];
    assert.deepEqual(folded(left + right), Buffer.concat([folded(left), folded(right)]), `seed ${seed}`);
  }
});
