import type { Coded, Column, Nulls, PackedIntegers } from '../frame/column.ts';
import { asValues, type Values } from '../frame/column-forms.ts';
import type { Room } from '../room.ts';
import { ByCodes } from './by-codes.ts';
import { HashSlots } from './hash-slots.ts';
import { hashWords } from './hash-words.ts';
import { type Interner, internedFirst, nullsAmong } from './interner.ts';
import { PairInterner } from './pair-interner.ts';

/** Whole numbers below it are found by an array, without a hash. */
const smallMax = 65_536;

/**
 * Gives distinct values of every type but text their numbers. Small whole numbers are found by themselves, other doubles by their
 * hash, and integers beyond 2^53 by their halves of 32 bits, in a table of their own.
 */
export class NumberInterner implements Interner {
  readonly #slots = new HashSlots();
  /** The value of each number, unless it is wide. */
  #values = new Float64Array(internedFirst);
  /** The number plus one of each whole number under `smallMax`; empty until one comes. */
  #smallNumbers = new Int32Array(0);
  /** Halves of integers beyond 2^53; null until one comes. */
  #wide: PairInterner | null = null;
  /** The number of the integer of each pair of halves. */
  #wideNumbers = new Int32Array(internedFirst);
  /** The pair of halves of each number, plus one; 0 where it has none. */
  #pairs = new Int32Array(0);
  #count = 0;
  readonly #room: Room;
  readonly #byCodes: ByCodes;
  /** One row, and the number that was found for it. */
  readonly #row = new Int32Array(1);
  readonly #found = new Int32Array(1);
  nullNumber = -1;

  /** `room`: for as many values as can come. */
  constructor(room: Room) {
    this.#room = room;
    this.#byCodes = new ByCodes(room);
  }

  get count(): number {
    return this.#count;
  }

  get bytes(): number {
    const wide = this.#wide === null ? 0 : this.#wide.bytes + this.#wide.count * 4 + this.#count * 4;
    return this.#slots.bytes + this.#count * 8 + this.#smallNumbers.byteLength + wide + this.#byCodes.bytes;
  }

  get #small(): Int32Array {
    if (this.#smallNumbers.length === 0) this.#smallNumbers = this.#room.zeros(smallMax);
    return this.#smallNumbers;
  }

  intern(column: Column, rows: Int32Array, rowCount: number, numbers: Int32Array): void {
    const packed = column.kind === 'numbers' ? column.packed : undefined;
    if (packed !== undefined && isSmall(packed)) {
      this.#internSmall(packed, rows, numbers);
      return;
    }
    const values = asValues(column, rowCount);
    if (values.coded !== undefined) this.#internCodes(values, values.coded, rows, numbers);
    else this.#internValues(values, rows, numbers);
  }

  /** Looks small whole numbers up as they are stored; those that come for the first time are added behind that. */
  #internSmall({ integers, base }: PackedIntegers, rows: Int32Array, numbers: Int32Array): void {
    const small = this.#small;
    const isKnown =
      integers instanceof Uint8Array
        ? findBytes(integers, base, { small, rows, numbers })
        : findShorts(integers as Uint16Array, base, { small, rows, numbers });
    if (isKnown) return;
    for (let i = 0; i < rows.length; i++) {
      if ((numbers[i] as number) >= 0) continue;
      const value = (integers[rows[i] as number] as number) + base;
      const known = small[value] as number;
      numbers[i] = known > 0 ? known - 1 : this.#addSmall(value);
    }
  }

  #internValues({ kind, values, nulls }: Values, rows: Int32Array, numbers: Int32Array): void {
    if (kind === 'numbers') this.#internNumbers(values, nulls, rows, numbers);
    else this.#internWide(values, nulls, rows, numbers);
  }

  /** Looks a value up when its code comes for the first time. */
  #internCodes(column: Values, { codes, of }: Coded, rows: Int32Array, numbers: Int32Array): void {
    let byCode = this.#byCodes.of(of, 0);
    const [one, found] = [this.#row, this.#found];
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i] as number;
      const code = codes[row] as number;
      if (code >= byCode.length) byCode = this.#byCodes.of(of, code + 1);
      let number = (byCode[code] as number) - 1;
      if (number < 0) {
        one[0] = row;
        this.#internValues(column, one, found);
        number = found[0] as number;
        byCode[code] = number + 1;
      }
      numbers[i] = number;
    }
  }

  valuesOf(numbers: Int32Array): Column {
    const nulls = nullsAmong(numbers, this.nullNumber);
    if (this.#wide !== null) return { kind: 'wide', values: this.#wideOf(this.#wide, numbers), nulls };
    const values = new Float64Array(numbers.length);
    for (let i = 0; i < values.length; i++) values[i] = this.#values[numbers[i] as number] as number;
    return { kind: 'numbers', values, nulls };
  }

  #wideOf(halvesOf: PairInterner, numbers: Int32Array): BigInt64Array {
    const wide = new BigInt64Array(numbers.length);
    const halves = new Int32Array(wide.buffer);
    const [values, pairs] = [this.#values, this.#pairs];
    for (let i = 0; i < numbers.length; i++) {
      const number = numbers[i] as number;
      const pair = ((pairs[number] as number | undefined) ?? 0) - 1;
      if (pair >= 0) {
        halves[i * 2] = halvesOf.firstOf(pair);
        halves[i * 2 + 1] = halvesOf.secondOf(pair);
        continue;
      }
      const value = values[number] as number;
      const high = Math.floor(value / 0x1_0000_0000);
      halves[i * 2] = value - high * 0x1_0000_0000;
      halves[i * 2 + 1] = high;
    }
    return wide;
  }

  #internNumbers(values: Float64Array, nulls: Nulls, rows: Int32Array, numbers: Int32Array): void {
    let small: Int32Array = this.#smallNumbers;
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i] as number;
      const value = values[row] as number;
      if (nulls !== null && nulls[row] === 1) numbers[i] = this.#null();
      else if (value >= 0 && value < smallMax && value === (value | 0)) {
        if (small.length === 0) small = this.#small;
        const known = small[value] as number;
        numbers[i] = known > 0 ? known - 1 : this.#addSmall(value);
      } else numbers[i] = this.#number(value);
    }
  }

  #internWide(values: BigInt64Array, nulls: Nulls, rows: Int32Array, numbers: Int32Array): void {
    const words = new Int32Array(values.buffer, values.byteOffset, values.length * 2);
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i] as number;
      const high = words[row * 2 + 1] as number;
      const low = words[row * 2] as number;
      if (nulls !== null && nulls[row] === 1) numbers[i] = this.#null();
      else if (high >= -0x20_0000 && high < 0x20_0000)
        numbers[i] = this.#narrow(high * 0x1_0000_0000 + (low >>> 0));
      else numbers[i] = this.#big(low, high);
    }
  }

  #null(): number {
    if (this.nullNumber < 0) this.nullNumber = this.#add(0);
    return this.nullNumber;
  }

  #narrow(value: number): number {
    if (value < 0 || value >= smallMax) return this.#number(value);
    const known = this.#small[value] as number;
    return known > 0 ? known - 1 : this.#addSmall(value);
  }

  #addSmall(value: number): number {
    const number = this.#add(value);
    this.#small[value] = number + 1;
    return number;
  }

  #big(low: number, high: number): number {
    this.#wide ??= new PairInterner(this.#room);
    const before = this.#wide.count;
    const pair = this.#wide.internAny(low, high);
    if (pair < before) return this.#wideNumbers[pair] as number;
    const number = this.#add(0);
    this.#wideNumbers = this.#room.grown(this.#wideNumbers, pair + 1);
    this.#wideNumbers[pair] = number;
    this.#pairs = this.#room.grownWithZeros(this.#pairs, number + 1);
    this.#pairs[number] = pair + 1;
    return number;
  }

  #number(value: number): number {
    const hash = hashNumber(value);
    const slots = this.#slots.of(hash);
    const mask = slots.length - 1;
    let slot = hash & mask;
    for (;;) {
      const held = (slots[slot] as number) - 1;
      if (held < 0) break;
      if (this.#values[held] === value) return held;
      slot = (slot + 1) & mask;
    }
    const number = this.#add(value);
    slots[slot] = number + 1;
    this.#slots.added(hash, this.#hashOf);
    return number;
  }

  readonly #hashOf = (number: number) => hashNumber(this.#values[number] as number);

  #add(value: number): number {
    if (this.#count === this.#values.length) this.#values = this.#room.grown(this.#values, this.#count + 1);
    this.#values[this.#count] = value;
    return this.#count++;
  }
}

/** Whether whatever integers of that width may be are found by themselves. */
function isSmall({ integers, base }: PackedIntegers): boolean {
  return base >= 0 && base + 2 ** (integers.BYTES_PER_ELEMENT * 8) <= smallMax;
}

/** What a loop over small whole numbers reads and writes. */
interface Small {
  /** The number plus one of each whole number under `smallMax`; 0 where it has none. */
  readonly small: Int32Array;
  readonly rows: Int32Array;
  /** What is found: the number of each row, or -1. */
  readonly numbers: Int32Array;
}

/** Answers whether all have a number. There is a loop for each width: one loop for both is several times as slow. */
function findBytes(integers: Uint8Array, base: number, { small, rows, numbers }: Small): boolean {
  let signs = 0;
  for (let i = 0; i < rows.length; i++) {
    const number = (small[(integers[rows[i] as number] as number) + base] as number) - 1;
    numbers[i] = number;
    signs |= number;
  }
  return signs >= 0;
}

function findShorts(integers: Uint16Array, base: number, { small, rows, numbers }: Small): boolean {
  let signs = 0;
  for (let i = 0; i < rows.length; i++) {
    const number = (small[(integers[rows[i] as number] as number) + base] as number) - 1;
    numbers[i] = number;
    signs |= number;
  }
  return signs >= 0;
}

/** One double seen as two words: a `DataView` for each would cost more than the hash. */
const bits = new Float64Array(1);
const halves = new Int32Array(bits.buffer);

function hashNumber(value: number): number {
  bits[0] = value;
  return hashWords(halves[0] as number, halves[1] as number);
}
