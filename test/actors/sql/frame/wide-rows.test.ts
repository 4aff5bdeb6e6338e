import assert from 'node:assert/strict';
import { test } from 'node:test';
import { allRows } from '../../../../actors/sql/frame/frame.ts';
import { rowsInWideRange, wideOneByOne, wideRange } from '../../../../actors/sql/frame/wide-rows.ts';
import type { Comparison } from '../../../../actors/sql/parse/syntax.ts';
import { Chance } from '../../../simulation/chance.ts';

const holds: Readonly<Record<Comparison, (a: bigint, b: bigint) => boolean>> = {
  '=': (a, b) => a === b,
  '<>': (a, b) => a !== b,
  '<': (a, b) => a < b,
  '<=': (a, b) => a <= b,
  '>': (a, b) => a > b,
  '>=': (a, b) => a >= b,
};

test('rows are told from integers of 64 bits as big integers are compared', () => {
  const chance = new Chance(13, 0);
  const ends = [
    0n,
    -(2n ** 63n),
    2n ** 63n - 1n,
    2n ** 32n,
    -(2n ** 32n),
    2n ** 31n,
    435_090_932_899_640_449n,
  ];
  const near = () => chance.pick(ends) + BigInt(chance.integer(-2, 2));
  for (let round = 0; round < 3_000; round++) {
    const length = chance.pick([40, 43, 1, 200]);
    const all = BigInt64Array.from({ length: length + 3 }, () => BigInt.asIntN(64, near()));
    // Behind a frame of a chunk stand other numbers.
    const values = all.subarray(1, 1 + length);
    // It may be longer than 64 bits.
    const value = near() * chance.pick([1n, 1n, 1n, 3n]);
    const operator = chance.pick(Object.keys(holds) as Comparison[]);
    const share = chance.pick([1, 2, 20]);
    const rows = allRows(length).filter((row) => row % share === 0);
    const range = wideRange(operator, value);
    const expected = rows.filter((row) => holds[operator](values[row] as bigint, value));
    const passing = rows.slice();
    const found = rowsInWideRange(values, range, { rows: passing, passing });
    assert.deepEqual([...found], [...expected], `${operator} ${value}: ${values.join()}`);
    if (range.least > range.greatest) continue;
    const twin = new Int32Array(length);
    assert.deepEqual([...twin.subarray(0, wideOneByOne(values, range, rows, twin))], [...expected]);
  }
});
