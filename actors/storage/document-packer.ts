import { limits } from '../../protocol/limits.ts';
import { DocumentBlockBuilder } from './document-block.ts';
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

  /** Says which row of the segment comes next. No row waits for its block to be full. */
  begin(row: number): void {
    this.#nextRow = row;
  }

  /** Answers the block that ends before an entry of `length` bytes, null where it has room for it. The block's bytes stay until the next row. */
  makeRoom(length: number): PackedDocuments | null {
    const isFull = this.#builder.rowCount > 0 && this.#builder.rawBytesWith(length) > this.#blockBytes;
    return isFull ? this.end() : null;
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
