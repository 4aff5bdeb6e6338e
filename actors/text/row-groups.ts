/**
 * Row groups: what the text index points to. Consecutive rows until there are about 4 KB of text, or one larger document.
 * Finer groups make the index larger, coarser ones make more documents be read for a match. A document of a large text is
 * a group, its whole, and before it there is one for each part of the text (text-parts.ts).
 *
 * Encoded: a varint for each group, in order, nearly always one byte. 0 is a part of the next row, 1 a part of the next row
 * where lines are cut, and others are how many rows the group has, and one more.
 */
import { DataError } from '../../src/base/assert.ts';
import { readVarint, varintBytesMax, varintEnd, writeVarint } from './varint.ts';

export const groupTextBytes = 4096;
/** A group of empty documents is still work to verify. */
const groupRowsMax = 256;
const partCode = 0;
const cutPartCode = 1;
/** One row. */
const rowsCodeMin = 2;

/** Puts rows into groups, in their order. */
export class RowGroupsBuilder {
  #encoded = new Uint8Array(1024);
  #encodedBytes = 0;
  #groupCount = 0;
  #rowCount = 0;
  /** Rows of the open group, and bytes of their texts. */
  #openRows = 0;
  #openBytes = 0;

  /** Those that are closed. */
  get groupCount(): number {
    return this.#groupCount;
  }

  get rowCount(): number {
    return this.#rowCount;
  }

  /** Whether a row of that many bytes of text needs a new group: then `close` comes before `add`. */
  isFullFor(textBytes: number): boolean {
    if (this.#openRows === 0) return false;
    return this.#openRows === groupRowsMax || this.#openBytes + textBytes > groupTextBytes;
  }

  add(textBytes: number): void {
    this.#openRows++;
    this.#openBytes += textBytes;
    this.#rowCount++;
  }

  /** Ends the open group, if there is one. */
  close(): void {
    if (this.#openRows === 0) return;
    this.#append(this.#openRows + rowsCodeMin - 1);
    this.#openRows = 0;
    this.#openBytes = 0;
  }

  /** A group for a part of the next row, which is a group of its own. */
  addPart(linesAreWhole: boolean): void {
    this.#append(linesAreWhole ? partCode : cutPartCode);
  }

  #append(code: number): void {
    if (this.#encodedBytes + varintBytesMax > this.#encoded.length) {
      const larger = new Uint8Array(this.#encoded.length * 2);
      larger.set(this.#encoded);
      this.#encoded = larger;
    }
    this.#encodedBytes = writeVarint(this.#encoded, this.#encodedBytes, code);
    this.#groupCount++;
  }

  /** A view, until the next call of `close`. */
  encoded(): Uint8Array {
    return this.#encoded.subarray(0, this.#encodedBytes);
  }
}

/** Groups between two places that are known without decoding. */
const groupsPerSample = 64;

/** Consecutive rows, or the one row of a large text, or that same row for a part of the text. */
export interface GroupRows {
  readonly first: number;
  readonly end: number;
  readonly kind: 'rows' | 'whole' | 'part';
  /** Whether the parts of the text have their lines whole (text-parts.ts); it says something of a part and of a whole only. */
  readonly linesAreWhole: boolean;
  /** Which part of its text, from 0 on; 0 where it is none. */
  readonly part: number;
}

/** The groups of a segment: as encoded, and for every 64th group where its code begins and which row is its first. */
export class RowGroups {
  readonly groupCount: number;
  readonly rowCount: number;
  /** Whether some are parts of a large text. */
  readonly hasParts: boolean;
  readonly #encoded: Uint8Array;
  readonly #sampleAt: Uint32Array;
  readonly #sampleRow: Uint32Array;
  /** The groups of one sample: where each one's code begins, and its first row; behind the last, the row after it. */
  readonly #decodedAt = new Uint32Array(groupsPerSample);
  readonly #decodedRow = new Uint32Array(groupsPerSample + 1);
  #decodedSample = -1;

  /** Throws `DataError` where the bytes are not that many groups of that many rows. Keeps `encoded`. */
  constructor(
    encoded: Uint8Array,
    expected: { readonly groupCount: number; readonly rowCount: number },
    place: { readonly name: string; readonly offset: number },
  ) {
    const damaged = (reason: string) => new DataError(place.name, place.offset, `row groups: ${reason}`);
    this.groupCount = expected.groupCount;
    this.rowCount = expected.rowCount;
    this.#encoded = encoded;
    // Every group takes a byte: nothing is allocated for a count that the bytes can't hold.
    if (expected.groupCount > encoded.length) throw damaged('more groups than bytes');
    const samples = Math.ceil(expected.groupCount / groupsPerSample);
    this.#sampleAt = new Uint32Array(samples);
    this.#sampleRow = new Uint32Array(samples);
    let at = 0;
    let row = 0;
    let isParted = false;
    let hasParts = false;
    for (let group = 0; group < expected.groupCount; group++) {
      if (group % groupsPerSample === 0) {
        this.#sampleAt[group / groupsPerSample] = at;
        this.#sampleRow[group / groupsPerSample] = row;
      }
      const code = readVarint(encoded, at);
      at = varintEnd;
      if (isParted && code > rowsCodeMin) throw damaged('a part of many rows');
      isParted = code < rowsCodeMin;
      hasParts ||= isParted;
      row += rowsOfCode(code);
      if (row > expected.rowCount) throw damaged('more rows than the segment has');
    }
    if (isParted || at !== encoded.length || row !== expected.rowCount) throw damaged('they end elsewhere');
    this.hasParts = hasParts;
  }

  /** The rows of a group below `groupCount`. Hot: neighbours are asked for one after the other, so the last 64 are kept decoded. */
  rowsOf(group: number): GroupRows {
    const sample = Math.floor(group / groupsPerSample);
    if (sample !== this.#decodedSample) this.#decode(sample);
    const place = group % groupsPerSample;
    const at = this.#decodedAt[place] as number;
    const first = this.#decodedRow[place] as number;
    const end = this.#decodedRow[place + 1] as number;
    if (end === first)
      return {
        first,
        end: first + 1,
        kind: 'part',
        linesAreWhole: this.#encoded[at] === partCode,
        part: this.#partsBefore(at),
      };
    const before = this.#codeOfPartAt(at - 1);
    const kind = before === null ? 'rows' : 'whole';
    return { first, end, kind, linesAreWhole: before !== cutPartCode, part: 0 };
  }

  /** How many of `groups`, which descend, follow each other from the one at `at` on, and lie where `rowsOf` answers without decoding. */
  runAt(groups: Uint32Array, at: number): number {
    const group = groups[at] as number;
    const lengthMax = Math.min((group % groupsPerSample) + 1, groups.length - at);
    let length = 1;
    while (length < lengthMax && groups[at + length] === group - length) length++;
    return length;
  }

  /** Finds the groups that have at least one of the rows, those of parts included. Rows and answer ascend. */
  groupsOf(rows: Uint32Array): Uint32Array {
    const ranges: number[] = [];
    for (const row of rows) {
      if (ranges.at(-1) === row) ranges[ranges.length - 1] = row + 1;
      else ranges.push(row, row + 1);
    }
    return this.groupsIn(ranges);
  }

  /** Finds the groups that have some rows of ranges, pairs of first and end, those of parts included. Ranges and answer ascend. */
  groupsIn(ranges: readonly number[]): Uint32Array {
    const groups: number[] = [];
    let next = 0;
    for (let at = 0; at < ranges.length; at += 2) {
      const [first, end] = [ranges[at] as number, ranges[at + 1] as number];
      let group = Math.max(next, this.#sampleBefore(first) * groupsPerSample);
      group = this.#groupAfter(group, first);
      while (group < this.groupCount && this.#firstOf(group) < end) groups.push(group++);
      next = group;
    }
    return Uint32Array.from(groups);
  }

  #firstOf(group: number): number {
    const sample = Math.floor(group / groupsPerSample);
    if (sample !== this.#decodedSample) this.#decode(sample);
    return this.#decodedRow[group % groupsPerSample] as number;
  }

  /** The first group from `group` on that ends behind `row`. Hot where many rows are asked for. */
  #groupAfter(group: number, row: number): number {
    const rows = this.#decodedRow;
    let next = group;
    // A part ends with the one row that it is of.
    const endsBefore = (place: number) =>
      Math.max((rows[place] as number) + 1, rows[place + 1] as number) <= row;
    while (next < this.groupCount) {
      this.#firstOf(next);
      const sampleEnd = Math.min(this.groupCount, (this.#decodedSample + 1) * groupsPerSample);
      while (next < sampleEnd && endsBefore(next % groupsPerSample)) next++;
      if (next < sampleEnd) break;
    }
    return next;
  }

  /** The last sample whose first row is below `row`, or the first one: groups before it have lower rows. */
  #sampleBefore(row: number): number {
    let low = 0;
    let high = this.#sampleRow.length;
    while (high - low > 1) {
      const middle = (low + high) >>> 1;
      if ((this.#sampleRow[middle] as number) < row) low = middle;
      else high = middle;
    }
    return low;
  }

  #decode(sample: number): void {
    const first = sample * groupsPerSample;
    const count = Math.min(groupsPerSample, this.groupCount - first);
    let at = this.#sampleAt[sample] as number;
    let row = this.#sampleRow[sample] as number;
    for (let place = 0; place < count; place++) {
      this.#decodedAt[place] = at;
      this.#decodedRow[place] = row;
      row += rowsOfCode(readVarint(this.#encoded, at));
      at = varintEnd;
    }
    this.#decodedRow[count] = row;
    this.#decodedSample = sample;
  }

  #partsBefore(at: number): number {
    let first = at;
    while (this.#codeOfPartAt(first - 1) !== null) first--;
    return at - first;
  }

  /** Null where the code that ends there is of rows: it is larger, or the end of a longer one. */
  #codeOfPartAt(at: number): number | null {
    const code = this.#encoded[at] ?? rowsCodeMin;
    return code >= rowsCodeMin || (this.#encoded[at - 1] ?? 0) > 0x7f ? null : code;
  }
}

const rowsOfCode = (code: number) => Math.max(0, code - rowsCodeMin + 1);
