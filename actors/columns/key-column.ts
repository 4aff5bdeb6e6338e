import { type EncodedColumn, encodeColumn, wideInteger } from './encode-column.ts';
import { noString, StringTable } from './string-table.ts';
import { chunkRowsMax, valueKinds } from './value-kinds.ts';

/**
 * The values of one key in the rows of a chunk that is being made, in the order of their rows. Memory: 11 bytes an entry, and the
 * distinct strings.
 */
const entriesFirst = 64;

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

  /** Of a row's key that comes twice the last value counts. */
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

  /** The number of a string; `noString` for one that is not held. */
  addString(row: number, string: number): void {
    this.add(row, string === noString ? valueKinds.other : valueKinds.string, string);
  }

  /** As a block of `rowCount` rows; there is at least one entry. */
  encode(rowCount: number): EncodedColumn {
    return encodeColumn({
      rowCount,
      entryCount: this.#count,
      rows: this.#rows,
      kinds: this.#kinds,
      values: this.#values,
      wideValues: this.#wideValues,
      strings: this.strings,
    });
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
