import { DataError } from '../../src/base/assert.ts';
import { OpenedOnce } from '../../src/base/single-flight.ts';
import type { Block, ReadReport } from '../storage/block-fetch.ts';
import { type BlockPlace, blockKinds, sectionOf } from '../storage/segment-format.ts';
import type { SegmentReader } from '../storage/segment-reader.ts';
import { type VectorBlock, vectorBlock } from './vector-block.ts';

/**
 * The section `vectors` of a segment that has any: the vectors of its documents, in blocks (vector-block.ts) that lie among the
 * documents', and a directory of them, one block, little-endian:
 *
 *   u32 blocks | for each: f64 offset in the object | u32 length | u32 vectors | u32 row of the first
 *
 * The root, which the table of contents carries: u16 version | u16 dims | u32 rows of the segment | u48 offset and u32
 * length of the directory.
 */
export const vectorsSection = 'vectors';
export const vectorIndexVersion = 1;

const rootBytes = 18;
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
}

export function encodeVectorRoot({ directory, dims, rowCount }: VectorRoot): Buffer {
  const root = Buffer.alloc(rootBytes);
  root.writeUInt16LE(vectorIndexVersion, 0);
  root.writeUInt16LE(dims, 2);
  root.writeUInt32LE(rowCount, 4);
  root.writeUIntLE(directory.offset, 8, 6);
  root.writeUInt32LE(directory.length, 14);
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

export class VectorIndexReader {
  readonly dims: number;
  readonly blocks: readonly (BlockPlace & { readonly count: number })[];
  readonly #objectKey: string;
  readonly #rowCount: number;

  constructor(
    raw: Buffer,
    { dims, rowCount }: VectorRoot,
    place: { readonly name: string; readonly offset: number },
  ) {
    const damaged = (reason: string) => new DataError(place.name, place.offset, `vectors: ${reason}`);
    if (raw.length < 4 || raw.length !== 4 + raw.readUInt32LE(0) * entryBytes)
      throw damaged('a directory of another length');
    this.dims = dims;
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
        kind: blockKinds.vectors,
      };
    });
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
export function openVectors(reader: SegmentReader, report: ReadReport): Promise<VectorIndexReader | 'none'> {
  return indexes.open(reader, async () => {
    const section = sectionOf(reader.toc, vectorsSection);
    if (section === null) return 'none';
    const root = decodeRoot(reader, section.root);
    const place = { ...root.directory, kind: blockKinds.vectorDirectory };
    const { raw } = await reader.blocks.fetchOne(place, report);
    return new VectorIndexReader(raw, root, { name: reader.objectKey, offset: place.offset });
  });
}

function decodeRoot(reader: SegmentReader, bytes: Uint8Array | null): VectorRoot {
  const damaged = (reason: string) => new DataError(reader.objectKey, 0, `vectors: ${reason}`);
  if (bytes === null || bytes.length !== rootBytes) throw damaged('a root of another length');
  const root = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (root.readUInt16LE(0) !== vectorIndexVersion)
    throw damaged(`version ${root.readUInt16LE(0)} is not known`);
  const rowCount = root.readUInt32LE(4);
  if (rowCount !== reader.rowCount) throw damaged('of other rows');
  const directory = { offset: root.readUIntLE(8, 6), length: root.readUInt32LE(14) };
  return { directory, dims: root.readUInt16LE(2), rowCount };
}
