import assert from 'node:assert/strict';
import { test } from 'node:test';
import { frameNumbers } from '../../../../actors/kernels/frame-numbers.ts';
import { allRows } from '../../../../actors/sql/frame/frame.ts';
import {
  pickedOneByOne,
  rowsAmong,
  rowsInRange,
  wholeRange,
} from '../../../../actors/sql/frame/packed-rows.ts';
import type { Comparison } from '../../../../actors/sql/parse/syntax.ts';
import { Chance } from '../../../simulation/chance.ts';

const holds: Readonly<Record<Comparison, (a: number, b: number) => boolean>> = {
  '=': (a, b) => a === b,
  '<>': (a, b) => a !== b,
  '<': (a, b) => a < b,
  '<=': (a, b) => a <= b,
  '>': (a, b) => a > b,
  '>=': (a, b) => a >= b,
};

test('rows are told from packed numbers as they are from the numbers', () => {
  const chance = new Chance(7, 0);
  for (let round = 0; round < 3_000; round++) {
    const Width = chance.pick([Uint8Array, Uint16Array, Uint32Array]);
    const largest = 2 ** (Width.BYTES_PER_ELEMENT * 8) - 1;
    const base = chance.pick([0, -1, 1, -largest, 1_700_000_000, -(2 ** 52), 2 ** 52]);
    const near = () => chance.pick([0, 1, 2, largest - 1, largest, chance.integer(0, largest)]);
    const integers = new Width(40).map(near);
    const value = base + near() + chance.pick([0, 0, 0, -1, 1, 0.5, -0.5, largest, -largest, 1e300, -1e300]);
    const operator = chance.pick(Object.keys(holds) as Comparison[]);
    const rows = chance.pick([allRows(40), Int32Array.of(1, 5, 6, 39), Int32Array.of()]);
    const range = wholeRange(operator, value);
    assert.ok(range !== null);
    const found = rowsInRange({ integers, base }, range, rows, new Int32Array(40));
    const expected = rows.filter((row) => holds[operator]((integers[row] as number) + base, value));
    assert.deepEqual([...found], [...expected], `${operator} ${value}, from ${base}: ${integers.join()}`);
  }
});

test('rows are told from a list of numbers as each number is looked up in it', () => {
  const chance = new Chance(9, 0);
  for (let round = 0; round < 2_000; round++) {
    const Width = chance.pick([Uint8Array, Uint8Array, Uint16Array]);
    const base = chance.pick([0, -1, 1, -5, -200, -255, 1_700_000_000, -(2 ** 52)]);
    const integers = new Width(40).map(() => chance.integer(0, 255));
    const near = () =>
      chance.pick([1e-17, 3 + 4e-16, base + chance.pick([chance.integer(0, 255), -1, 256, 0.5, 1e300, 0])]);
    const wanted = new Set(Array.from({ length: chance.integer(0, 9) }, near));
    const isOutside = chance.integer(0, 1) === 1;
    const rows = chance.pick([allRows(40), Int32Array.of(1, 5, 6, 39), Int32Array.of()]);
    const found = rowsAmong({ integers, base }, { wanted, isOutside }, rows, new Int32Array(40));
    const expected = rows.filter((row) => wanted.has((integers[row] as number) + base) !== isOutside);
    assert.deepEqual(
      found,
      integers instanceof Uint8Array && rows.length >= wanted.size ? expected : null,
      `${[...wanted]} from ${base}`,
    );
  }
});

test('vector instructions pick the rows that one look at each picks, of frames of every length', () => {
  const chance = new Chance(11, 0);
  const picker = frameNumbers();
  for (let round = 0; round < 600; round++) {
    const Width = chance.pick([Uint8Array, Uint16Array, Uint32Array]);
    const largest = 2 ** (Width.BYTES_PER_ELEMENT * 8) - 1;
    const length = chance.pick([chance.integer(0, 70), chance.integer(0, picker.rowsMax), picker.rowsMax]);
    const near = chance.pick([0, largest - 9, largest >>> 1, Math.floor(largest / 3)]);
    // Behind a frame of a chunk stand other numbers.
    const all = new Width(length + 20).map(() => near + chance.integer(0, 9));
    const numbers = all.subarray(3, 3 + length);
    const from = near + chance.integer(0, 9);
    const span = chance.pick([0, chance.integer(0, largest - from), largest - from]);
    const isOutside = chance.integer(0, 1) === 1;
    const share = chance.pick([1, 2, 5]);
    const rows = allRows(length).filter((row) => share === 1 || row % share === 0);
    const expected = new Int32Array(rows.length);
    const count = pickedOneByOne(
      numbers,
      { from: from | 0, span: span >>> 0, outside: Number(isOutside) },
      rows,
      expected,
    );
    // Into the memory of the rows themselves, as terms of WHERE do one after the other.
    const picked = rows.slice();
    const found = picker.pick(numbers, { from, span, isOutside }, picked, picked);
    assert.deepEqual(picked.subarray(0, found), expected.subarray(0, count));
  }
});
