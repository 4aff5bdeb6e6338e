import { type EncodedColumn, encodeColumn, wideInteger } from './encode-column.ts';
import { noString, StringTable } from './string-table.ts';
import { chunkRowsMax, valueKinds } from './value-kinds.ts';

const entriesFirst = 64;

/** How many of the last digits of a long number are read apart: the others are at most ten. */
const lowDigits = 9;
const lowPower = 10 ** lowDigits;
const minus = 0x2d;

function digitsOf(source: Buffer, start: number, end: number): number {
  let value = 0;
  for (let at = start; at < end; at++) value = value * 10 + (source[at] as number) - 0x30;
  return value;
}

/**
 * The values of one key in the rows of a chunk that is being made, in the order of their rows. Memory: 11 bytes an entry, and the
 * distinct strings.
 */
export class KeyColumn {
  readonly strings = new StringTable();
  #rows = new Uint16Array(entriesFirst);
  #kinds = new Uint8Array(entriesFirst);
  #values = new Float64Array(entriesFirst);
  #wideValues = new BigInt64Array(this.#values.buffer);
  #halves = new Int32Array(this.#values.buffer);
  #count = 0;
  #lastRow = -1;

  /** Rows that have a value. */
  get count(): number {
    return this.#count;
  }

  /** Adds the value of a row; where a row has the key twice, the last value counts. */
  add(row: number, kind: number, value: number): void {
    let entry = this.#count - 1;
    if (row !== this.#lastRow) {
      entry = this.#count++;
      this.#lastRow = row;
      if (entry === this.#rows.length) this.#grow();
      this.#rows[entry] = row;
    }
    this.#kinds[entry] = kind;
    this.#values[entry] = value;
  }

  /** An integer that may be no double. */
  addWide(row: number, value: bigint): void {
    this.add(row, wideInteger, 0);
    this.#wideValues[this.#count - 1] = value;
  }

  /** As `addWide`, by its halves. */
  addHalves(row: number, low: number, high: number): void {
    this.add(row, wideInteger, 0);
    const at = (this.#count - 1) * 2;
    this.#halves[at] = low;
    this.#halves[at + 1] = high;
  }

  /** A whole number as JSON has it, within 64 bits. */
  addDigits(row: number, source: Buffer, start: number, end: number): void {
    const isNegative = source[start] === minus;
    const first = isNegative ? start + 1 : start;
    const cut = Math.max(first, end - lowDigits);
    const high = digitsOf(source, first, cut);
    const low = digitsOf(source, cut, end);
    const number = high * lowPower + low;
    if (number <= Number.MAX_SAFE_INTEGER)
      this.add(row, valueKinds.integer, isNegative && number > 0 ? -number : number);
    else this.#addProduct(row, high, low, isNegative);
  }

  /** `high` × 10^9 + `low`, as halves of 64 bits: no product here is over 2^53. */
  #addProduct(row: number, high: number, low: number, isNegative: boolean): void {
    const upper = Math.floor(high / 2 ** 20);
    const lower = high - upper * 2 ** 20;
    const shifted = upper * lowPower;
    const shiftedHigh = Math.floor(shifted / 2 ** 12);
    const sum = lower * lowPower + low + (shifted - shiftedHigh * 2 ** 12) * 2 ** 20;
    const carry = Math.floor(sum / 2 ** 32);
    const lowHalf = sum - carry * 2 ** 32;
    const highHalf = shiftedHigh + carry;
    if (!isNegative) this.addHalves(row, lowHalf | 0, highHalf | 0);
    else if (lowHalf === 0) this.addHalves(row, 0, -highHalf | 0);
    else this.addHalves(row, -lowHalf | 0, ~highHalf);
  }

  /** The number of a string; `noString` for one that is not held. */
  addString(row: number, string: number): void {
    this.add(row, string === noString ? valueKinds.other : valueKinds.string, string);
  }

  /** Makes a block of `rowCount` rows, in bytes of zeros that `memory` makes; there is at least one entry. */
  encode(rowCount: number, memory: (bytes: number) => Buffer): EncodedColumn {
    const entries = {
      rowCount,
      entryCount: this.#count,
      rows: this.#rows,
      kinds: this.#kinds,
      values: this.#values,
      wideValues: this.#wideValues,
      strings: this.strings,
    };
    return encodeColumn(entries, memory);
  }

  /** `keepsStrings`: the memory that they had. */
  clear({ keepsStrings }: { readonly keepsStrings: boolean }): void {
    this.strings.clear({ keeps: keepsStrings });
    this.#count = 0;
    this.#lastRow = -1;
  }

  #grow(): void {
    const length = Math.min(this.#rows.length * 4, chunkRowsMax);
    const [rows, kinds, values] = [this.#rows, this.#kinds, this.#values];
    this.#rows = new Uint16Array(length);
    this.#rows.set(rows);
    this.#kinds = new Uint8Array(length);
    this.#kinds.set(kinds);
    this.#values = new Float64Array(length);
    // NaNs too are copied bit by bit: some of them are integers.
    this.#wideValues = new BigInt64Array(this.#values.buffer);
    this.#wideValues.set(new BigInt64Array(values.buffer));
    this.#halves = new Int32Array(this.#values.buffer);
  }
}
