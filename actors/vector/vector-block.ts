import { DataError } from '../../src/base/assert.ts';
import type { Block } from '../storage/block-fetch.ts';

/**
 * Vectors of consecutive rows, those of them that have one, little-endian:
 *
 *   u32 vectors | u32 dims | u32 row of each, ascending | float32 × dims of each
 *
 * Nothing to parse: readers look at the numbers where they lie.
 */
export interface VectorBlock {
  readonly rows: Uint32Array;
  /** Those of the first row, of the second one, and so on. */
  readonly values: Float32Array;
}

/** Where the row's vector begins in `values`; -1 where it has none. */
export function startOfRow({ rows, values }: VectorBlock, row: number): number {
  let [low, high] = [0, rows.length - 1];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((rows[middle] as number) < row) low = middle + 1;
    else high = middle;
  }
  return rows[low] === row ? low * (values.length / rows.length) : -1;
}

const headBytes = 8;
const numberBytes = 4;

/** Collects the vectors of one block. */
export class VectorBlockBuilder {
  readonly #dims: number;
  readonly #rows: Uint32Array;
  readonly #values: Uint8Array;
  #count = 0;

  /** Makes room for `countMax` vectors of `dims` numbers. */
  constructor(dims: number, countMax: number) {
    this.#dims = dims;
    this.#rows = new Uint32Array(countMax);
    this.#values = new Uint8Array(countMax * dims * numberBytes);
  }

  get count(): number {
    return this.#count;
  }

  get isFull(): boolean {
    return this.#count === this.#rows.length;
  }

  /** `bytes` are the vector's numbers as they are stored in a document. */
  add(row: number, bytes: Uint8Array): void {
    this.#values.set(bytes, this.#count * this.#dims * numberBytes);
    this.#rows[this.#count++] = row;
  }

  firstRow(): number {
    return this.#rows[0] as number;
  }

  /** The block's bytes; the builder is empty then. */
  take(): Uint8Array {
    const rowBytes = this.#count * numberBytes;
    const raw = new Uint8Array(headBytes + rowBytes * (1 + this.#dims));
    new Uint32Array(raw.buffer, 0, 2).set([this.#count, this.#dims]);
    raw.set(new Uint8Array(this.#rows.buffer, 0, rowBytes), headBytes);
    raw.set(this.#values.subarray(0, rowBytes * this.#dims), headBytes + rowBytes);
    this.#count = 0;
    return raw;
  }
}

/** What a block of the index says of itself. Throws `DataError` where its bytes say something else. */
export function vectorBlock(
  block: Block,
  expected: {
    readonly objectKey: string;
    readonly count: number;
    readonly dims: number;
    readonly rowCount: number;
  },
): VectorBlock {
  block.parsed ??= readBlock(block, expected);
  return block.parsed as VectorBlock;
}

function readBlock(
  { raw, offset }: Block,
  { objectKey, count, dims, rowCount }: Parameters<typeof vectorBlock>[1],
): VectorBlock {
  const damaged = (reason: string) => new DataError(objectKey, offset, `vectors: ${reason}`);
  const rowBytes = count * numberBytes;
  if (raw.length !== headBytes + rowBytes * (1 + dims)) throw damaged('of another length');
  if (raw.readUInt32LE(0) !== count || raw.readUInt32LE(4) !== dims) throw damaged('of another number');
  const rows = new Uint32Array(raw.buffer, raw.byteOffset + headBytes, count);
  let last = -1;
  for (const row of rows) {
    if (row <= last || row >= rowCount) throw damaged('rows out of order');
    last = row;
  }
  return { rows, values: new Float32Array(raw.buffer, raw.byteOffset + headBytes + rowBytes, count * dims) };
}
