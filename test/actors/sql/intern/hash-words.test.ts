import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hashBytes } from '../../../../actors/columns/hash-bytes.ts';
import { hashSecret, hashWords } from '../../../../actors/sql/intern/hash-words.ts';

const count = 10_000;
/** How many hashes they must have whatever is secret: the differences between two secrets are less than chance would have. */
const distinctMin = 1_000;

test('values that all have one hash where nothing is secret have many', () => {
  // What the first word comes to without secrets, taken out again by the second.
  const undone = (first: number) => {
    let hash = Math.imul(first, 0x9e3779b1);
    hash ^= hash >>> 15;
    return hash ^ (hash >>> 13) ^ 0x1234567;
  };
  const words = Array.from({ length: count }, (_, at) => [at + 1, undone(at + 1)] as const);
  const plain = new Set(words.map(([first, second]) => hashWords(first, second, 0, 1)));
  assert.equal(plain.size, 1, 'the values are chosen for this hash');

  assert.ok(new Set(words.map(([first, second]) => hashWords(first, second))).size > distinctMin);
});

test('differences that no carry reaches do not cancel, whatever is secret', () => {
  const hashes = new Set<number>();
  for (let t = 0; t < 256; t++)
    for (let u = 0; u < 256; u++) hashes.add(hashWords(7 ^ (t << 24), 9 ^ (u << 24) ^ (u << 9)));
  assert.ok(hashes.size > 30_000, `65,536 values with ${hashes.size} hashes`);
});

test('strings that all have one hash where nothing is secret have many', () => {
  const views = Array.from({ length: count }, (_, at) => {
    const view = new DataView(new ArrayBuffer(8));
    view.setInt32(0, at + 1, true);
    const hash = Math.imul(8 ^ (at + 1), 0x9e3779b1);
    view.setInt32(4, hash ^ (hash >>> 15) ^ 0x1234567, true);
    return view;
  });
  assert.equal(new Set(views.map((view) => hashBytes(view, 0, 8, 0))).size, 1);

  assert.ok(new Set(views.map((view) => hashBytes(view, 0, 8, hashSecret))).size > distinctMin);
});
