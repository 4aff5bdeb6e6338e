import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptBuffers } from '../../../../actors/search/sql/kept-buffers.ts';
import type { Column } from '../../../../actors/sql/frame/column.ts';
import { allRows } from '../../../../actors/sql/frame/frame.ts';
import { DistinctCount } from '../../../../actors/sql/group/aggregates/distinct-count.ts';
import { Room, RoomExceeded } from '../../../../actors/sql/room.ts';
import { MemoryBudget } from '../../../../actors/thread/memory-budget.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { seededRandom } from '../../../support/segments.ts';

const seed = Number(process.env.TIDEBASE_TEST_SEED ?? Math.floor(Math.random() * 1e9));
const megabyte = 2 ** 20;
const rowCount = 9_000;

/** Adds frames of random values, one in thirty of them NULL, to random groups. Answers what a set of values a group has. */
function fill(
  counts: readonly DistinctCount[],
  random: () => number,
  { frames, groups, values }: { readonly frames: number; readonly groups: number; readonly values: number },
): Set<number>[] {
  const naive = Array.from({ length: groups }, () => new Set<number>());
  for (let frame = 0; frame < frames; frame++) {
    // Groups come one after the other, as those of a query do.
    const groupCount = Math.min(groups, 1 + Math.floor(((frame + 1) / frames) * groups));
    const column: Column = {
      kind: 'numbers',
      values: Float64Array.from({ length: rowCount }, () => Math.floor(random() * values) - 5),
      nulls: Uint8Array.from({ length: rowCount }, () => Number(random() < 1 / 30)),
    };
    const rows = random() < 0.5 ? allRows(rowCount) : allRows(rowCount).filter((row) => row % 3 === 0);
    const groupsOf = Int32Array.from(rows, () => Math.floor(random() * groupCount));
    for (const [at, row] of rows.entries())
      if (column.nulls?.[row] === 0) naive[groupsOf[at] as number]?.add(column.values[row] as number);
    const grouped = { column, rows, rowCount, groups: groupsOf, groupCount };
    for (const count of counts) count.add(grouped);
  }
  return naive;
}

function ended(count: DistinctCount, groups: number): number[] {
  let steps = 0;
  for (const _ of count.finish()) steps++;
  const { values } = count.values(0, groups) as { readonly values: Float64Array };
  assert.ok(steps <= 3 * 32, `${steps} steps`);
  return [...values];
}

test('distinct values by group are counted alike in a table, sorted at the end, and by sets', (t) => {
  t.diagnostic(`TIDEBASE_TEST_SEED=${seed}`);
  const random = seededRandom(seed);
  const buffers = new KeptBuffers(new MemoryBudget(512 * megabyte), new FakeClock());
  let kept = 0;
  for (let round = 0; round < 12; round++) {
    const options = {
      frames: 12,
      groups: Math.ceil(2 ** (random() * 14)),
      // With few values, nearly all pairs come again.
      values: round % 3 === 0 ? 3 : Math.ceil(2 ** (10 + random() * 10)),
    };
    const room = new Room(200_000, buffers);
    const sorting = new DistinctCount('int', { room, hasKeys: true }, false);
    const inTable = new DistinctCount('int', { room, hasKeys: true }, true);
    const plain = new DistinctCount('int', { room: new Room(200_000), hasKeys: true }, false);

    const naive = fill([sorting, inTable, plain], random, options);

    const expected = naive.map(({ size }) => size);
    kept += Number(sorting.pairs.count < inTable.pairs.count);
    for (const count of [sorting, inTable, plain])
      assert.deepEqual(ended(count, options.groups), expected, `round ${round}`);
    room.release();
  }
  assert.ok(0 < kept && kept < 12, `${kept} of 12 kept their pairs`);
});

test('a query of more rows than are sorted at the end has a table, and one without keys counts its values', () => {
  const buffers = new KeptBuffers(new MemoryBudget(512 * megabyte), new FakeClock());
  for (const [countMax, hasKeys, pairs] of [
    [4_194_305, true, true],
    [4_194_304, true, false],
    [4_194_304, false, false],
  ] as const) {
    const room = new Room(countMax, buffers);
    const count = new DistinctCount('int', { room, hasKeys }, false);
    const naive = fill([count], seededRandom(3), { frames: 30, groups: hasKeys ? 50 : 1, values: 100_000 });
    const all = naive.reduce((sum, { size }) => sum + size, 0);
    assert.equal(count.pairs.count === all, pairs);
    assert.equal(
      ended(count, naive.length).reduce((sum, one) => sum + one, 0),
      all,
    );
    room.release();
  }
});

test('pairs that are kept are held to what a query may hold', () => {
  const buffers = new KeptBuffers(new MemoryBudget(512 * megabyte), new FakeClock());
  let held = 0;
  const grow = (bytes: number) => {
    held += bytes;
    return held <= 4 * megabyte;
  };
  const room = new Room(1_000_000, buffers, { grow });
  const count = new DistinctCount('int', { room, hasKeys: true }, false);
  assert.throws(
    () => fill([count], seededRandom(5), { frames: 60, groups: 5_000, values: 200_000 }),
    RoomExceeded,
  );
  room.release();
});
