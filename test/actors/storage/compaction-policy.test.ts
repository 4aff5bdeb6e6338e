import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  chooseCompaction,
  chooseGathering,
  type SegmentSize,
} from '../../../actors/storage/compaction-policy.ts';

const MiB = 1024 * 1024;
const size = (megabytes: number, deletedShare = 0): SegmentSize => ({
  bytes: megabytes * MiB,
  rows: 1_000,
  deletedRows: deletedShare * 1_000,
});
const sizes = (...megabytes: number[]) => megabytes.map((m) => size(m));

const choices: readonly (readonly [
  string,
  readonly SegmentSize[],
  { first: number; last: number } | null,
])[] = [
  ['nothing to merge', [], null],
  ['three wait for a fourth', sizes(8, 8, 8), null],
  ['four even neighbours become one', sizes(8, 8, 8, 8), { first: 0, last: 3 }],
  ['a large old segment is left alone', sizes(400, 8, 8, 8, 8), { first: 1, last: 4 }],
  ['the newest four of five', sizes(8, 8, 8, 8, 8), { first: 1, last: 4 }],
  ['the newest run goes first', sizes(100, 100, 100, 100, 8, 8, 8, 8), { first: 4, last: 7 }],
  ['small ones between large ones go along', sizes(100, 100, 8, 100), { first: 0, last: 3 }],
  ['one that is larger than the rest together waits', sizes(100, 8, 8, 8), null],
  ['a longer run where no short one is even', sizes(40, 16, 40, 16, 40), { first: 0, last: 4 }],
  ['one of more than a third waits too', sizes(64, 32, 32, 32), null],
  ['what would be too large stays', sizes(1_900, 1_900, 1_900, 1_900), null],
  ['what would have too many rows stays', Array.from({ length: 4 }, () => ({ ...size(8), rows: 3e6 })), null],
  [
    'a segment that is mostly deleted is rewritten alone',
    [size(8), size(400, 0.6), size(8)],
    { first: 1, last: 1 },
  ],
  ['half deleted is not most', [size(8, 0.5)], null],
  [
    'one that has held a deleted row for too long is rewritten alone',
    [size(400), { ...size(400, 0.001), isOverdue: true }, size(8)],
    { first: 1, last: 1 },
  ],
  [
    'but first with others, where they are to be merged',
    [...sizes(8, 8, 8), { ...size(8, 0.001), isOverdue: true }],
    { first: 0, last: 3 },
  ],
];

for (const [meaning, segments, choice] of choices) {
  test(`compaction policy: ${meaning}`, () => {
    assert.deepEqual(chooseCompaction(segments), choice);
  });
}

const gatherings: readonly (readonly [
  string,
  readonly SegmentSize[],
  { first: number; last: number } | null,
])[] = [
  ['nothing to gather', sizes(8), null],
  ['two become one', sizes(70, 30), { first: 0, last: 1 }],
  ['small ones wait until they are a sixteenth', sizes(96, 4), null],
  ['small ones become one meanwhile', sizes(96, 2, 2), { first: 1, last: 2 }],
  ['all of them where the largest allows it', sizes(4, 80, 8, 8), { first: 0, last: 3 }],
  ['as many as fit', sizes(1_900, 900, 900), { first: 1, last: 2 }],
];

for (const [meaning, segments, choice] of gatherings) {
  test(`gathering: ${meaning}`, () => {
    assert.deepEqual(chooseGathering(segments), choice);
  });
}

test('the same flushes again and again end in few segments, each byte rewritten a few times', () => {
  const flushMegabytes = 8;
  let segments: number[] = [];
  let written = 0;
  for (let flush = 0; flush < 1_000; flush++) {
    segments.push(flushMegabytes);
    for (;;) {
      const choice = chooseCompaction(sizes(...segments));
      if (choice === null) break;
      const merged = segments.slice(choice.first, choice.last + 1).reduce((sum, m) => sum + m, 0);
      written += merged;
      segments = [...segments.slice(0, choice.first), merged, ...segments.slice(choice.last + 1)];
    }
  }
  const amplification = written / (1_000 * flushMegabytes);
  // The logarithm of 1,000 to the base 4 is 5.
  assert.ok(amplification <= 5, `${amplification} bytes rewritten for each byte flushed`);
  assert.ok(segments.length <= 20, `${segments.length} segments`);
});
