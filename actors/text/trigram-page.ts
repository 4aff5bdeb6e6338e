/**
 * A page of the trigram index: entries in the order of their trigrams, each with its posting list. Little-endian.
 *
 *   u16 entry count | for each 32nd entry: u24 trigram, u16 where it begins after this table | entries
 *
 * An entry: its trigram less the one before, less one (not where the table has it) | the list's count, less one |
 * where the count is more than two: the list's bytes | the list. All varints but the list. A list that would not fit a
 * page with others has a page of its own.
 */
import { DataError } from '../../src/base/assert.ts';
import {
  type DataPlace,
  encodePostings,
  fixedBytes,
  fixedEntriesMax,
  type PostingsPlace,
  postingsBytesMax,
} from './postings.ts';
import { readVarint, varintBytesMax, varintEnd, writeVarint } from './varint.ts';

export const pageBytesTarget = 16 * 1024;

const entriesPerRestart = 32;
const headBytes = 2;
const restartBytes = 5;
export const trigramBound = 1 << 24;

export interface FinishedPage {
  readonly firstTrigram: number;
  readonly entryCount: number;
  /** The page, in an array of its own: the builder does not keep it. */
  readonly bytes: Uint8Array;
}

/** Puts lists into pages, in the order of their trigrams. */
export class PageBuilder {
  /** The bound of the lists' numbers: every one of them is below it. */
  readonly #bound: number;
  #entries = new Uint8Array(2 * pageBytesTarget);
  #entriesBytes = 0;
  readonly #restarts = new Uint8Array(restartBytes * (pageBytesTarget / entriesPerRestart));
  #entryCount = 0;
  #firstTrigram = 0;
  #lastTrigram = 0;

  constructor(bound: number) {
    this.#bound = bound;
  }

  /** Adds the list of the first `count` ages. Answers the page that was finished before, if one was. */
  add(trigram: number, ages: Uint32Array, count: number): FinishedPage | null {
    const before = this.#entriesBytes;
    this.#reserve(before + 3 * varintBytesMax + postingsBytesMax(count, this.#bound));
    const end = this.#write(trigram, ages, count, this.#entryCount % entriesPerRestart === 0);
    if (this.#entryCount === 0 || end + this.#tableBytes(this.#entryCount + 1) <= pageBytesTarget) {
      this.#accept(trigram, end);
      return null;
    }
    this.#entriesBytes = before;
    const page = this.#build();
    this.#accept(trigram, this.#write(trigram, ages, count, true));
    return page;
  }

  /** The last page, if anything is in it. */
  finish(): FinishedPage | null {
    return this.#entryCount === 0 ? null : this.#build();
  }

  #reserve(bytes: number): void {
    if (bytes <= this.#entries.length) return;
    const larger = new Uint8Array(bytes * 2);
    larger.set(this.#entries.subarray(0, this.#entriesBytes));
    this.#entries = larger;
  }

  #tableBytes(entryCount: number): number {
    return headBytes + Math.ceil(entryCount / entriesPerRestart) * restartBytes;
  }

  #write(trigram: number, ages: Uint32Array, count: number, isRestart: boolean): number {
    const bytes = this.#entries;
    let at = this.#entriesBytes;
    if (!isRestart) at = writeVarint(bytes, at, trigram - this.#lastTrigram - 1);
    at = writeVarint(bytes, at, count - 1);
    if (count <= fixedEntriesMax) return encodePostings(ages, count, this.#bound, bytes, at);
    // The list's length stands before it and is known after it: room for the usual one byte is left.
    const listEnd = encodePostings(ages, count, this.#bound, bytes, at + 1);
    const length = listEnd - at - 1;
    const lengthBytes = length < 0x80 ? 1 : length < 0x4000 ? 2 : 3;
    if (lengthBytes > 1) bytes.copyWithin(at + lengthBytes, at + 1, listEnd);
    writeVarint(bytes, at, length);
    return at + lengthBytes + length;
  }

  #accept(trigram: number, end: number): void {
    if (this.#entryCount === 0) this.#firstTrigram = trigram;
    if (this.#entryCount % entriesPerRestart === 0) {
      const at = (this.#entryCount / entriesPerRestart) * restartBytes;
      const restarts = this.#restarts;
      restarts[at] = trigram;
      restarts[at + 1] = trigram >>> 8;
      restarts[at + 2] = trigram >>> 16;
      restarts[at + 3] = this.#entriesBytes;
      restarts[at + 4] = this.#entriesBytes >>> 8;
    }
    this.#entryCount++;
    this.#lastTrigram = trigram;
    this.#entriesBytes = end;
  }

  #build(): FinishedPage {
    const table = this.#tableBytes(this.#entryCount);
    const bytes = new Uint8Array(table + this.#entriesBytes);
    bytes[0] = this.#entryCount;
    bytes[1] = this.#entryCount >>> 8;
    bytes.set(this.#restarts.subarray(0, table - headBytes), headBytes);
    bytes.set(this.#entries.subarray(0, this.#entriesBytes), table);
    const page = { firstTrigram: this.#firstTrigram, entryCount: this.#entryCount, bytes };
    this.#entryCount = 0;
    this.#entriesBytes = 0;
    return page;
  }
}

export interface PageEntry extends PostingsPlace {
  readonly trigram: number;
}

/** A page, and the bound of the numbers in its lists. */
export interface IndexPage {
  readonly bytes: Uint8Array;
  readonly bound: number;
  readonly place: DataPlace;
}

/** The lists of the trigrams from `first` to `last` that the page has, ascending. `DataError` where they can't be. */
export function findInPage(page: IndexPage, first: number, last: number): PageEntry[] {
  const { bytes, bound, place } = page;
  const damaged = (reason: string) => new DataError(place.name, place.offset, reason);
  const entryCount = (bytes[0] ?? 0) | ((bytes[1] ?? 0) << 8);
  const restarts = Math.ceil(entryCount / entriesPerRestart);
  const entriesStart = headBytes + restarts * restartBytes;
  if (entryCount === 0 || entriesStart > bytes.length) throw damaged('a page without entries');
  const restart = restartBefore(bytes, restarts, first);
  let at = entriesStart + restartOffset(bytes, restart);
  let trigram = restartTrigram(bytes, restart);
  const found: PageEntry[] = [];
  for (let entry = restart * entriesPerRestart; entry < entryCount; entry++) {
    if (entry % entriesPerRestart === 0) trigram = restartTrigram(bytes, entry / entriesPerRestart);
    else {
      trigram += readVarint(bytes, at) + 1;
      at = varintEnd;
    }
    if (trigram > last) break;
    const count = readVarint(bytes, at) + 1;
    at = varintEnd;
    let length = count * fixedBytes(bound);
    if (count > fixedEntriesMax) {
      length = readVarint(bytes, at);
      at = varintEnd;
    }
    if (count > bound || length > bytes.length - at) throw damaged('a list that goes past its page');
    if (trigram >= first) found.push({ trigram, bytes, start: at, end: at + length, count, bound, place });
    at += length;
  }
  return found;
}

/** The last restart whose trigram is not above `wanted`; the first where all are. */
function restartBefore(bytes: Uint8Array, restarts: number, wanted: number): number {
  let low = 0;
  let high = restarts - 1;
  while (low < high) {
    const middle = (low + high + 1) >>> 1;
    if (restartTrigram(bytes, middle) <= wanted) low = middle;
    else high = middle - 1;
  }
  return low;
}

function restartTrigram(bytes: Uint8Array, restart: number): number {
  const at = headBytes + restart * restartBytes;
  return (bytes[at] as number) | ((bytes[at + 1] as number) << 8) | ((bytes[at + 2] as number) << 16);
}

function restartOffset(bytes: Uint8Array, restart: number): number {
  const at = headBytes + restart * restartBytes + 3;
  return (bytes[at] as number) | ((bytes[at + 1] as number) << 8);
}
