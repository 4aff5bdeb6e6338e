import { DataError } from '../../src/base/assert.ts';
import { OpenedOnce } from '../../src/base/single-flight.ts';
import type { Block, ReadTally } from '../storage/block-fetch.ts';
import {
  type BlockPlace,
  blockKinds,
  type SegmentToc,
  sectionOf,
  viewOf,
} from '../storage/segment-format.ts';
import type { SegmentReader } from '../storage/segment-reader.ts';
import { type VectorBlock, vectorBlock } from './vector-block.ts';

export const vectorsSection = 'vectors';
export const vectorIndexVersion = 2;

const rootBytes = 22;
const entryBytes = 20;

export interface WrittenVectors {
  readonly offset: number;
  readonly length: number;
  readonly count: number;
  readonly firstRow: number;
}

export interface VectorRoot {
  readonly directory: { readonly offset: number; readonly length: number };
  readonly dims: number;
  readonly rowCount: number;
  /** Rows that have a vector. */
  readonly count: number;
}

export function encodeVectorRoot({ directory, dims, rowCount, count }: VectorRoot): Buffer {
  const root = Buffer.alloc(rootBytes);
  root.writeUInt16LE(vectorIndexVersion, 0);
  root.writeUInt16LE(dims, 2);
  root.writeUInt32LE(rowCount, 4);
  root.writeUInt32LE(count, 8);
  root.writeUIntLE(directory.offset, 12, 6);
  root.writeUInt32LE(directory.length, 18);
  return root;
}

export function encodeVectorDirectory(blocks: readonly WrittenVectors[]): Buffer {
  const raw = Buffer.alloc(4 + blocks.length * entryBytes);
  raw.writeUInt32LE(blocks.length, 0);
  blocks.forEach(({ offset, length, count, firstRow }, at) => {
    const entry = 4 + at * entryBytes;
    raw.writeDoubleLE(offset, entry);
    raw.writeUInt32LE(length, entry + 8);
    raw.writeUInt32LE(count, entry + 12);
    raw.writeUInt32LE(firstRow, entry + 16);
  });
  return raw;
}

/** Where a block of vectors lies, how many it has, and the row of the first. */
export type VectorBlockPlace = BlockPlace & { readonly count: number; readonly firstRow: number };

/**
 * The section `vectors` of a segment that has any: the vectors of its documents, in blocks (vector-block.ts) that lie among the
 * documents', and a directory of them, one block, little-endian:
 *
 *   u32 blocks | for each: f64 offset in the object | u32 length | u32 vectors | u32 row of the first
 *
 * The root, which the table of contents carries: u16 version | u16 dims | u32 rows of the segment | u32 vectors | u48 offset
 * and u32 length of the directory.
 */
export class VectorIndexReader {
  readonly dims: number;
  readonly count: number;
  /** In the order of their rows. */
  readonly blocks: readonly VectorBlockPlace[];
  readonly #objectKey: string;
  readonly #rowCount: number;

  constructor(
    raw: Buffer,
    { dims, rowCount, count: vectors }: VectorRoot,
    place: { readonly name: string; readonly offset: number },
  ) {
    const damaged = (reason: string) => new DataError(place.name, place.offset, `vectors: ${reason}`);
    if (raw.length < 4 || raw.length !== 4 + raw.readUInt32LE(0) * entryBytes)
      throw damaged('a directory of another length');
    this.dims = dims;
    this.count = vectors;
    this.#objectKey = place.name;
    this.#rowCount = rowCount;
    this.blocks = Array.from({ length: raw.readUInt32LE(0) }, (_, at) => {
      const entry = 4 + at * entryBytes;
      const count = raw.readUInt32LE(entry + 12);
      if (count === 0) throw damaged('an empty block');
      return {
        offset: raw.readDoubleLE(entry),
        length: raw.readUInt32LE(entry + 8),
        count,
        firstRow: raw.readUInt32LE(entry + 16),
        kind: blockKinds.vectors,
      };
    });
    if (this.blocks.reduce((sum, { count }) => sum + count, 0) !== vectors)
      throw damaged('a directory of another number of vectors');
    if (this.blocks.some(({ firstRow }, at) => firstRow <= (this.blocks[at - 1]?.firstRow ?? -1)))
      throw damaged('blocks out of order');
  }

  /** Which of `blocks` has the row's vector, where the row has one. */
  blockOfRow(row: number): number {
    let [low, high] = [0, this.blocks.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if ((this.blocks[middle] as VectorBlockPlace).firstRow <= row) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** What one of `blocks`, read, holds. Throws `DataError`. */
  vectorsOf(block: Block, { count }: { readonly count: number }): VectorBlock {
    return vectorBlock(block, {
      objectKey: this.#objectKey,
      count,
      dims: this.dims,
      rowCount: this.#rowCount,
    });
  }
}

/** They go with their segment's reader. `none` where no row has a vector: there is no section then. */
const indexes = new OpenedOnce<SegmentReader, VectorIndexReader | 'none'>();

/** One GET the first time, which may run beside other first reads. */
export function openVectors(reader: SegmentReader, tally: ReadTally): Promise<VectorIndexReader | 'none'> {
  return indexes.open(reader, async () => {
    const section = sectionOf(reader.toc, vectorsSection);
    if (section === null) return 'none';
    const root = decodeRoot(reader, section.root);
    const place = { ...root.directory, kind: blockKinds.vectorDirectory };
    const { raw } = await reader.blocks.fetchOne(place, tally);
    return new VectorIndexReader(raw, root, { name: reader.objectKey, offset: place.offset });
  });
}

/** How many rows of a segment have a vector, and how long they are; from its table of contents, without a read. */
export function vectorsOf(toc: SegmentToc): { readonly count: number; readonly dims: number } {
  const root = sectionOf(toc, vectorsSection)?.root;
  if (root === null || root === undefined || root.length !== rootBytes) return { count: 0, dims: 0 };
  const view = viewOf(root);
  return { count: view.readUInt32LE(8), dims: view.readUInt16LE(2) };
}

function decodeRoot(reader: SegmentReader, bytes: Uint8Array | null): VectorRoot {
  const damaged = (reason: string) => new DataError(reader.objectKey, 0, `vectors: ${reason}`);
  if (bytes === null || bytes.length !== rootBytes) throw damaged('a root of another length');
  const root = viewOf(bytes);
  if (root.readUInt16LE(0) !== vectorIndexVersion)
    throw damaged(`version ${root.readUInt16LE(0)} is not known`);
  const rowCount = root.readUInt32LE(4);
  if (rowCount !== reader.rowCount) throw damaged('of other rows');
  const directory = { offset: root.readUIntLE(12, 6), length: root.readUInt32LE(18) };
  return { directory, dims: root.readUInt16LE(2), rowCount, count: root.readUInt32LE(8) };
}
