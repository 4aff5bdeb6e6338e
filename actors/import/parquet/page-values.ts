import { type ViewedBytes, viewed } from '../../../src/base/viewed-bytes.ts';

/** The values of a page or dictionary, nulls left out. */
export type PageValues =
  | { readonly kind: 'numbers'; readonly values: Int32Array | Float32Array | Float64Array | Uint8Array }
  | WideIntegers
  | StringValues;

/** Integers of 64 bits, twice over the same bytes: `halves` has each one's lower and upper 32 bits. */
export interface WideIntegers {
  readonly kind: 'bigints';
  readonly values: BigInt64Array;
  readonly halves: Int32Array;
}

/** Byte strings, of fixed length or not: value `at` lies in `source` from `starts[at]` to `ends[at]`. */
export interface StringValues {
  readonly kind: 'bytes';
  readonly source: Buffer;
  /** The page's bytes once more, for reading several at once. */
  readonly viewed: ViewedBytes;
  readonly starts: Uint32Array;
  readonly ends: Uint32Array;
}

export function wideIntegers(values: BigInt64Array): WideIntegers {
  const halves = new Int32Array(values.buffer, values.byteOffset, values.length * 2);
  return { kind: 'bigints', values, halves };
}

export function stringValues(source: Buffer, starts: Uint32Array, ends: Uint32Array): StringValues {
  return { kind: 'bytes', source, viewed: viewed(source), starts, ends };
}

export function countOf(values: PageValues): number {
  return values.kind === 'bytes' ? values.starts.length : values.values.length;
}
