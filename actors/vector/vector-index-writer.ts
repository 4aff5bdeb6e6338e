import { assert } from '../../src/base/assert.ts';
import { documentDims, documentVectorBytes } from '../storage/document-batch.ts';
import { blockKinds } from '../storage/segment-format.ts';
import type { AppendBlock, RowIndexWriter } from '../storage/segment-writer.ts';
import { VectorBlockBuilder } from './vector-block.ts';
import {
  encodeVectorDirectory,
  encodeVectorRoot,
  vectorsSection,
  type WrittenVectors,
} from './vector-index-reader.ts';

/**
 * Writes the vectors of a segment beside its rows, apart from the documents: who looks for the nearest reads numbers and
 * nothing else. Memory: one block.
 */
const blockBytesMax = 60 * 1024;

export function vectorIndexWriter(): RowIndexWriter {
  const writer = new VectorIndexWriter();
  return {
    section: vectorsSection,
    add: (buffer, offset) => writer.add(buffer, offset),
    get isFull() {
      return writer.isBlockFull;
    },
    writePart: (append) => writer.writeBlock(append),
    finish: (append) => writer.finish(append),
  };
}

class VectorIndexWriter {
  readonly #written: WrittenVectors[] = [];
  /** Made with the first vector. */
  #builder: VectorBlockBuilder | null = null;
  #dims = 0;
  #rowCount = 0;

  get isBlockFull(): boolean {
    return this.#builder?.isFull === true;
  }

  add(buffer: Buffer, offset: number): void {
    const row = this.#rowCount++;
    const dims = documentDims(buffer, offset);
    if (dims === 0) return;
    if (this.#builder === null) {
      this.#dims = dims;
      this.#builder = new VectorBlockBuilder(dims, Math.max(1, Math.floor(blockBytesMax / (4 * (dims + 1)))));
    }
    assert(dims === this.#dims, () => `vectors of ${dims} and of ${this.#dims} numbers in one segment`);
    this.#builder.add(row, documentVectorBytes(buffer, offset));
  }

  async writeBlock(append: AppendBlock): Promise<void> {
    const builder = this.#builder;
    if (builder === null || builder.count === 0) return;
    const { count } = builder;
    const firstRow = builder.firstRow();
    // Numbers that say something are hardly smaller compressed.
    const place = await append(blockKinds.vectors, builder.take(), { compress: false });
    this.#written.push({ ...place, count, firstRow });
  }

  async finish(append: AppendBlock): Promise<Uint8Array | null> {
    await this.writeBlock(append);
    if (this.#written.length === 0) return null;
    const raw = encodeVectorDirectory(this.#written);
    const directory = await append(blockKinds.vectorDirectory, raw, { compress: true });
    return encodeVectorRoot({ directory, dims: this.#dims, rowCount: this.#rowCount });
  }
}
