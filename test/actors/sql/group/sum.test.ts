import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Column, valueAt } from '../../../../actors/sql/frame/column.ts';
import { allRows } from '../../../../actors/sql/frame/frame.ts';
import { PackedNumbers } from '../../../../actors/sql/frame/packed-numbers.ts';
import { Sum } from '../../../../actors/sql/group/aggregates/sum.ts';
import { Room } from '../../../../actors/sql/room.ts';
import { Chance } from '../../../simulation/chance.ts';

const rowCount = 30;

test('sums of integers by group are exact, in whatever forms the integers come', () => {
  const chance = new Chance(13, 0);
  for (let round = 0; round < 600; round++) {
    const bound = { name: 'sum', argument: null, distinct: false, plus: 0n, type: 'int', at: 0 } as const;
    const sum = new Sum(bound, 'int', new Room(10_000));
    const groupCount = chance.pick([1, 2, 9]);
    const naive = new Map<number, bigint>();
    // Sums near 2^52, up to which doubles are exact, are reached in a few frames.
    const bases = chance.pick([
      [0, 1, -1, -200],
      [2 ** 51, 0, -(2 ** 51)],
      [2 ** 45, 5],
    ]);
    let seen = 1;
    for (let frame = 0; frame < 6; frame++) {
      seen = Math.min(groupCount, seen + chance.integer(0, 3));
      const column = columnOf(chance, chance.pick(bases));
      const rows = chance.pick([allRows(rowCount), Int32Array.of(0, 3, 4, 29), Int32Array.of(7)]);
      const groups = Int32Array.from(rows, () => chance.integer(0, seen - 1));
      for (const [at, row] of rows.entries()) {
        const value = valueAt(column, row, 'int');
        const group = groups[at] as number;
        if (value !== null) naive.set(group, (naive.get(group) ?? 0n) + BigInt(value));
      }
      sum.add({ column, rows, rowCount, groups, groupCount: seen });
    }
    const sums = sum.values(0, seen);
    for (let group = 0; group < seen; group++)
      assert.equal(valueAt(sums, group, 'int'), naive.get(group) ?? null, `round ${round}, group ${group}`);
  }
});

test('a fraction in a sum of floats is not lost beside whole numbers that are stored from a far base on', () => {
  const bound = { name: 'sum', argument: null, distinct: false, plus: 0n, type: 'float', at: 0 } as const;
  const sum = new Sum(bound, 'float', new Room(10));
  const groups = new Int32Array(3);
  const fraction: Column = { kind: 'numbers', values: Float64Array.of(0.1), nulls: null };
  sum.add({ column: fraction, rows: allRows(1), rowCount: 1, groups, groupCount: 1 });
  const integers = Uint32Array.of(0, 2 ** 32 - 1, 2 ** 31 + 1);
  const far = new PackedNumbers({ integers, base: -(2 ** 31) }, null);
  sum.add({ column: far, rows: allRows(3), rowCount: 3, groups, groupCount: 1 });

  // -2147483648 + 2147483647 + 1 is 0.
  assert.equal(valueAt(sum.values(0, 1), 0, 'float'), 0.1);
});

/** Integers as they are stored, as doubles with NULLs among them, or of 64 bits. */
function columnOf(chance: Chance, base: number): Column {
  const Width = chance.pick([Uint8Array, Uint16Array, Uint32Array]);
  const largest = 2 ** (Width.BYTES_PER_ELEMENT * 8) - 1;
  const integers = new Width(rowCount).map(() => chance.pick([0, 1, largest, chance.integer(0, largest)]));
  const values = Float64Array.from(integers, (integer) => integer + base);
  switch (chance.pick(['packed', 'packed', 'doubles', 'wide'])) {
    case 'packed':
      return new PackedNumbers({ integers, base }, null);
    case 'doubles': {
      const nulls = Uint8Array.from(integers, () => chance.integer(0, 1));
      return { kind: 'numbers', values, nulls: chance.pick([null, nulls]) };
    }
    default:
      return { kind: 'wide', values: BigInt64Array.from(values, BigInt), nulls: null };
  }
}
