import { limits } from '../../protocol/limits.ts';
import { sharedBriefly } from '../../src/base/garbage.ts';
import type { RowStamp } from '../storage/document-block.ts';
import { DocumentPacker, type PackedDocuments } from '../storage/document-packer.ts';
import { blockHeaderBytes } from '../storage/segment-format.ts';
import { batchBytes } from './row-sink.ts';

/** Memory for the blocks of a batch: they may be as large as it and the rows that waited before it, and each has a header. */
export const blocksBytes = batchBytes + 2 * limits.documentBlockBytes;

/** Packs entries of rows, which come in batches, into blocks of documents that a segment is made of. */
export class RowPacker {
  readonly #stamp: RowStamp;
  readonly #packer = new DocumentPacker();

  /** `stamp`: of the file's rows. */
  constructor(stamp: RowStamp) {
    this.#stamp = stamp;
  }

  /** Says which row of the file comes next; the rows before it were ended. */
  begin(row: number): void {
    this.#packer.begin(row);
  }

  /** Packs a batch: its rows that fill no block wait for the next batch. `memory`: for the blocks. */
  pack(buffer: Buffer, rowCount: number, memory: ArrayBufferLike): PackedBlocks {
    const { firstSequence, writtenAt } = this.#stamp;
    const blocks = new PackedBlocks(memory);
    for (let left = rowCount, offset = 0; left > 0; ) {
      const stamp = { firstSequence: firstSequence + this.#packer.nextRow, writtenAt };
      const added = this.#packer.addRows(stamp, buffer, offset, left);
      left -= added.rowCount;
      offset = added.end;
      const full = left > 0 ? this.#packer.end() : null;
      if (full !== null) blocks.add(full);
    }
    return blocks;
  }

  /** Packs the rows that wait, where there are any; `memory` answers some for their block. */
  end(memory: () => ArrayBufferLike): PackedBlocks | null {
    const last = this.#packer.end();
    if (last === null) return null;
    const blocks = new PackedBlocks(memory());
    blocks.add(last);
    return blocks;
  }
}

/** Blocks of documents, one behind the other in one memory, with room for its header in front of each. */
export class PackedBlocks {
  #memory: ArrayBufferLike;
  readonly #blocks: PackedDocuments[] = [];
  #end = 0;

  /** `memory`: with anything in it; it gives way to a larger one where the blocks need that. */
  constructor(memory: ArrayBufferLike) {
    this.#memory = memory;
  }

  get memory(): ArrayBufferLike {
    return this.#memory;
  }

  /** The blocks so far, as views on the memory. */
  get blocks(): readonly PackedDocuments[] {
    return this.#blocks;
  }

  add(block: PackedDocuments): void {
    const start = this.#end + blockHeaderBytes;
    const end = start + block.bytes.length;
    if (end > this.#memory.byteLength) this.#grow(end);
    const bytes = new Uint8Array(this.#memory, start, block.bytes.length);
    bytes.set(block.bytes);
    this.#blocks.push({ ...block, bytes });
    this.#end = end;
  }

  #grow(bytes: number): void {
    const larger = sharedBriefly(Math.max(bytes, this.#memory.byteLength * 2)).buffer;
    new Uint8Array(larger).set(new Uint8Array(this.#memory, 0, this.#end));
    for (const [index, block] of this.#blocks.entries()) {
      const { byteOffset, length } = block.bytes;
      this.#blocks[index] = { ...block, bytes: new Uint8Array(larger, byteOffset, length) };
    }
    this.#memory = larger;
  }
}
