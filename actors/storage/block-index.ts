import { type BlockPlace, blockEntry, blockKinds } from './segment-format.ts';

/** Where the document blocks of a segment lie, as columns: about 32 bytes a block, held while the segment is open. */
export class BlockIndex {
  readonly count: number;
  readonly #firstRow: Uint32Array;
  readonly #rowCount: Uint32Array;
  readonly #firstSequence: Float64Array;
  readonly #offset: Float64Array;
  readonly #length: Uint32Array;

  /** `pages` are the raw pages of the section `blocks`, in order. */
  constructor(count: number, pages: readonly Buffer[]) {
    this.count = count;
    this.#firstRow = new Uint32Array(count);
    this.#rowCount = new Uint32Array(count);
    this.#firstSequence = new Float64Array(count);
    this.#offset = new Float64Array(count);
    this.#length = new Uint32Array(count);
    let index = 0;
    for (const page of pages) {
      for (let at = 0; at < page.length; at += blockEntry.bytes) this.#set(index++, page, at);
    }
  }

  get bytes(): number {
    return this.count * 28;
  }

  place(index: number): BlockPlace {
    return {
      offset: this.#offset[index] as number,
      length: this.#length[index] as number,
      kind: blockKinds.documents,
    };
  }

  firstRow(index: number): number {
    return this.#firstRow[index] as number;
  }

  rowCount(index: number): number {
    return this.#rowCount[index] as number;
  }

  firstSequence(index: number): number {
    return this.#firstSequence[index] as number;
  }

  /** The block that holds the row; the last one for rows beyond the end. */
  blockOfRow(row: number): number {
    return lastAtMost(this.#firstRow, row);
  }

  /** The last block whose first sequence is at most `sequence`; 0 where all are above it. */
  blockOfSequence(sequence: number): number {
    return lastAtMost(this.#firstSequence, sequence);
  }

  #set(index: number, page: Buffer, at: number): void {
    this.#firstRow[index] = page.readUInt32LE(at + blockEntry.firstRow);
    this.#rowCount[index] = page.readUInt32LE(at + blockEntry.rowCount);
    this.#firstSequence[index] = page.readDoubleLE(at + blockEntry.firstSequence);
    this.#offset[index] = page.readUIntLE(at + blockEntry.offset, 6);
    this.#length[index] = page.readUInt32LE(at + blockEntry.length);
  }
}

/** Index of the last value that is at most `wanted`, or 0. */
function lastAtMost(ascending: Uint32Array | Float64Array, wanted: number): number {
  let low = 0;
  let high = ascending.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >>> 1;
    if ((ascending[middle] as number) <= wanted) low = middle;
    else high = middle - 1;
  }
  return low;
}
