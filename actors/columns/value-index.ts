/**
 * The rows of one chunk by their values under one key, so that a filter takes what it finds and not what there is: made of a column's
 * block once the block is asked again and again, and kept beside it in memory. Nothing of it is stored.
 *
 * 1. Rows are sorted by value, each value's ascending: strings by their code, whole numbers by themselves (a radix sort).
 * 2. A string's code is found in a table of hashes. Its buckets are filled by counting, so that strings whose hashes are equal make it
 *    no slower to build; to look one up then takes as long as without the table.
 * 3. A term is some stretches of the sorted rows, or, negated, all rows but these.
 *
 * Only columns all of whose entries are strings, or whole numbers of at most 4 bytes, have one: of these a column is always sure.
 */
import type { ColumnValues } from './column-block.ts';
import { presences } from './column-block.ts';
import type { ColumnTerm } from './filter-terms.ts';
import { hashBytes } from './hash-bytes.ts';
import { dateOf, noTemporal, timeOf } from './temporal.ts';
import { chunkRowsMax, isWholeKind, valueKinds } from './value-kinds.ts';

/** Stretches of the sorted rows: where each begins and before which it ends. */
export interface FoundRows {
  readonly stretches: readonly number[];
  /** How many rows they have together. */
  readonly count: number;
}

export class ValueIndex {
  /** Bytes that the index takes in memory. */
  readonly bytes: number;
  readonly #kind: number;
  readonly #rows: Uint16Array;
  readonly #values: StringCodes | WholeNumbers;

  private constructor(kind: number, rows: Uint16Array, values: StringCodes | WholeNumbers) {
    this.#kind = kind;
    this.#rows = rows;
    this.#values = values;
    this.bytes = rows.byteLength + values.bytes;
  }

  /** Makes the index of a column; null for a column of a kind that has none. */
  static of(column: ColumnValues): ValueIndex | null {
    const { uniformKind } = column;
    if (uniformKind === valueKinds.string)
      return new ValueIndex(uniformKind, rowsByCode(column), new StringCodes(column));
    if (!isWholeKind(uniformKind) || column.integerBytes === 8) return null;
    const sorted = entriesByNumber(column);
    return new ValueIndex(uniformKind, rowsOfEntries(column, sorted), new WholeNumbers(column, sorted));
  }

  /** Finds the rows whose value is one of the term's or in its range. Whether the term is negated is its caller's to see. */
  find(term: ColumnTerm): FoundRows {
    const stretches: number[] = [];
    let count = 0;
    const add = (start: number, end: number) => {
      if (end <= start) return;
      stretches.push(start, end);
      count += end - start;
    };
    if (this.#values instanceof StringCodes) for (const each of term.strings) this.#values.find(each, add);
    else findNumbers(this.#values, this.#kind, term, add);
    return { stretches, count };
  }

  /** Sets the bits of found rows. */
  mark({ stretches }: FoundRows, bits: Uint32Array): void {
    const rows = this.#rows;
    for (let at = 0; at < stretches.length; at += 2) {
      const end = stretches[at + 1] as number;
      for (let i = stretches[at] as number; i < end; i++) {
        const row = rows[i] as number;
        bits[row >>> 5] = (bits[row >>> 5] as number) | (1 << (row & 31));
      }
    }
  }
}

type AddStretch = (start: number, end: number) => void;

function findNumbers(numbers: WholeNumbers, kind: number, term: ColumnTerm, add: AddStretch): void {
  if (kind !== valueKinds.integer) {
    const read = kind === valueKinds.date ? dateOf : timeOf;
    for (const string of term.strings) {
      const value = read(string, 0, string.length);
      if (value !== noTemporal) numbers.find(BigInt(value), BigInt(value), add);
    }
    return;
  }
  const { integers: test } = term;
  if (test.kind === 'range') numbers.find(test.least, test.greatest, add);
  else for (const value of test.values) numbers.find(value, value, add);
}

/** Scratch space of all indexes of a thread: nothing yields while one is made. */
const entryRows = new Uint16Array(chunkRowsMax);
const sortedKeys = [new Uint32Array(chunkRowsMax), new Uint32Array(chunkRowsMax)] as const;
const sortedEntries = [new Uint16Array(chunkRowsMax), new Uint16Array(chunkRowsMax)] as const;
const digitStarts = new Uint32Array(chunkRowsMax + 1);

/** Answers the row of each entry; null where an entry's number is its row. */
function rowsOfEach({ presence, rows, bitmap }: ColumnValues): Uint16Array | null {
  if (presence === presences.all) return null;
  if (presence === presences.rows) return rows;
  let entry = 0;
  for (let at = 0; at < bitmap.length; at++)
    for (let word = bitmap[at] as number; word !== 0; word &= word - 1)
      entryRows[entry++] = at * 32 + 31 - Math.clz32(word & -word);
  return entryRows;
}

/** Answers the rows of sorted entries, in that order. */
function rowsOfEntries(column: ColumnValues, { entries }: SortedEntries): Uint16Array {
  const rows = rowsOfEach(column);
  const found = entries.slice(0, column.entryCount);
  if (rows !== null)
    for (let at = 0; at < found.length; at++) found[at] = rows[found[at] as number] as number;
  return found;
}

/** Where each code's rows begin, counted; the last number is that of all entries. */
function codeStarts({ codes, stringEnds }: ColumnValues): Uint32Array {
  const starts = new Uint32Array(stringEnds.length + 1);
  for (let i = 0; i < codes.length; i++) (starts[(codes[i] as number) + 1] as number)++;
  for (let code = 1; code < starts.length; code++)
    starts[code] = (starts[code] as number) + (starts[code - 1] as number);
  return starts;
}

function rowsByCode(column: ColumnValues): Uint16Array {
  const { codes } = column;
  const next = codeStarts(column);
  const rows = rowsOfEach(column);
  const sorted = new Uint16Array(codes.length);
  for (let i = 0; i < codes.length; i++) {
    const code = codes[i] as number;
    const at = next[code] as number;
    next[code] = at + 1;
    sorted[at] = rows === null ? i : (rows[i] as number);
  }
  return sorted;
}

/** Finds the codes of strings by their hashes. */
class StringCodes {
  readonly #column: ColumnValues;
  readonly #view: DataView;
  /** Where the rows of each code begin. */
  readonly #starts: Uint32Array;
  /** Where the codes of each bucket begin, and the codes. */
  readonly #buckets: Uint32Array;
  readonly #codes: Uint16Array;

  constructor(column: ColumnValues) {
    const { stringBytes, stringEnds } = column;
    this.#column = column;
    this.#view = new DataView(stringBytes.buffer, stringBytes.byteOffset, stringBytes.length);
    this.#starts = codeStarts(column);
    const count = stringEnds.length;
    this.#buckets = new Uint32Array(2 ** Math.ceil(Math.log2(count + 1)) + 1);
    this.#codes = new Uint16Array(count);
    const bucketOf = new Uint32Array(count);
    let start = 0;
    for (let code = 0; code < count; code++) {
      const end = stringEnds[code] as number;
      const bucket = this.#bucketOf(this.#view, start, end);
      bucketOf[code] = bucket;
      (this.#buckets[bucket + 1] as number)++;
      start = end;
    }
    for (let bucket = 1; bucket < this.#buckets.length; bucket++)
      this.#buckets[bucket] = (this.#buckets[bucket] as number) + (this.#buckets[bucket - 1] as number);
    const next = Uint32Array.from(this.#buckets);
    for (let code = 0; code < count; code++) {
      const bucket = bucketOf[code] as number;
      const at = next[bucket] as number;
      next[bucket] = at + 1;
      this.#codes[at] = code;
    }
  }

  get bytes(): number {
    return this.#starts.byteLength + this.#buckets.byteLength + this.#codes.byteLength;
  }

  find(wanted: Buffer, add: AddStretch): void {
    const view = new DataView(wanted.buffer, wanted.byteOffset, wanted.length);
    const bucket = this.#bucketOf(view, 0, wanted.length);
    const end = this.#buckets[bucket + 1] as number;
    for (let at = this.#buckets[bucket] as number; at < end; at++) {
      const code = this.#codes[at] as number;
      if (!this.#isAt(code, wanted)) continue;
      add(this.#starts[code] as number, this.#starts[code + 1] as number);
      return;
    }
  }

  #bucketOf(view: DataView, start: number, end: number): number {
    return hashBytes(view, start, end, 0) & (this.#buckets.length - 2);
  }

  #isAt(code: number, wanted: Buffer): boolean {
    const { stringBytes, stringEnds } = this.#column;
    const start = code === 0 ? 0 : (stringEnds[code - 1] as number);
    if ((stringEnds[code] as number) - start !== wanted.length) return false;
    for (let i = 0; i < wanted.length; i++) if (stringBytes[start + i] !== wanted[i]) return false;
    return true;
  }
}

interface SortedEntries {
  readonly entries: Uint16Array;
  readonly keys: Uint32Array;
}

/** Entries by their numbers less the base, equal ones in their order; valid until the next call. */
function entriesByNumber({ integers, integerBytes, entryCount }: ColumnValues): SortedEntries {
  const [firstKeys, secondKeys] = sortedKeys;
  const [firstEntries, secondEntries] = sortedEntries;
  for (let i = 0; i < entryCount; i++) {
    firstKeys[i] = integers[i] as number;
    firstEntries[i] = i;
  }
  const first = { keys: firstKeys, entries: firstEntries };
  const second = { keys: secondKeys, entries: secondEntries };
  sortByDigit(first, second, { count: entryCount, shift: 0 });
  if (integerBytes <= 2) return second;
  sortByDigit(second, first, { count: entryCount, shift: 16 });
  return first;
}

/** One pass of a radix sort, by 16 bits. */
function sortByDigit(
  from: SortedEntries,
  to: SortedEntries,
  { count, shift }: { readonly count: number; readonly shift: number },
): void {
  digitStarts.fill(0);
  for (let i = 0; i < count; i++)
    (digitStarts[(((from.keys[i] as number) >>> shift) & 0xffff) + 1] as number)++;
  for (let digit = 1; digit < digitStarts.length; digit++)
    digitStarts[digit] = (digitStarts[digit] as number) + (digitStarts[digit - 1] as number);
  for (let i = 0; i < count; i++) {
    const key = from.keys[i] as number;
    const digit = (key >>> shift) & 0xffff;
    const at = digitStarts[digit] as number;
    digitStarts[digit] = at + 1;
    to.keys[at] = key;
    to.entries[at] = from.entries[i] as number;
  }
}

/** The distinct numbers of a column less its base, ascending, and where the rows of each begin. */
class WholeNumbers {
  readonly #base: bigint;
  readonly #values: Uint32Array;
  readonly #starts: Uint32Array;

  constructor({ integerBase, entryCount }: ColumnValues, { keys }: SortedEntries) {
    this.#base = integerBase;
    let count = 0;
    for (let i = 0; i < entryCount; i++) if (i === 0 || keys[i] !== keys[i - 1]) count++;
    this.#values = new Uint32Array(count);
    this.#starts = new Uint32Array(count + 1).fill(entryCount);
    let at = 0;
    for (let i = 0; i < entryCount; i++) {
      if (i > 0 && keys[i] === keys[i - 1]) continue;
      this.#values[at] = keys[i] as number;
      this.#starts[at++] = i;
    }
  }

  get bytes(): number {
    return this.#values.byteLength + this.#starts.byteLength;
  }

  /** Adds the rows whose number lies between `least` and `greatest`, both included. */
  find(least: bigint, greatest: bigint, add: AddStretch): void {
    const from = least - this.#base;
    const to = greatest - this.#base;
    if (to < 0n || from > to) return;
    const first = from <= 0n ? 0 : from > numberMax ? this.#values.length : this.#firstFrom(Number(from));
    const end = to >= numberMax ? this.#values.length : this.#firstFrom(Number(to) + 1);
    add(this.#starts[first] as number, this.#starts[end] as number);
  }

  /** Answers the place of the first number that is not less than `value`; their count where all are less. */
  #firstFrom(value: number): number {
    let low = 0;
    let high = this.#values.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#values[middle] as number) < value) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

const numberMax = 0xffff_ffffn;
