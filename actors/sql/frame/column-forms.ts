import {
  type Coded,
  type Codes,
  type Column,
  type Dictionary,
  dictionaryOf,
  type Nulls,
  ofFrame,
  type PackedIntegers,
  type Texts,
  unknown,
} from './column.ts';
import type { Frame } from './frame.ts';
import { type Arrays, newArrays } from './frame-memory.ts';
import { PackedNumbers, takenBytes, takenIntegers } from './packed-numbers.ts';

/** A column of numbers in a form that loops take. */
export type Values = Extract<Column, { kind: 'numbers' | 'wide' }>;

/** Makes a column of numbers, constants and truths among them, one with a value for each row. */
export function asValues(column: Column, rowCount: number): Values {
  switch (column.kind) {
    case 'numbers':
    case 'wide':
      return column;
    case 'texts':
      throw new TypeError('a column of texts has no numbers');
    case 'truths': {
      const nulls = column.values.map((truth) => (truth === unknown ? 1 : 0));
      return {
        kind: 'numbers',
        values: Float64Array.from(column.values),
        nulls: nulls.includes(1) ? nulls : null,
      };
    }
    case 'constant': {
      const { value } = column;
      if (value === null)
        return {
          kind: 'numbers',
          values: new Float64Array(rowCount),
          nulls: new Uint8Array(rowCount).fill(1),
        };
      const isExact = typeof value !== 'bigint' || BigInt(Number(value)) === value;
      if (isExact && Math.abs(Number(value)) <= Number.MAX_SAFE_INTEGER)
        return { kind: 'numbers', values: new Float64Array(rowCount).fill(Number(value)), nulls: null };
      if (typeof value !== 'bigint')
        return { kind: 'numbers', values: new Float64Array(rowCount).fill(Number(value)), nulls: null };
      return { kind: 'wide', values: new BigInt64Array(rowCount).fill(value), nulls: null };
    }
  }
}

/** Kept by constant, a plain literal of an expression: its dictionary is the same object each time, because judgements are kept by dictionary. */
const ofConstants = new WeakMap<Column, Dictionary>();

/** Makes a column of texts, constants among them, one with a code for each row. */
export function asTexts(column: Column, rowCount: number): Texts {
  if (column.kind === 'texts') return column;
  if (column.kind !== 'constant') throw new TypeError('a column of numbers has no texts');
  const { value } = column;
  const codes = new Uint8Array(rowCount);
  let dictionary = ofConstants.get(column);
  if (dictionary === undefined) {
    dictionary = dictionaryOf([value === null ? '' : String(value)]);
    ofConstants.set(column, dictionary);
  }
  return {
    kind: 'texts',
    codes,
    dictionary,
    nulls: value === null ? new Uint8Array(rowCount).fill(1) : null,
  };
}

/** Makes numbers integers of 64 bits, which they must be; NULL becomes 0. */
export function asWide({ kind, values, nulls }: Values): BigInt64Array {
  if (kind === 'wide') return values as BigInt64Array;
  return BigInt64Array.from(values as Float64Array, (value, row) =>
    nulls?.[row] === 1 ? 0n : BigInt(value),
  );
}

/** Picks rows of a column, in any order, and some of them twice if need be. Hot: plain loops over arrays of one kind. */
export function taken(column: Column, rows: Int32Array, arrays = newArrays): Column {
  switch (column.kind) {
    case 'constant':
      return column;
    case 'truths':
      return { kind: 'truths', values: takenBytes(column.values, rows, arrays) };
    case 'numbers': {
      const taken = () => takenNumbers(column.values, rows, arrays);
      if (column.coded !== undefined) return new TakenCoded(column, column.coded, { rows, arrays, taken });
      if (column.packed !== undefined)
        return new PackedNumbers(takenIntegers(column.packed, rows, arrays), null);
      return {
        kind: 'numbers',
        values: taken(),
        nulls: takenNulls(column.nulls, rows, arrays),
      };
    }
    case 'wide': {
      const taken = () => takenBigs(column.values, rows, arrays);
      if (column.coded !== undefined) return new TakenCoded(column, column.coded, { rows, arrays, taken });
      return { kind: 'wide', values: taken(), nulls: takenNulls(column.nulls, rows, arrays) };
    }
    case 'texts':
      return {
        ...column,
        codes: takenCodes(column.codes, rows, arrays),
        nulls: takenNulls(column.nulls, rows, arrays),
      };
  }
}

/** Numbers of picked rows that have codes: most that ask for these don't ask for the values, which are picked when asked for. */
class TakenCoded<K extends 'numbers' | 'wide', V extends Float64Array | BigInt64Array> {
  readonly kind: K;
  readonly nulls: Nulls;
  readonly coded: Coded;
  readonly #taken: () => V;
  #values: V | null = null;

  constructor(
    { kind, nulls }: { readonly kind: K; readonly nulls: Nulls },
    { of, codes }: Coded,
    { rows, arrays, taken }: { readonly rows: Int32Array; readonly arrays: Arrays; readonly taken: () => V },
  ) {
    this.kind = kind;
    this.nulls = takenNulls(nulls, rows, arrays);
    this.coded = { of, codes: takenCodes(codes, rows, arrays) };
    this.#taken = taken;
  }

  get values(): V {
    this.#values ??= this.#taken();
    return this.#values;
  }
}

function takenNumbers(values: Float64Array, rows: Int32Array, arrays: Arrays): Float64Array {
  const some = arrays.doubles(rows.length);
  for (let i = 0; i < some.length; i++) some[i] = values[rows[i] as number] as number;
  return some;
}

/** Picks integers of 64 bits by their halves: a big integer that stands alone is an object. */
function takenBigs(values: BigInt64Array, rows: Int32Array, arrays: Arrays): BigInt64Array {
  const some = arrays.bigs(rows.length);
  const [to, from] = [some, values].map(
    (bigs) => new Int32Array(bigs.buffer, bigs.byteOffset, bigs.length * 2),
  );
  copyHalves(to as Int32Array, from as Int32Array, rows);
  return some;
}

function copyHalves(to: Int32Array, from: Int32Array, rows: Int32Array): void {
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i] as number;
    to[i * 2] = from[row * 2] as number;
    to[i * 2 + 1] = from[row * 2 + 1] as number;
  }
}

export function takenCodes(codes: Codes, rows: Int32Array, arrays = newArrays): Int32Array {
  const some = arrays.codes(rows.length);
  for (let i = 0; i < some.length; i++) some[i] = codes[rows[i] as number] as number;
  return some;
}

function takenNulls(nulls: Nulls, rows: Int32Array, arrays: Arrays): Nulls {
  return nulls === null ? null : takenBytes(nulls, rows, arrays);
}

/** Makes some rows of a frame a frame of their own. `arrays`: what its columns are made of, which last as long as these do. */
export function takenFrame(frame: Frame, rows: Int32Array, arrays = newArrays): Frame {
  const columns: Column[] = [];
  return {
    rowCount: rows.length,
    rows: null,
    column: (index) => {
      const column = columns[index] ?? ofFrame(taken(frame.column(index), rows, arrays), rows.length);
      columns[index] = column;
      return column;
    },
    slot: frame.slot,
    textMatch: (index) => takenBytes(frame.textMatch(index), rows, arrays),
  };
}

/** Cuts a column to the rows from `from` to before `end`, which share its memory. */
export function sliced(column: Column, from: number, end: number): Column {
  if (column.kind === 'constant') return column;
  if (column.kind === 'truths') return { kind: 'truths', values: column.values.subarray(from, end) };
  const nulls = column.nulls?.subarray(from, end) ?? null;
  const { kind } = column;
  switch (kind) {
    case 'numbers':
      return {
        kind,
        values: column.values.subarray(from, end),
        nulls,
        coded: slicedCodes(column.coded, from, end),
        packed: slicedIntegers(column.packed, from, end),
      };
    case 'wide':
      return {
        kind,
        values: column.values.subarray(from, end),
        nulls,
        coded: slicedCodes(column.coded, from, end),
      };
    case 'texts':
      return { ...column, codes: column.codes.subarray(from, end), nulls };
  }
}

function slicedCodes(coded: Coded | undefined, from: number, end: number): Coded | undefined {
  return coded === undefined ? undefined : { of: coded.of, codes: coded.codes.subarray(from, end) };
}

function slicedIntegers(
  packed: PackedIntegers | undefined,
  from: number,
  end: number,
): PackedIntegers | undefined {
  return packed === undefined ? undefined : { ...packed, integers: packed.integers.subarray(from, end) };
}

/** Answers a column's codes, and the distinct values that they belong to; null where it has none. */
export function codesOf(column: Column): Coded | null {
  if (column.kind === 'texts') return { codes: column.codes, of: column.dictionary };
  return column.kind === 'numbers' || column.kind === 'wide' ? (column.coded ?? null) : null;
}
