import { DataError } from '../../src/base/assert.ts';
import { viewed } from '../../src/base/viewed-bytes.ts';
import { documentEntryLength, documentHeadBytes } from './document-batch.ts';

/** Row count and first row, before the arrays. */
const headBytes = 8;
/** Sequence, written at and entry offset. */
const rowBytes = 20;
const entriesBytesInitial = 128 * 1024;

/** Bytes of the raw form of a block of that many rows and bytes of entries. */
export function documentBlockRawBytes(rowCount: number, entryBytes: number): number {
  return headBytes + rowCount * rowBytes + entryBytes;
}

/** The decoded form of one block of documents, rows in order. Read-only, shared by everyone who reads the segment. */
export class DocumentBlock {
  readonly firstRow: number;
  readonly rowCount: number;
  readonly sequences: Float64Array;
  /** Microseconds since 1970. */
  readonly writtenAt: Float64Array;
  /** Holds the entries; the functions of document-batch.ts read them at `entryOffset`. */
  readonly buffer: Buffer;
  readonly #offsets: Uint32Array;

  /**
   * `raw` begins at a multiple of 8 of its memory. Throws `DataError` where the arrays contradict each other. Another thread that has made
   * a block of the same bytes has checked them: looking at every entry takes longer than looking through all of them with a kernel.
   */
  constructor(raw: Buffer, place: string, blockOffset: number, isChecked = false) {
    const damaged = (reason: string) => new DataError(place, blockOffset, `document block: ${reason}`);
    if (raw.length < headBytes) throw damaged('too short');
    this.rowCount = raw.readUInt32LE(0);
    this.firstRow = raw.readUInt32LE(4);
    this.buffer = raw;
    const entriesStart = headBytes + this.rowCount * rowBytes;
    if (this.rowCount === 0 || entriesStart > raw.length) throw damaged('more rows than bytes');
    const at = raw.byteOffset + headBytes;
    this.sequences = new Float64Array(raw.buffer, at, this.rowCount);
    this.writtenAt = new Float64Array(raw.buffer, at + this.rowCount * 8, this.rowCount);
    this.#offsets = new Uint32Array(raw.buffer, at + this.rowCount * 16, this.rowCount);
    if (!isChecked && !this.#entriesFill(entriesStart)) throw damaged('entries do not fill it');
  }

  /** Answers where the entry of the block's `index`-th row begins in `buffer`. */
  entryOffset(index: number): number {
    return this.#offsets[index] as number;
  }

  /** Checked once per block, so that nobody who reads entries has to. */
  #entriesFill(start: number): boolean {
    let next = start;
    for (let index = 0; index < this.rowCount; index++) {
      if (this.#offsets[index] !== next || next + documentHeadBytes > this.buffer.length) return false;
      const length = documentEntryLength(this.buffer, next);
      if (length < documentHeadBytes) return false;
      next += length;
    }
    return next === this.buffer.length;
  }
}

/** What rows that were written together have in common. */
export interface RowStamp {
  /** The sequence of the first row; each of the others has one more than the row before it. */
  readonly firstSequence: number;
  /** Microseconds since 1970. */
  readonly writtenAt: number;
}

/** Room for the arrays in front of the entries; a block of more rows gets more. */
const frontBytesInitial = 128 * 1024;

/** Collects rows of one block; reused from block to block. */
export class DocumentBlockBuilder {
  readonly #sequences: number[] = [];
  readonly #writtenAt: number[] = [];
  readonly #starts: number[] = [];
  /** The entries so far, one after the other behind `#front` bytes for the arrays. Grows to the largest block and stays. */
  #memory = viewed(Buffer.allocUnsafeSlow(frontBytesInitial + entriesBytesInitial));
  #front = frontBytesInitial;
  #entryBytes = 0;

  get rowCount(): number {
    return this.#starts.length;
  }

  get firstSequence(): number {
    return this.#sequences[0] ?? 0;
  }

  /** Raw bytes of the block with more entries, of `entryBytes` in all. */
  rawBytesWith(entryBytes: number, rows = 1): number {
    return documentBlockRawBytes(this.rowCount + rows, this.#entryBytes + entryBytes);
  }

  /** Copies the entry of `length` bytes at `offset` of `buffer`. */
  add(sequence: number, writtenAt: number, buffer: Buffer, offset: number, length: number): void {
    this.#sequences.push(sequence);
    this.#writtenAt.push(writtenAt);
    this.#starts.push(this.#entryBytes);
    this.#makeRoom(this.#front, length);
    buffer.copy(this.#memory.bytes, this.#front + this.#entryBytes, offset, offset + length);
    this.#entryBytes += length;
  }

  /**
   * Copies `rowCount` entries that lie one behind the other, from `offset` to `end` of `buffer`, as rows of rising sequences. One copy
   * of many is a fraction of many copies.
   */
  addRows(
    { firstSequence, writtenAt }: RowStamp,
    buffer: Buffer,
    { offset, end, rowCount }: { readonly offset: number; readonly end: number; readonly rowCount: number },
  ): void {
    const base = this.#entryBytes - offset;
    for (let row = 0, at = offset; row < rowCount; row++) {
      this.#sequences.push(firstSequence + row);
      this.#writtenAt.push(writtenAt);
      this.#starts.push(base + at);
      at += documentEntryLength(buffer, at);
    }
    this.#makeRoom(this.#front, end - offset);
    buffer.copy(this.#memory.bytes, this.#front + this.#entryBytes, offset, end);
    this.#entryBytes += end - offset;
  }

  /** The raw form, until the next row is added; the builder is empty afterwards. */
  build(firstRow: number): Buffer {
    const rowCount = this.rowCount;
    const entriesStart = headBytes + rowCount * rowBytes;
    if (entriesStart > this.#front) this.#makeRoom(entriesStart * 2, 0);
    const { bytes, view } = this.#memory;
    const start = this.#front - entriesStart;
    view.setUint32(start, rowCount, true);
    view.setUint32(start + 4, firstRow, true);
    let at = start + headBytes;
    for (let index = 0; index < rowCount; index++, at += 8)
      view.setFloat64(at, this.#sequences[index] as number, true);
    for (let index = 0; index < rowCount; index++, at += 8)
      view.setFloat64(at, this.#writtenAt[index] as number, true);
    for (let index = 0; index < rowCount; index++, at += 4)
      view.setUint32(at, entriesStart + (this.#starts[index] as number), true);
    const raw = bytes.subarray(start, this.#front + this.#entryBytes);
    this.#clear();
    return raw;
  }

  /** For `front` bytes before the entries, and so many more behind them. */
  #makeRoom(front: number, bytes: number): void {
    const { bytes: memory } = this.#memory;
    const end = this.#front + this.#entryBytes;
    if (front === this.#front && end + bytes <= memory.length) return;
    const larger = Buffer.allocUnsafeSlow(
      Math.max(front + this.#entryBytes + bytes, front === this.#front ? memory.length * 2 : 0),
    );
    memory.copy(larger, front, this.#front, end);
    this.#memory = viewed(larger);
    this.#front = front;
  }

  #clear(): void {
    this.#sequences.length = 0;
    this.#writtenAt.length = 0;
    this.#starts.length = 0;
    this.#entryBytes = 0;
  }
}
