import { frameNumbers, type WholeNumbers } from '../../kernels/frame-numbers.ts';
import type { Comparison } from '../parse/syntax.ts';
import type { PackedIntegers } from './column.ts';

/** A range of whole numbers, by which rows are picked from packed integers. */
export interface WholeRange {
  /** The first of the range; `greatest` is the last. */
  readonly least: number;
  readonly greatest: number;
  /** Whether the numbers outside of the range are meant. */
  readonly isOutside: boolean;
}

/** Answers the whole numbers that compare so with `value`; null where that is no finite number. */
export function wholeRange(operator: Comparison, value: number): WholeRange | null {
  if (!Number.isFinite(value)) return null;
  const [below, above] = [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY];
  const inside = (least: number, greatest: number) => ({ least, greatest, isOutside: false });
  switch (operator) {
    case '=':
      return inside(Math.ceil(value), Math.floor(value));
    case '<>':
      return { least: Math.ceil(value), greatest: Math.floor(value), isOutside: true };
    case '<':
      return inside(below, Math.ceil(value) - 1);
    case '<=':
      return inside(below, Math.floor(value));
    case '>':
      return inside(Math.floor(value) + 1, above);
    case '>=':
      return inside(Math.ceil(value), above);
  }
}

/** Rows of a frame for each that is looked at, above which all numbers are not worth being copied. */
const sparseness = 4;

/** Picks, from ascending `rows`, those whose number the range means, into `passing`, which may be the memory of `rows`. */
export function rowsInRange(
  { integers, base }: PackedIntegers,
  { least, greatest, isOutside }: WholeRange,
  rows: Int32Array,
  passing: Int32Array,
): Int32Array {
  const largest = 2 ** (integers.BYTES_PER_ELEMENT * 8) - 1;
  const from = Math.max(0, least - base);
  const to = Math.min(largest, greatest - base);
  if (from > to) return isOutside ? rows : rows.subarray(0, 0);
  return rowsBetween(integers, { from, to, isOutside }, { rows, passing });
}

/** Picks, from ascending `rows`, those whose number is one of `from` to `to`, or is not, as `rowsInRange` does. */
export function rowsBetween(
  numbers: WholeNumbers,
  { from, to, isOutside }: { readonly from: number; readonly to: number; readonly isOutside: boolean },
  { rows, passing }: { readonly rows: Int32Array; readonly passing: Int32Array },
): Int32Array {
  const picker = frameNumbers();
  const isDense = rows.length * sparseness >= numbers.length && numbers.length <= picker.rowsMax;
  const count = isDense
    ? picker.pick(numbers, { from, span: to - from, isOutside }, rows, passing)
    : pickedOneByOne(
        numbers,
        { from: from | 0, span: (to - from) >>> 0, outside: Number(isOutside) },
        rows,
        passing,
      );
  return passing.subarray(0, count);
}

/**
 * Picks, from ascending `rows`, those whose number is one of `wanted`, or is not, into `passing`, which may be the memory of `rows`. Null where
 * the numbers are too wide to have an entry each, and where fewer rows than wanted numbers would be looked at.
 */
export function rowsAmong(
  { integers, base }: PackedIntegers,
  { wanted, isOutside }: { readonly wanted: ReadonlySet<number>; readonly isOutside: boolean },
  rows: Int32Array,
  passing: Int32Array,
): Int32Array | null {
  if (!(integers instanceof Uint8Array) || rows.length < wanted.size) return null;
  const isPicked = new Uint8Array(256).fill(Number(isOutside));
  for (const value of wanted) {
    const integer = value - base;
    // The difference may have been rounded to a whole number.
    if (integer >= 0 && integer < 256 && Number.isInteger(integer) && integer + base === value)
      isPicked[integer] = Number(!isOutside);
  }
  let count = 0;
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i] as number;
    passing[count] = row;
    count += isPicked[integers[row] as number] as number;
  }
  return passing.subarray(0, count);
}

/**
 * Picks rows by one look at each: where few of a frame are left, and as the twin of tests. There is a loop for each width: one loop for all of
 * them is several times as slow.
 */
export const pickedOneByOne: Loop<WholeNumbers> = (numbers, range, rows, passing) => {
  if (numbers instanceof Uint8Array) return ofBytes(numbers, range, rows, passing);
  if (numbers instanceof Uint16Array) return ofShorts(numbers, range, rows, passing);
  return ofWords(numbers, range, rows, passing);
};

/** A range as the loops take it: without a sign, a number less than `from` lies past any span. */
interface Range {
  readonly from: number;
  readonly span: number;
  readonly outside: number;
}

/** Answers how many rows pass. */
type Loop<Integers> = (integers: Integers, range: Range, rows: Int32Array, passing: Int32Array) => number;

const ofBytes: Loop<Uint8Array> = (integers, { from, span, outside }, rows, passing) => {
  let count = 0;
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i] as number;
    passing[count] = row;
    count += Number(((integers[row] as number) - from) >>> 0 <= span) ^ outside;
  }
  return count;
};

const ofShorts: Loop<Uint16Array> = (integers, { from, span, outside }, rows, passing) => {
  let count = 0;
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i] as number;
    passing[count] = row;
    count += Number(((integers[row] as number) - from) >>> 0 <= span) ^ outside;
  }
  return count;
};

const ofWords: Loop<Uint32Array> = (integers, { from, span, outside }, rows, passing) => {
  let count = 0;
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i] as number;
    passing[count] = row;
    count += Number(((integers[row] as number) - from) >>> 0 <= span) ^ outside;
  }
  return count;
};
