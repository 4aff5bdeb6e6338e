import assert from 'node:assert/strict';
import { test } from 'node:test';
import { foldedBytesMax, foldUtf8 } from '../../../actors/text/fold.ts';
import { linesEnd } from '../../../actors/text/line-pieces.ts';
import { leastPieceBytes } from '../../../actors/text/match-pieces.ts';
import { partBytes, partOverlapBytes, partsOf as textPartsOf } from '../../../actors/text/text-parts.ts';
import { firstLineFeed, lastLineFeed } from '../../../actors/text/text-pieces.ts';
import { seededRandom } from '../../support/segments.ts';

const seed = Number(process.env.TIDEBASE_TEST_SEED ?? 40);
const letters = [...'abc \n', 'é', '潮', '🌊', '\u{212A}'];

function partsOf(text: Buffer, start: number): [number, number][] {
  const { bounds } = textPartsOf(text, start, text.length);
  return Array.from({ length: bounds.length / 2 }, (_, at) => [bounds[2 * at] ?? 0, bounds[2 * at + 1] ?? 0]);
}

const isInsideCharacter = (text: Buffer, at: number) => ((text[at] ?? 0) & 0xc0) === 0x80;

test('whatever is no longer than the overlap lies in one part, with two characters behind it', (t) => {
  t.diagnostic(`seed ${seed}`);
  const random = seededRandom(seed);
  for (let round = 0; round < 20; round++) {
    const characters = Array.from(
      { length: 1 + Math.floor(random() * 80_000) },
      () => letters[Math.floor(random() * letters.length)],
    );
    const text = Buffer.from(`xyz${characters.join('')}`);
    const parts = partsOf(text, 3);

    assert.equal(parts[0]?.[0], 3);
    assert.equal(parts.at(-1)?.[1], text.length);
    for (const [at, [from, to]] of parts.entries()) {
      assert.ok(!isInsideCharacter(text, from) && !isInsideCharacter(text, to));
      assert.ok(to - from <= partBytes + partOverlapBytes + 16, `${to - from} bytes`);
      const next = parts[at + 1]?.[0];
      if (next === undefined) continue;
      // The last match that begins in this part and not in the next one, and two characters more.
      const longest = text.subarray(next - 1 + partOverlapBytes, to);
      const target = new Uint8Array(foldedBytesMax(longest.length));
      const whole = longest.subarray([...longest].findIndex((byte) => (byte & 0xc0) !== 0x80));
      assert.ok(foldUtf8(whole, 0, whole.length, target, 0) >= 2, `${next} of ${from} to ${to}`);
    }
  }
});

test('a part that says nothing new is left out', () => {
  assert.deepEqual(partsOf(Buffer.alloc(partBytes + 100, 'a'), 0), [[0, partBytes + 100]]);
  assert.deepEqual(partsOf(Buffer.alloc(0), 0), []);
});

test('line feeds are looked for in a text alone, however large the buffer is that it lies in', () => {
  const refuse = () => assert.fail('all of the buffer is looked through');
  const text = Object.assign(Buffer.alloc(10 * partBytes, 'a'), { lastIndexOf: refuse, indexOf: refuse });
  text[0] = text[text.length - 1] = 10;

  assert.equal(partsOf(text, 2 * partBytes).length, 8);
  const range = { start: 10, end: text.length - 1 };
  assert.equal(linesEnd(text, range, 100), null);
  assert.equal(leastPieceBytes(text, range, { bytesMax: 1e9, byLines: true }), range.end - range.start);
  assert.deepEqual(
    [firstLineFeed(text, 1, text.length - 1), lastLineFeed(text, 1, text.length - 1)],
    [-1, -1],
  );
  assert.deepEqual([firstLineFeed(text, 0, 9), lastLineFeed(text, 5, text.length)], [0, text.length - 1]);
});

test('a part ends with a line where lines are not too long', () => {
  const line = `${'the tide '.repeat(30)}\n`;
  const text = Buffer.from(line.repeat(800));
  const parts = partsOf(text, 0);

  assert.ok(parts.length > 3);
  assert.ok(textPartsOf(text, 0, text.length).linesAreWhole);
  for (const [from] of parts) assert.equal(from % line.length, 0);
  const cut = Buffer.concat([text, Buffer.alloc(2 * partBytes, 'x'), text]);
  assert.equal(textPartsOf(cut, 0, cut.length).linesAreWhole, false);
  const ended = Buffer.concat([text, Buffer.alloc(partBytes / 8, 'x')]);
  assert.equal(textPartsOf(ended, 0, ended.length).linesAreWhole, true);
});
