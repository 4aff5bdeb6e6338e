import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Column, valueAt } from '../../../../actors/sql/frame/column.ts';
import { allRows } from '../../../../actors/sql/frame/frame.ts';
import { PackedNumbers } from '../../../../actors/sql/frame/packed-numbers.ts';
import { NumberInterner } from '../../../../actors/sql/intern/number-interner.ts';
import { Room } from '../../../../actors/sql/room.ts';
import { Chance } from '../../../simulation/chance.ts';

/** A frame's numbers in one of the forms that columns have; integers of 64 bits among integers alone. */
function columnOf(chance: Chance, rowCount: number, isInt: boolean): Column {
  const Width = chance.pick([Uint8Array, Uint16Array, Uint32Array]);
  const largest = 2 ** (Width.BYTES_PER_ELEMENT * 8) - 1;
  const below = chance.pick([3, 200, largest]);
  switch (chance.integer(0, isInt ? 3 : 2)) {
    case 0:
    case 1: {
      const integers = new Width(rowCount).map(() => chance.integer(0, Math.min(below, largest)));
      return new PackedNumbers({ integers, base: chance.pick([0, 0, 5, -5, 65_280, 65_281]) }, null);
    }
    case 2: {
      const values = Float64Array.from(
        { length: rowCount },
        () => chance.integer(-3, below) / (isInt ? 1 : chance.pick([1, 2])),
      );
      return { kind: 'numbers', values, nulls: new Uint8Array(rowCount).map(() => chance.pick([0, 0, 1])) };
    }
    default: {
      const values = BigInt64Array.from(
        { length: rowCount },
        () => BigInt(chance.integer(-3, 300)) * chance.pick([1n, 2n ** 53n]),
      );
      return { kind: 'wide', values, nulls: null };
    }
  }
}

test('numbers in every form get the numbers that a map gives their values', () => {
  const chance = new Chance(3, 0);
  for (let round = 0; round < 60; round++) {
    const interner = new NumberInterner(new Room(1_000_000));
    const naive = new Map<string, number>();
    const isInt = round % 2 === 0;
    for (let frame = 0; frame < 8; frame++) {
      const rowCount = chance.integer(1, 400);
      const column = columnOf(chance, rowCount, isInt);
      const rows = allRows(rowCount).filter((row) => row % chance.pick([1, 3]) === 0);
      const numbers = new Int32Array(rowCount);
      interner.intern(column, rows, rowCount, numbers);
      for (const [at, row] of rows.entries()) {
        const name = String(valueAt(column, row, 'float'));
        if (!naive.has(name)) naive.set(name, naive.size);
        assert.equal(numbers[at], naive.get(name), `${name} in ${column.kind}`);
      }
    }
    assert.equal(interner.count, naive.size);
    const shown = interner.valuesOf(allRows(naive.size));
    assert.deepEqual(
      [...naive.keys()].map((_, number) => String(valueAt(shown, number, 'float'))),
      [...naive.keys()],
    );
  }
});
