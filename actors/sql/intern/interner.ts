import type { Column, Nulls } from '../frame/column.ts';

/**
 * Gives each distinct value a number: 0, 1, 2 …, in the order in which the values came first. NULL is a value among them. Values
 * are found by open addressing over typed arrays.
 */
export interface Interner {
  /** How many distinct values came so far, NULL among them. */
  readonly count: number;
  /** Bytes of memory in use, about. */
  readonly bytes: number;
  /** The number of NULL; -1 where it did not come. */
  readonly nullNumber: number;
  /** Writes the number of each row's value into `numbers`, which has room for as many as there are `rows`. */
  intern(column: Column, rows: Int32Array, rowCount: number, numbers: Int32Array): void;
  /** Makes a column of the values that have those numbers. */
  valuesOf(numbers: Int32Array): Column;
}

/** Makes the nulls of a column of interned values: 1 for each of the numbers that is NULL's. */
export function nullsAmong(numbers: Int32Array, nullNumber: number): Nulls {
  if (nullNumber < 0) return null;
  const nulls = new Uint8Array(numbers.length);
  for (let i = 0; i < nulls.length; i++) nulls[i] = Number(numbers[i] === nullNumber);
  return nulls;
}

/** How many values an interner has room for at first. */
export const internedFirst = 1_024;
