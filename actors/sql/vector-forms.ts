import {
  type Coded,
  type Dictionary,
  dictionaryOf,
  type Nulls,
  type PackedIntegers,
  type Texts,
  unknown,
  type Vector,
} from './vector.ts';

/** Vectors in the form that a loop takes, whatever they came as. */
export type Values = Extract<Vector, { kind: 'numbers' | 'wide' }>;

/** Constants and truths as a value a row. */
export function asValues(vector: Vector, rowCount: number): Values {
  switch (vector.kind) {
    case 'numbers':
    case 'wide':
      return vector;
    case 'texts':
      throw new TypeError('no number');
    case 'truths': {
      const nulls = vector.values.map((truth) => (truth === unknown ? 1 : 0));
      return {
        kind: 'numbers',
        values: Float64Array.from(vector.values),
        nulls: nulls.includes(1) ? nulls : null,
      };
    }
    case 'constant': {
      const { value } = vector;
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

const ofConstants = new WeakMap<Vector, Dictionary>();

export function asTexts(vector: Vector, rowCount: number): Texts {
  if (vector.kind === 'texts') return vector;
  if (vector.kind !== 'constant') throw new TypeError('no text');
  const { value } = vector;
  const codes = new Uint8Array(rowCount);
  let dictionary = ofConstants.get(vector);
  if (dictionary === undefined) {
    dictionary = dictionaryOf([value === null ? '' : String(value)]);
    ofConstants.set(vector, dictionary);
  }
  return {
    kind: 'texts',
    codes,
    dictionary,
    nulls: value === null ? new Uint8Array(rowCount).fill(1) : null,
  };
}

export function asWide({ kind, values, nulls }: Values): BigInt64Array {
  if (kind === 'wide') return values as BigInt64Array;
  return BigInt64Array.from(values as Float64Array, (value, row) =>
    nulls?.[row] === 1 ? 0n : BigInt(value),
  );
}

/** The rows of a vector in another order, some of them, or some of them twice. Of vectors with a value a row. Hot: plain loops. */
export function taken(vector: Vector, rows: Int32Array): Vector {
  const count = rows.length;
  switch (vector.kind) {
    case 'constant':
      return vector;
    case 'truths':
      return { kind: 'truths', values: takenBytes(vector.values, rows) };
    case 'numbers': {
      const values = new Float64Array(count);
      for (let i = 0; i < count; i++) values[i] = vector.values[rows[i] as number] as number;
      return { kind: 'numbers', values, nulls: takenNulls(vector.nulls, rows) };
    }
    case 'wide': {
      const values = new BigInt64Array(count);
      for (let i = 0; i < count; i++) values[i] = vector.values[rows[i] as number] as bigint;
      return { kind: 'wide', values, nulls: takenNulls(vector.nulls, rows) };
    }
    case 'texts': {
      const codes = new Int32Array(count);
      for (let i = 0; i < count; i++) codes[i] = vector.codes[rows[i] as number] as number;
      return { ...vector, codes, nulls: takenNulls(vector.nulls, rows) };
    }
  }
}

function takenNulls(nulls: Nulls, rows: Int32Array): Nulls {
  return nulls === null ? null : takenBytes(nulls, rows);
}

function takenBytes(bytes: Uint8Array, rows: Int32Array): Uint8Array {
  const some = new Uint8Array(rows.length);
  for (let i = 0; i < some.length; i++) some[i] = bytes[rows[i] as number] as number;
  return some;
}

/** Rows from `from` to before `end`. */
export function sliced(vector: Vector, from: number, end: number): Vector {
  if (vector.kind === 'constant') return vector;
  if (vector.kind === 'truths') return { kind: 'truths', values: vector.values.subarray(from, end) };
  const nulls = vector.nulls?.subarray(from, end) ?? null;
  const { kind } = vector;
  switch (kind) {
    case 'numbers':
      return {
        kind,
        values: vector.values.subarray(from, end),
        nulls,
        coded: slicedCodes(vector.coded, from, end),
        packed: slicedIntegers(vector.packed, from, end),
      };
    case 'wide':
      return {
        kind,
        values: vector.values.subarray(from, end),
        nulls,
        coded: slicedCodes(vector.coded, from, end),
      };
    case 'texts':
      return { ...vector, codes: vector.codes.subarray(from, end), nulls };
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

/** The codes of a vector, and what they are of; null where it has none. */
export function codesOf(vector: Vector): Coded | null {
  if (vector.kind === 'texts') return { codes: vector.codes, of: vector.dictionary };
  return vector.kind === 'numbers' || vector.kind === 'wide' ? (vector.coded ?? null) : null;
}
