import { frameNumbers, type WideRange } from '../../kernels/frame-numbers.ts';
import type { Comparison } from '../parse/syntax.ts';

const least = -(2n ** 63n);
const greatest = 2n ** 63n - 1n;

/** Answers the integers of 64 bits that compare so with `value`, which may be a longer one; of none, the range's end is before its start. */
export function wideRange(operator: Comparison, value: bigint): WideRange {
  const inside = (from: bigint, to: bigint): WideRange => ({
    least: from < least ? least : from,
    greatest: to > greatest ? greatest : to,
    isOutside: false,
  });
  switch (operator) {
    case '=':
      return inside(value, value);
    case '<>':
      return { ...inside(value, value), isOutside: true };
    case '<':
      return inside(least, value - 1n);
    case '<=':
      return inside(least, value);
    case '>':
      return inside(value + 1n, greatest);
    case '>=':
      return inside(value, greatest);
  }
}

/** Rows of a frame for each that is looked at, above which all numbers are not worth being copied. */
const sparseness = 4;

/** Picks, from ascending `rows`, those whose integer of 64 bits the range means, into `passing`, which may be the memory of `rows`. */
export function rowsInWideRange(
  values: BigInt64Array,
  range: WideRange,
  { rows, passing }: { readonly rows: Int32Array; readonly passing: Int32Array },
): Int32Array {
  if (range.least > range.greatest) return range.isOutside ? rows : rows.subarray(0, 0);
  const kernels = frameNumbers();
  const isDense = rows.length * sparseness >= values.length && values.length <= kernels.rowsMax;
  const count = isDense
    ? kernels.pickWide(values, range, rows, passing)
    : wideOneByOne(values, range, rows, passing);
  return passing.subarray(0, count);
}

/** Picks rows by halves of 32 bits, of which the lower ones have no sign: a big integer that stands alone is an object. */
export function wideOneByOne(
  values: BigInt64Array,
  { least, greatest, isOutside }: WideRange,
  rows: Int32Array,
  passing: Int32Array,
): number {
  const halves = new Int32Array(values.buffer, values.byteOffset, values.length * 2);
  const [leastLow, leastHigh] = [Number(BigInt.asUintN(32, least)), Number(least >> 32n)];
  const [greatestLow, greatestHigh] = [Number(BigInt.asUintN(32, greatest)), Number(greatest >> 32n)];
  let count = 0;
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i] as number;
    const low = (halves[row * 2] as number) >>> 0;
    const high = halves[row * 2 + 1] as number;
    const isFrom = high > leastHigh || (high === leastHigh && low >= leastLow);
    const isTo = high < greatestHigh || (high === greatestHigh && low <= greatestLow);
    passing[count] = row;
    count += Number((isFrom && isTo) !== isOutside);
  }
  return count;
}
