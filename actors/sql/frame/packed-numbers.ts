import type { PackedIntegers } from './column.ts';
import type { Arrays } from './frame-memory.ts';

/** Answers memory for so many doubles, in which anything may stand. */
export type Scratch = (count: number) => Float64Array;

/** A column of whole numbers as they are stored, which become doubles when somebody asks for them; in memory of `scratch`, where it is given. */
export class PackedNumbers {
  readonly kind = 'numbers';
  readonly nulls = null;
  readonly packed: PackedIntegers;
  readonly #scratch: Scratch | null;
  #values: Float64Array | null = null;

  constructor(packed: PackedIntegers, scratch: Scratch | null) {
    this.packed = packed;
    this.#scratch = scratch;
  }

  get values(): Float64Array {
    const { integers, base } = this.packed;
    const { length } = integers;
    this.#values ??= numbersOf(integers, base, this.#scratch?.(length) ?? new Float64Array(length));
    return this.#values;
  }
}

/** Picks the packed integers of some rows. */
export function takenIntegers(
  { integers, base }: PackedIntegers,
  rows: Int32Array,
  arrays: Arrays,
): PackedIntegers {
  if (integers instanceof Uint8Array) return { integers: takenBytes(integers, rows, arrays), base };
  return integers instanceof Uint16Array
    ? { integers: takenShorts(integers, rows, arrays), base }
    : { integers: takenWords(integers, rows, arrays), base };
}

/** Picks the bytes of some rows. */
export function takenBytes(bytes: Uint8Array, rows: Int32Array, arrays: Arrays): Uint8Array {
  const some = arrays.bytes(rows.length);
  for (let i = 0; i < some.length; i++) some[i] = bytes[rows[i] as number] as number;
  return some;
}

function takenShorts(integers: Uint16Array, rows: Int32Array, arrays: Arrays): Uint16Array {
  const some = arrays.shorts(rows.length);
  for (let i = 0; i < some.length; i++) some[i] = integers[rows[i] as number] as number;
  return some;
}

function takenWords(integers: Uint32Array, rows: Int32Array, arrays: Arrays): Uint32Array {
  const some = arrays.words(rows.length);
  for (let i = 0; i < some.length; i++) some[i] = integers[rows[i] as number] as number;
  return some;
}

/** Unpacks integers into `numbers`. There is a loop for each width: one loop for all of them is several times as slow. */
export function numbersOf(
  integers: Uint8Array | Uint16Array | Uint32Array,
  base: number,
  numbers: Float64Array,
): Float64Array {
  if (integers instanceof Uint8Array) return fromBytes(integers, base, numbers);
  return integers instanceof Uint16Array
    ? fromShorts(integers, base, numbers)
    : fromWords(integers, base, numbers);
}

function fromBytes(integers: Uint8Array, base: number, numbers: Float64Array): Float64Array {
  for (let i = 0; i < numbers.length; i++) numbers[i] = (integers[i] as number) + base;
  return numbers;
}

function fromShorts(integers: Uint16Array, base: number, numbers: Float64Array): Float64Array {
  for (let i = 0; i < numbers.length; i++) numbers[i] = (integers[i] as number) + base;
  return numbers;
}

function fromWords(integers: Uint32Array, base: number, numbers: Float64Array): Float64Array {
  for (let i = 0; i < numbers.length; i++) numbers[i] = (integers[i] as number) + base;
  return numbers;
}
