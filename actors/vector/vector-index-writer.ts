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

const blockBytesMax = 16 * 1024;
const runBytesMax = 1024 * 1024;

/**
 * Writes the vectors of a segment beside its rows, apart from the documents: who looks for the nearest reads numbers and
 * nothing else. Blocks are small, for a graph's candidates are compared one by one, and stand together in runs, so that who
 * reads documents does so in few GETs. Memory: one run.
 */
export function vectorIndexWriter(): RowIndexWriter {
  const writer = new VectorIndexWriter();
  return {
    section: vectorsSection,
    add: (buffer, offset) => writer.add(buffer, offset),
    get isFull() {
      return writer.isRunFull;
    },
    writePart: (append) => writer.writeRun(append),
    finish: (append) => writer.finish(append),
  };
}

class VectorIndexWriter {
  readonly #written: WrittenVectors[] = [];
  /** The blocks of the run that is being filled; the last one takes the next vector. */
  readonly #run: VectorBlockBuilder[] = [];
  #dims = 0;
  #rowCount = 0;

  get isRunFull(): boolean {
    return this.#run.length * blockBytesMax >= runBytesMax && this.#run.at(-1)?.isFull === true;
  }

  add(buffer: Buffer, offset: number): void {
    const row = this.#rowCount++;
    const dims = documentDims(buffer, offset);
    if (dims === 0) return;
    if (this.#dims === 0) this.#dims = dims;
    assert(dims === this.#dims, () => `vectors of ${dims} and of ${this.#dims} numbers in one segment`);
    this.#builder().add(row, documentVectorBytes(buffer, offset));
  }

  #builder(): VectorBlockBuilder {
    const last = this.#run.at(-1);
    if (last !== undefined && !last.isFull) return last;
    const countMax = Math.max(1, Math.floor(blockBytesMax / (4 * (this.#dims + 1))));
    const builder = new VectorBlockBuilder(this.#dims, countMax);
    this.#run.push(builder);
    return builder;
  }

  async writeRun(append: AppendBlock): Promise<void> {
    for (const builder of this.#run.splice(0)) {
      const { count } = builder;
      const firstRow = builder.firstRow();
      // Numbers that say something are hardly smaller compressed.
      const place = await append(blockKinds.vectors, builder.take(), { compress: false });
      this.#written.push({ ...place, count, firstRow });
    }
  }

  async finish(append: AppendBlock): Promise<Uint8Array | null> {
    await this.writeRun(append);
    if (this.#written.length === 0) return null;
    const raw = encodeVectorDirectory(this.#written);
    const directory = await append(blockKinds.vectorDirectory, raw, { compress: true });
    const count = this.#written.reduce((sum, block) => sum + block.count, 0);
    return encodeVectorRoot({ directory, dims: this.#dims, rowCount: this.#rowCount, count });
  }
}
