import { assert } from '../../../src/base/assert.ts';
import { formatDate, formatTime } from '../dates.ts';
import type { SqlType } from '../plan/bound.ts';
import type { SqlValue } from '../plan/value-list.ts';
import { SqlError } from '../sql-error.ts';

/**
 * The values that a key of meta, or an expression, has in the rows of a frame or chunk. Read-only; a row whose `nulls` is 1 is NULL,
 * whatever its value.
 *
 * - `numbers`: doubles, for every type but text; for int where all of the chunk's integers are exact as doubles.
 * - `wide`: integers of 64 bits, for int otherwise.
 * - `texts`: UTF-8, as codes into a dictionary, in which the same string may stand twice.
 * - `truths`: what conditions are: `falsy`, `truthy` or `unknown`.
 * - `constant`: the same value in every row.
 */
export type Column =
  | { readonly kind: 'constant'; readonly value: SqlValue }
  | {
      readonly kind: 'numbers';
      readonly values: Float64Array;
      readonly nulls: Nulls;
      readonly coded?: Coded | undefined;
      /** The column's numbers as they are stored; where they are given, `values` are made when somebody asks for them. */
      readonly packed?: PackedIntegers | undefined;
    }
  | {
      readonly kind: 'wide';
      readonly values: BigInt64Array;
      readonly nulls: Nulls;
      readonly coded?: Coded | undefined;
    }
  | { readonly kind: 'texts'; readonly codes: Codes; readonly dictionary: Dictionary; readonly nulls: Nulls }
  | { readonly kind: 'truths'; readonly values: Uint8Array };

/** A column's values as codes of distinct values: what is known of one row's value holds for all rows with its code. */
export interface Coded {
  readonly codes: Codes;
  /** The distinct values that the codes belong to: the same object for all columns whose codes mean the same. */
  readonly of: object;
}

/** Whole numbers, one for every row, each less `base`. */
export interface PackedIntegers {
  readonly integers: Uint8Array | Uint16Array | Uint32Array;
  readonly base: number;
}

/** 1 for each row that is NULL, 0 for each other; null where no row is NULL. */
export type Nulls = Uint8Array | null;
export type Codes = Uint8Array | Uint16Array | Int32Array;
export type Texts = Extract<Column, { kind: 'texts' }>;

export const falsy = 0;
export const truthy = 1;
export const unknown = 2;

/** Strings by code, one after the other: each ends where the next one begins. A dictionary may grow; codes stay what they are. */
export interface Dictionary {
  readonly count: number;
  readonly bytes: Buffer;
  readonly ends: Uint32Array;
  /** Whether no string stands in it twice. */
  readonly isDistinct?: boolean;
  /** Answers the code of a string, or -1. A dictionary without this function can only be searched string by string. */
  readonly codeOf?: (text: Buffer) => number;
}

export function isDistinct(dictionary: Dictionary): boolean {
  return dictionary.isDistinct === true;
}

export function startOf({ ends }: Dictionary, code: number): number {
  return code === 0 ? 0 : (ends[code - 1] as number);
}

/** The bytes of a string, which lie in the dictionary. */
export function bytesOf(dictionary: Dictionary, code: number): Buffer {
  return dictionary.bytes.subarray(startOf(dictionary, code), dictionary.ends[code]);
}

export function textOf(dictionary: Dictionary, code: number): string {
  return dictionary.bytes.toString('utf8', startOf(dictionary, code), dictionary.ends[code]);
}

export function dictionaryOf(strings: readonly (string | Uint8Array)[]): Dictionary {
  const parts = strings.map((string) => (typeof string === 'string' ? Buffer.from(string) : string));
  const ends = new Uint32Array(parts.length);
  let end = 0;
  for (const [code, part] of parts.entries()) {
    end += part.length;
    ends[code] = end;
  }
  return { count: parts.length, bytes: Buffer.concat(parts), ends };
}

/** Answers the column, and asserts that it is as long as its frame: called once for each column of a frame, and unpacks none. */
export function ofFrame(column: Column, rowCount: number): Column {
  const length = lengthOf(column);
  assert(
    length === null || length === rowCount,
    () => `a column of ${length} rows in a frame of ${rowCount}`,
  );
  return column;
}

/** A constant has as many rows as are asked for: its length is null. */
function lengthOf(column: Column): number | null {
  switch (column.kind) {
    case 'constant':
      return null;
    case 'truths':
      return column.values.length;
    case 'texts':
      return column.codes.length;
    case 'numbers':
      return (column.packed?.integers ?? column.coded?.codes ?? column.values).length;
    case 'wide':
      return (column.coded?.codes ?? column.values).length;
  }
}

export function isNullAt(column: Column, row: number): boolean {
  switch (column.kind) {
    case 'constant':
      return column.value === null;
    case 'truths':
      return column.values[row] === unknown;
    default:
      return column.nulls !== null && column.nulls[row] === 1;
  }
}

/** Answers the value of a row, in the form that a plan's literals have. */
export function valueAt(column: Column, row: number, type: SqlType): SqlValue {
  if (isNullAt(column, row)) return null;
  switch (column.kind) {
    case 'constant':
      return column.value;
    case 'numbers': {
      const value = column.values[row] as number;
      return type === 'int' ? BigInt(value) : value;
    }
    case 'wide':
      return column.values[row] as bigint;
    case 'texts':
      return textOf(column.dictionary, column.codes[row] as number);
    case 'truths':
      return BigInt(column.values[row] as number);
  }
}

/** Writes the value of a row as JSON. Throws `SqlError` for what JSON can not hold. */
export function jsonAt(column: Column, row: number, type: SqlType): string {
  if (type === 'int' && column.kind === 'numbers' && !isNullAt(column, row)) {
    const value = column.values[row] as number;
    // The same digits as a big integer's, without making one.
    if (Number.isSafeInteger(value)) return String(value);
  }
  return jsonOf(valueAt(column, row, type), type);
}

/** Writes a value as JSON: integers whole however long they are, dates and times as text. Throws `SqlError` for what JSON can not hold. */
function jsonOf(value: SqlValue, type: SqlType): string {
  if (value === null) return 'null';
  if (typeof value === 'bigint') return String(value);
  if (type === 'date') return `"${shown(formatDate(value as number))}"`;
  if (type === 'time') return `"${shown(formatTime(value as number))}"`;
  if (typeof value === 'string') return JSON.stringify(value);
  if (!Number.isFinite(value))
    throw new SqlError(
      null,
      'a number of the answer is larger than a float can be: narrow the query with WHERE',
    );
  return String(value === 0 ? 0 : value);
}

function shown(written: string | null): string {
  if (written !== null) return written;
  throw new SqlError(
    null,
    'a time of the answer is outside of the years 0 to 9999: narrow the query with WHERE',
  );
}

/** Compares two strings by their bytes; answers a number below 0, 0, or above. Hot: ORDER BY, MIN and MAX of texts spend their time here. */
export function compareBytes(a: Dictionary, codeA: number, b: Dictionary, codeB: number): number {
  let at = startOf(a, codeA);
  let other = startOf(b, codeB);
  const endA = a.ends[codeA] as number;
  const endB = b.ends[codeB] as number;
  const length = Math.min(endA - at, endB - other);
  for (const end = at + length; at < end; at++, other++) {
    const difference = (a.bytes[at] as number) - (b.bytes[other] as number);
    if (difference !== 0) return difference;
  }
  return endA - at - (endB - other);
}
