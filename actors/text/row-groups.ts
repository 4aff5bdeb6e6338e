import { DataError } from '../../src/base/assert.ts';
import { readVarint, varintBytesMax, varintEnd, writeVarint } from './varint.ts';

/**
 * Row groups: what the text index points to. Consecutive rows until there are about 4 KB of text, or one larger document.
 * Finer groups make the index larger, coarser ones make more documents be read for a match.
 *
 * Encoded: the number of rows of each group as a varint, in order; nearly always one byte a group.
 */
export const groupTextBytes = 4096;
/** A group of empty documents is still work to verify. */
const groupRowsMax = 256;

/** Puts rows into groups, in their order. */
export class RowGroupsBuilder {
  #encoded = new Uint8Array(1024);
  #encodedBytes = 0;
  #groupCount = 0;
  #rowCount = 0;
  /** Of the open group. */
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
    if (this.#encodedBytes + varintBytesMax > this.#encoded.length) {
      const larger = new Uint8Array(this.#encoded.length * 2);
      larger.set(this.#encoded);
      this.#encoded = larger;
    }
    this.#encodedBytes = writeVarint(this.#encoded, this.#encodedBytes, this.#openRows);
    this.#groupCount++;
    this.#openRows = 0;
    this.#openBytes = 0;
  }

  /** A view, until the next call of `close`. */
  encoded(): Uint8Array {
    return this.#encoded.subarray(0, this.#encodedBytes);
  }
}

/** Groups between two places that are known without decoding. */
const groupsPerSample = 64;

/** The groups of a segment: as encoded, and for every 64th group where its code begins and which row is its first. */
export class RowGroups {
  readonly groupCount: number;
  readonly rowCount: number;
  readonly #encoded: Uint8Array;
  readonly #sampleAt: Uint32Array;
  readonly #sampleRow: Uint32Array;

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
    for (let group = 0; group < expected.groupCount; group++) {
      if (group % groupsPerSample === 0) {
        this.#sampleAt[group / groupsPerSample] = at;
        this.#sampleRow[group / groupsPerSample] = row;
      }
      const rows = readVarint(encoded, at);
      at = varintEnd;
      if (rows === 0) throw damaged('an empty group');
      row += rows;
      if (row > expected.rowCount) throw damaged('more rows than the segment has');
    }
    if (at !== encoded.length || row !== expected.rowCount) throw damaged('they end elsewhere');
  }

  /** The first row of a group; `rowCount` for the group after the last. */
  firstRow(group: number): number {
    if (group >= this.groupCount) return this.rowCount;
    const sample = Math.floor(group / groupsPerSample);
    let at = this.#sampleAt[sample] as number;
    let row = this.#sampleRow[sample] as number;
    for (let left = group % groupsPerSample; left > 0; left--) {
      row += readVarint(this.#encoded, at);
      at = varintEnd;
    }
    return row;
  }

  groupOfRow(wanted: number): number {
    let low = 0;
    let high = this.#sampleRow.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if ((this.#sampleRow[middle] as number) <= wanted) low = middle;
      else high = middle - 1;
    }
    let group = low * groupsPerSample;
    let at = this.#sampleAt[low] as number;
    let row = this.#sampleRow[low] as number;
    for (;;) {
      row += readVarint(this.#encoded, at);
      at = varintEnd;
      if (row > wanted || group + 1 >= this.groupCount) return group;
      group++;
    }
  }
}
