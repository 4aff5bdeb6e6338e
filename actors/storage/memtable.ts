import { assert } from '../../src/base/assert.ts';
import { documentEntryLength, documentId } from './document-batch.ts';
import { IdPresence } from './id-presence.ts';

export const liveForever = Number.POSITIVE_INFINITY;

/** A row costs about this much beside its document: the arrays, and the id in the map. */
const rowOverheadBytes = 150;

/** Finds rows without reading their documents, for whoever made it; it looks at the rows when it is asked. */
export interface RowFinder {
  /** Memory that it holds. */
  readonly bytes: number;
}

/**
 * Recent writes of one namespace: rows in the order of their sequence, and the live row of each id.
 *
 * Rows are only ever added. One that is replaced or deleted remembers by which sequence, so a snapshot (a row count and
 * a sequence) goes on seeing what it saw. Documents stay in the buffers in which they came (a log record's payload);
 * a row is a buffer and an offset.
 */
export class Memtable {
  readonly finder: RowFinder | null;
  readonly #buffers: Buffer[] = [];
  readonly #offsets: number[] = [];
  readonly #sequences: number[] = [];
  readonly #writtenAt: number[] = [];
  readonly #supersededBy: number[] = [];
  readonly #rowOfId = new Map<string, number>();
  #bytes = 0;
  #documentBytes = 0;
  /** The ids of its live rows, once it is frozen; null before. */
  #presence: IdPresence | null = null;

  constructor(finder: RowFinder | null = null) {
    this.finder = finder;
  }

  get rowCount(): number {
    return this.#offsets.length;
  }

  /** Documents that are neither replaced nor deleted. */
  get liveCount(): number {
    return this.#rowOfId.size;
  }

  /** Resident bytes, for the thread's budget. */
  get bytes(): number {
    return this.#bytes + (this.finder?.bytes ?? 0) + (this.#presence?.bytes ?? 0);
  }

  /** Bytes of all rows' documents. */
  get documentBytes(): number {
    return this.#documentBytes;
  }

  /** Adds a document; the row that held its id is superseded by it. Answers the new row. */
  add(
    buffer: Buffer,
    offset: number,
    sequence: number,
    writtenAt: number,
    id = documentId(buffer, offset),
  ): number {
    const row = this.#offsets.length;
    assert(this.#presence === null, () => 'a row for a frozen memtable');
    assert(
      row === 0 || sequence > (this.#sequences[row - 1] ?? 0),
      () => `sequence ${sequence} does not rise`,
    );
    const old = this.#rowOfId.get(id);
    if (old !== undefined) this.#supersededBy[old] = sequence;
    this.#buffers.push(buffer);
    this.#offsets.push(offset);
    this.#sequences.push(sequence);
    this.#writtenAt.push(writtenAt);
    this.#supersededBy.push(liveForever);
    this.#rowOfId.set(id, row);
    const length = documentEntryLength(buffer, offset);
    this.#documentBytes += length;
    this.#bytes += length + rowOverheadBytes;
    return row;
  }

  /** The live row of an id, or -1. */
  find(id: string): number {
    return this.#rowOfId.get(id) ?? -1;
  }

  /** Freezes the memtable: nothing is added from here on. */
  freeze(): void {
    this.#presence = new IdPresence(this.#rowOfId.keys(), this.#rowOfId.size);
  }

  /** Whether an id may be that of a live row, by its `idHash`; certainly not where the answer is false. */
  mayHold(hash: number): boolean {
    return this.#presence === null || this.#presence.mayHold(hash);
  }

  /** Marks the id's live row as gone since `sequence`. Answers whether there was one. */
  supersede(id: string, sequence: number): boolean {
    const row = this.#rowOfId.get(id);
    if (row === undefined) return false;
    this.#supersededBy[row] = sequence;
    this.#rowOfId.delete(id);
    return true;
  }

  /** Whether a reader at `sequence` sees the row. */
  isLiveAt(row: number, sequence: number): boolean {
    return (this.#sequences[row] ?? liveForever) <= sequence && (this.#supersededBy[row] ?? 0) > sequence;
  }

  isLive(row: number): boolean {
    return this.#supersededBy[row] === liveForever;
  }

  bufferOf(row: number): Buffer {
    const buffer = this.#buffers[row];
    assert(buffer !== undefined, () => `no row ${row}`);
    return buffer;
  }

  offsetOf(row: number): number {
    return this.#offsets[row] ?? 0;
  }

  /** Counts the rows whose sequence is less: the first ones, because sequences rise. */
  rowsBefore(sequence: number): number {
    let low = 0;
    let high = this.#sequences.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#sequences[middle] as number) < sequence) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  sequenceOf(row: number): number {
    return this.#sequences[row] ?? 0;
  }

  /** Microseconds since 1970. */
  writtenAtOf(row: number): number {
    return this.#writtenAt[row] ?? 0;
  }
}
