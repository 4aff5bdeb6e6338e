import assert from 'node:assert/strict';
import { test } from 'node:test';
import { liveLiteralRows, rowsWithLiteral } from '../../../actors/search/literal-rows.ts';
import type { ReadBlock } from '../../../actors/search/read-ahead.ts';
import type { SegmentReader } from '../../../actors/storage/segment-reader.ts';
import { noTombstones, withDeleted } from '../../../actors/storage/tombstones.ts';
import { QueryPatterns } from '../../../actors/text/query-pattern.ts';
import { randomBlock, randomLetters } from '../../support/literal-blocks.ts';
import { seededRandom } from '../../support/segments.ts';

const seed = Number(process.env.TIDEBASE_TEST_SEED ?? Math.floor(Math.random() * 1e9));
const patterns = new QueryPatterns();
test('one pass over a block finds the rows whose texts have a literal, and no others', (t) => {
  t.diagnostic(`TIDEBASE_TEST_SEED=${seed}`);
  const random = seededRandom(seed);
  let foundRows = 0;
  for (let round = 0; round < 900; round++) {
    const firstRow = Math.floor(random() * 100_000);
    const { block, texts } = randomBlock(random, firstRow);
    const literal = patterns.of(`${randomLetters(random, 3)}a`, false);
    const has = (index: number) => {
      const text = texts[index] ?? null;
      return text !== null && literal.matcher.test(Buffer.from(text));
    };
    const first = Math.floor(random() * texts.length);
    const end = first + 1 + Math.floor(random() * (texts.length - first));
    const wanted = texts.flatMap((_, index) => (index >= first && index < end && has(index) ? [index] : []));

    assert.deepEqual(rowsWithLiteral(block, { first, end, isWanted: () => true }, literal), wanted);
    foundRows += wanted.length;

    // The newest first, some of them side by side, some apart.
    const ranges: number[] = [];
    for (let below = end; below > first; ) {
      const rangeEnd = below - Math.floor(random() * 3);
      const rangeFirst = Math.max(first, rangeEnd - 1 - Math.floor(random() * 6));
      if (rangeFirst < rangeEnd) ranges.push(firstRow + rangeFirst, firstRow + rangeEnd);
      below = rangeFirst;
    }
    const isAsked = (row: number) =>
      ranges.some((from, at) => at % 2 === 0 && row >= from && row < (ranges[at + 1] as number));
    const rows = wanted.map((index) => firstRow + index).filter(isAsked);
    const dead = rows.filter(() => random() < 0.3);
    const read: ReadBlock = {
      block,
      ranges,
      tombstones: withDeleted(noTombstones, dead),
      reader: null as unknown as SegmentReader,
      number: 0,
    };
    const living = rows.filter((row) => !dead.includes(row));
    assert.deepEqual(
      liveLiteralRows(read, literal)?.toSorted((a, b) => a - b),
      living,
    );
    assert.equal(liveLiteralRows({ ...read, parts: new Map() }, literal), null);
  }
  assert.ok(foundRows > 1_000, `${foundRows} rows`);
});
