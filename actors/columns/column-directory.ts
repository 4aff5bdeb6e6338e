import { isUtf8 } from 'node:buffer';
import { DataError } from '../../src/base/assert.ts';
import { type BlockPlace, blockHeaderBytes, blockKinds } from '../storage/segment-format.ts';
import { chunkRowsMax, kindBound, valueKinds } from './value-kinds.ts';

export const columnsVersion = 2;

const headBytes = 16;
const chunkBytes = 16;
export const columnEntryBytes = 96;
const rootBytes = 16;
const everyKeyFlag = 1;

export interface WrittenColumn {
  readonly key: string;
  readonly offset: number;
  readonly length: number;
  readonly statistics: ColumnStatistics;
}

export interface ColumnStatistics {
  /** Entries of each kind; of `missing` is not asked. */
  readonly counts: Uint32Array;
  readonly integerMin: bigint;
  readonly integerMax: bigint;
  readonly floatMin: number;
  readonly floatMax: number;
  readonly distinctStrings: number;
}

export interface WrittenChunk {
  readonly rowCount: number;
  readonly everyKey: boolean;
  readonly columns: readonly WrittenColumn[];
}

export function encodeDirectory(chunks: readonly WrittenChunk[]): Buffer {
  const keys = numberKeys(chunks);
  const names = [...keys.keys()].map((key) => Buffer.from(key));
  const keyBytes = names.reduce((sum, name) => sum + name.length, 0);
  const columnCount = chunks.reduce((sum, { columns }) => sum + columns.length, 0);
  const columnsAt = headBytes + chunks.length * chunkBytes;
  const keysAt = columnsAt + columnCount * columnEntryBytes;
  const raw = Buffer.alloc(keysAt + names.length * 4 + keyBytes);
  [chunks.length, columnCount, names.length, keyBytes].forEach((value, at) => {
    raw.writeUInt32LE(value, at * 4);
  });
  let firstRow = 0;
  let column = 0;
  chunks.forEach(({ rowCount, everyKey, columns }, at) => {
    [firstRow, rowCount, column, everyKey ? everyKeyFlag : 0].forEach((value, field) => {
      raw.writeUInt32LE(value, headBytes + at * chunkBytes + field * 4);
    });
    const numbered = columns.map((each) => ({ each, key: keys.get(each.key) as number }));
    for (const { each, key } of numbered.sort((a, b) => a.key - b.key))
      writeColumn(raw, columnsAt + column++ * columnEntryBytes, each, key);
    firstRow += rowCount;
  });
  let end = 0;
  names.forEach((name, at) => {
    raw.set(name, keysAt + names.length * 4 + end);
    end += name.length;
    raw.writeUInt32LE(end, keysAt + at * 4);
  });
  return raw;
}

function numberKeys(chunks: readonly WrittenChunk[]): Map<string, number> {
  const keys = new Map<string, number>();
  for (const { columns } of chunks)
    for (const { key } of columns) if (!keys.has(key)) keys.set(key, keys.size);
  return keys;
}

function writeColumn(raw: Buffer, at: number, column: WrittenColumn, key: number): void {
  const { counts, integerMin, integerMax, floatMin, floatMax, distinctStrings } = column.statistics;
  raw.writeDoubleLE(column.offset, at);
  raw.writeUInt32LE(column.length, at + 8);
  raw.writeUInt32LE(key, at + 12);
  for (let kind = 1; kind < kindBound; kind++) raw.writeUInt32LE(counts[kind] as number, at + 12 + kind * 4);
  raw.writeBigInt64LE(integerMin, at + 56);
  raw.writeBigInt64LE(integerMax, at + 64);
  raw.writeDoubleLE(floatMin, at + 72);
  raw.writeDoubleLE(floatMax, at + 80);
  raw.writeUInt32LE(distinctStrings, at + 88);
}

/** A chunk's column of a key. */
export interface DirectoryColumn extends ColumnStatistics {
  readonly place: BlockPlace;
}

/**
 * Where the columns of a segment lie, and what is known of them without reading them. Rows stand in chunks, consecutive
 * ones of up to `chunkRowsMax`, and a chunk has a column for each of its most frequent keys.
 *
 * The directory is one block, little-endian, nothing to parse:
 *
 *   u32 chunks | u32 columns | u32 keys | u32 bytes of keys
 *   a chunk: u32 first row | u32 rows | u32 number of its first column | u32 1 where every key of its rows has a column
 *   a column, those of a chunk by ascending key: f64 offset of its block in the object | u32 length | u32 number of its key |
 *     u32 entries of each kind 1 … 10 | i64 least and i64 greatest integer, date or time | f64 least and f64 greatest float | u32 distinct
 *     strings | u32 zero
 *   a key: u32 end in what follows; UTF-8 of all keys
 *
 * The root, which the table of contents carries: place of the directory, rows of the segment, version of the format. Where
 * no row has any key there is no directory, and its length is 0.
 */
export class ColumnDirectory {
  readonly chunkCount: number;
  readonly #raw: Buffer;
  readonly #chunks: Uint32Array;
  readonly #columnsAt: number;
  readonly #columnCount: number;
  readonly #keys: ReadonlyMap<string, number>;
  /** By their numbers. */
  #names: readonly string[] | null = null;

  /** `raw` begins at a multiple of 8 of its memory. Throws `DataError` for anything but chunks of that many rows. */
  constructor(
    raw: Buffer,
    rowCount: number,
    { name, offset }: { readonly name: string; readonly offset: number },
  ) {
    const damaged = (reason: string) => new DataError(name, offset, `columns: ${reason}`);
    if (raw.length < headBytes) throw damaged('shorter than their head');
    const [chunkCount, columnCount, keyCount, keyBytes] = [0, 4, 8, 12].map((at) => raw.readUInt32LE(at)) as [
      number,
      number,
      number,
      number,
    ];
    this.chunkCount = chunkCount;
    this.#columnsAt = headBytes + chunkCount * chunkBytes;
    const keysAt = this.#columnsAt + columnCount * columnEntryBytes;
    if (keysAt + keyCount * 4 + keyBytes !== raw.length) throw damaged('their parts do not fill them');
    this.#raw = raw;
    this.#chunks = new Uint32Array(raw.buffer, raw.byteOffset + headBytes, chunkCount * 4);
    this.#columnCount = columnCount;
    this.#keys = readKeys(raw, { keysAt, keyCount }, damaged);
    if (this.#keys.size !== keyCount) throw damaged('a key twice');
    this.#checkChunks(rowCount, damaged);
    this.#checkColumns(offset, keyCount, damaged);
  }

  firstRow(chunk: number): number {
    return this.#chunks[chunk * 4] as number;
  }

  rowCount(chunk: number): number {
    return this.#chunks[chunk * 4 + 1] as number;
  }

  /** Whether a key without a column is a key that no row of the chunk has. */
  hasEveryKey(chunk: number): boolean {
    return this.#chunks[chunk * 4 + 3] === everyKeyFlag;
  }

  chunkOfRow(row: number): number {
    let low = 0;
    let high = this.chunkCount - 1;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if (this.firstRow(middle) <= row) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** Null where the chunk has no column of the key. */
  column(chunk: number, key: string): DirectoryColumn | null {
    const wanted = this.#keys.get(key);
    if (wanted === undefined) return null;
    let low = this.#chunks[chunk * 4 + 2] as number;
    let high = this.#columnEnd(chunk) - 1;
    while (low <= high) {
      const middle = (low + high) >>> 1;
      const found = this.#keyOf(middle);
      if (found === wanted) return this.#read(middle, this.rowCount(chunk));
      if (found < wanted) low = middle + 1;
      else high = middle - 1;
    }
    return null;
  }

  /** The columns of a chunk, each with its key. */
  *columnsOf(chunk: number): Generator<readonly [string, DirectoryColumn], void, void> {
    this.#names ??= [...this.#keys.keys()];
    const end = this.#columnEnd(chunk);
    for (let column = this.#chunks[chunk * 4 + 2] as number; column < end; column++)
      yield [this.#names[this.#keyOf(column)] as string, this.#read(column, this.rowCount(chunk))];
  }

  #columnEnd(chunk: number): number {
    return chunk + 1 < this.chunkCount ? (this.#chunks[chunk * 4 + 6] as number) : this.#columnCount;
  }

  #keyOf(column: number): number {
    return this.#raw.readUInt32LE(this.#columnsAt + column * columnEntryBytes + 12);
  }

  #read(column: number, rowCount: number): DirectoryColumn {
    const raw = this.#raw;
    const at = this.#columnsAt + column * columnEntryBytes;
    const counts = new Uint32Array(kindBound);
    let entries = 0;
    for (let kind = 1; kind < kindBound; kind++) {
      counts[kind] = raw.readUInt32LE(at + 12 + kind * 4);
      entries += counts[kind] as number;
    }
    counts[valueKinds.missing] = rowCount - entries;
    return {
      place: { offset: raw.readDoubleLE(at), length: raw.readUInt32LE(at + 8), kind: blockKinds.column },
      counts,
      integerMin: raw.readBigInt64LE(at + 56),
      integerMax: raw.readBigInt64LE(at + 64),
      floatMin: raw.readDoubleLE(at + 72),
      floatMax: raw.readDoubleLE(at + 80),
      distinctStrings: raw.readUInt32LE(at + 88),
    };
  }

  #checkChunks(rowCount: number, damaged: (reason: string) => DataError): void {
    let row = 0;
    let column = 0;
    for (let chunk = 0; chunk < this.chunkCount; chunk++) {
      const rows = this.rowCount(chunk);
      const first = this.#chunks[chunk * 4 + 2] as number;
      if (this.firstRow(chunk) !== row || rows === 0 || rows > chunkRowsMax)
        throw damaged(`a chunk of ${rows} rows`);
      if (first < column || first > this.#columnCount || (chunk === 0 && first !== 0))
        throw damaged('columns of no chunk');
      if ((this.#chunks[chunk * 4 + 3] as number) > everyKeyFlag) throw damaged('an unknown flag');
      row += rows;
      column = first;
    }
    if (row !== rowCount) throw damaged(`${row} rows of ${rowCount}`);
  }

  /** Columns stand before the directory, and never hold more rows than their chunk. */
  #checkColumns(offset: number, keyCount: number, damaged: (reason: string) => DataError): void {
    for (let chunk = 0; chunk < this.chunkCount; chunk++) {
      const rowCount = this.rowCount(chunk);
      const end = this.#columnEnd(chunk);
      let before = -1;
      for (let column = this.#chunks[chunk * 4 + 2] as number; column < end; column++) {
        const key = this.#keyOf(column);
        if (key <= before || key >= keyCount) throw damaged('keys out of order');
        before = key;
        const at = this.#columnsAt + column * columnEntryBytes;
        const place = this.#raw.readDoubleLE(at);
        const length = this.#raw.readUInt32LE(at + 8);
        if (
          !Number.isSafeInteger(place) ||
          place < 0 ||
          length <= blockHeaderBytes ||
          place + length > offset
        )
          throw damaged('a column where none can be');
        let entries = 0;
        for (let kind = 1; kind < kindBound; kind++) entries += this.#raw.readUInt32LE(at + 12 + kind * 4);
        if (entries === 0 || entries > rowCount) throw damaged(`${entries} entries in ${rowCount} rows`);
      }
    }
  }
}

function readKeys(
  raw: Buffer,
  { keysAt, keyCount }: { readonly keysAt: number; readonly keyCount: number },
  damaged: (reason: string) => DataError,
): Map<string, number> {
  const names = raw.subarray(keysAt + keyCount * 4);
  const keys = new Map<string, number>();
  let start = 0;
  for (let key = 0; key < keyCount; key++) {
    const end = raw.readUInt32LE(keysAt + key * 4);
    if (end < start || end > names.length) throw damaged('keys of another length');
    const name = names.subarray(start, end);
    if (!isUtf8(name)) throw damaged('a key that is no text');
    keys.set(name.toString(), key);
    start = end;
  }
  if (start !== names.length) throw damaged('keys of another length');
  return keys;
}

export interface ColumnsRoot {
  /** The place of the directory; null where no row of the segment has any key. */
  readonly directory: BlockPlace | null;
  readonly rowCount: number;
}

export function encodeColumnsRoot({ directory, rowCount }: ColumnsRoot): Uint8Array {
  const bytes = Buffer.alloc(rootBytes);
  bytes.writeUIntLE(directory?.offset ?? 0, 0, 6);
  bytes.writeUInt32LE(directory?.length ?? 0, 6);
  bytes.writeUInt32LE(rowCount, 10);
  bytes.writeUInt16LE(columnsVersion, 14);
  return bytes;
}

export function decodeColumnsRoot(bytes: Uint8Array, objectKey: string): ColumnsRoot {
  if (bytes.length !== rootBytes) throw new DataError(objectKey, 0, 'no root of columns');
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const version = view.readUInt16LE(14);
  if (version !== columnsVersion) throw new DataError(objectKey, 0, `columns format ${version} is not known`);
  const length = view.readUInt32LE(6);
  const directory = { offset: view.readUIntLE(0, 6), length, kind: blockKinds.columnDirectory };
  return { directory: length === 0 ? null : directory, rowCount: view.readUInt32LE(10) };
}
