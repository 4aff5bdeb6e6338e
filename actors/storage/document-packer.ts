import { limits } from '../../protocol/limits.ts';
import { documentEntryLength } from './document-batch.ts';
import { DocumentBlockBuilder, type RowStamp } from './document-block.ts';
import { type PackedBlock, packBlock } from './segment-format.ts';

/** A block of documents that is packed, and lies nowhere yet. */
export interface PackedDocuments extends PackedBlock {
  readonly firstRow: number;
  readonly rowCount: number;
  readonly firstSequence: number;
}

/** Packs rows into blocks of documents: a block ends where the next row would make it larger than `blockBytes`. */
export class DocumentPacker {
  readonly #builder = new DocumentBlockBuilder();
  readonly #blockBytes: number;
  #nextRow = 0;

  /** `blockBytes`: of a block's raw form; a row that alone is larger is a block. */
  constructor(blockBytes: number = limits.documentBlockBytes) {
    this.#blockBytes = blockBytes;
  }

  /** The row of the segment that comes next. */
  get nextRow(): number {
    return this.#nextRow;
  }

  /** Says which row of the segment comes next. No row waits for its block to be full. */
  begin(row: number): void {
    this.#nextRow = row;
  }

  /** Answers the block that ends before an entry of `length` bytes, null where it has room for it. The block's bytes stay until the next row. */
  makeRoom(length: number): PackedDocuments | null {
    return this.#hasRoom(length, 1) ? null : this.end();
  }

  /**
   * Copies entries that lie one behind the other, from `offset` of `buffer` on, as the next rows: of `rowCount` those for which the block has
   * room. Answers how many, and where the next one begins.
   */
  addRows(
    stamp: RowStamp,
    buffer: Buffer,
    offset: number,
    rowCount: number,
  ): { readonly rowCount: number; readonly end: number } {
    let [rows, end] = [0, offset];
    while (rows < rowCount) {
      const next = end + documentEntryLength(buffer, end);
      if (!this.#hasRoom(next - offset, rows + 1)) break;
      end = next;
      rows++;
    }
    this.#builder.addRows(stamp, buffer, { offset, end, rowCount: rows });
    this.#nextRow += rows;
    return { rowCount: rows, end };
  }

  /** Whether the block takes so many rows more, of `bytes` in all. A row that is alone in its block always has room. */
  #hasRoom(bytes: number, rows: number): boolean {
    return this.#builder.rowCount + rows === 1 || this.#builder.rawBytesWith(bytes, rows) <= this.#blockBytes;
  }

  /** Copies the entry of `length` bytes at `offset` of `buffer` as the next row; `makeRoom` was asked for it. Hot: once a row. */
  add(sequence: number, writtenAt: number, buffer: Buffer, offset: number, length: number): void {
    this.#builder.add(sequence, writtenAt, buffer, offset, length);
    this.#nextRow++;
  }

  /** Answers the block of the rows that wait, null where none does. Its bytes stay until the next row. */
  end(): PackedDocuments | null {
    const { rowCount, firstSequence } = this.#builder;
    if (rowCount === 0) return null;
    const firstRow = this.#nextRow - rowCount;
    return { ...packBlock(this.#builder.build(firstRow)), firstRow, rowCount, firstSequence };
  }
}
