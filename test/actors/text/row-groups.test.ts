import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type GroupRows,
  groupTextBytes,
  RowGroups,
  RowGroupsBuilder,
} from '../../../actors/text/row-groups.ts';
import { seededRandom } from '../../support/segments.ts';

const seed = Number(process.env.TIDEBASE_TEST_SEED ?? 25);

/** Groups of random sizes, with large texts of some parts among them; and what each group is. */
function randomGroups(random: () => number, count: number) {
  const builder = new RowGroupsBuilder();
  const groups: GroupRows[] = [];
  let row = 0;
  const close = (first: number) => {
    if (row > first) groups.push({ first, end: row, kind: 'rows', linesAreWhole: true, part: 0 });
    builder.close();
  };
  while (groups.length < count) {
    const first = row;
    for (let left = Math.floor(random() * 200 ** random()); left > 0; left--, row++) builder.add(10);
    close(first);
    if (random() < 0.7) continue;
    const linesAreWhole = random() < 0.5;
    const parts = 1 + Math.floor(random() ** 4 * 150);
    for (let part = 0; part < parts; part++) {
      builder.addPart(linesAreWhole);
      groups.push({ first: row, end: row + 1, kind: 'part', linesAreWhole, part });
    }
    builder.add(groupTextBytes);
    groups.push({ first: row, end: row + 1, kind: 'whole', linesAreWhole, part: 0 });
    row++;
    builder.close();
  }
  const expected = { groupCount: groups.length, rowCount: row };
  return { groups, read: new RowGroups(Buffer.from(builder.encoded()), expected, { name: 'x', offset: 0 }) };
}

test('groups are what was put into them, in whatever order they are asked for', (t) => {
  t.diagnostic(`seed ${seed}`);
  const random = seededRandom(seed);
  const { groups, read } = randomGroups(random, 1_000);

  for (const [number, group] of groups.entries()) assert.deepEqual(read.rowsOf(number), group);
  for (let n = 0; n < 300; n++) {
    const number = Math.floor(random() * groups.length);
    assert.deepEqual(read.rowsOf(number), groups[number]);
  }
});

test('the groups of some rows are all that have one of them, parts included', (t) => {
  t.diagnostic(`seed ${seed}`);
  const random = seededRandom(seed);
  for (let round = 0; round < 60; round++) {
    const { groups, read } = randomGroups(random, 1 + Math.floor(random() * 500));
    const share = random() ** 3;
    const rows = Uint32Array.from({ length: read.rowCount }, (_, row) => row).filter(() => random() < share);
    const wanted = new Set(rows);
    const naive = groups.flatMap(({ first, end }, number) => {
      for (let row = first; row < end; row++) if (wanted.has(row)) return [number];
      return [];
    });

    assert.deepEqual([...read.groupsOf(rows)], naive);
  }
});

test('the groups of ranges of rows are all that have one of the rows, each once', (t) => {
  t.diagnostic(`seed ${seed}`);
  const random = seededRandom(seed);
  for (let round = 0; round < 60; round++) {
    const { groups, read } = randomGroups(random, 1 + Math.floor(random() * 500));
    const ranges: number[] = [];
    for (let row = 0; row < read.rowCount; ) {
      const end = Math.min(read.rowCount, row + 1 + Math.floor(random() ** 3 * 200));
      if (random() < 0.5) ranges.push(row, end);
      row = end;
    }
    const naive = groups.flatMap(({ first, end }, number) => {
      for (let at = 0; at < ranges.length; at += 2)
        if (first < (ranges[at + 1] as number) && (ranges[at] as number) < end) return [number];
      return [];
    });

    assert.deepEqual([...read.groupsIn(ranges)], naive);
  }
});
