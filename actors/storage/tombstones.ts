/**
 * Which rows of a segment are replaced or deleted: bitmaps per 65,536 rows, copied on write, so that a running read
 * keeps the set it began with. A bitmap ends at most one doubling after its last row: most namespaces are small.
 */
import { storedBytes, storedCheck } from '../../protocol/stored-schema.ts';
import { formats } from '../../protocol/version.ts';
import { decodeRecord, encodeRecord } from '../../src/base/record.ts';

const rowsPerChunk = 65_536;
const bytesPerChunk = rowsPerChunk / 8;
const bitmapBytesMin = 32;

export interface Tombstones {
  readonly count: number;
  readonly chunks: ReadonlyMap<number, Uint8Array>;
}

export const noTombstones: Tombstones = { count: 0, chunks: new Map() };

export function isDeleted(tombstones: Tombstones, row: number): boolean {
  const chunk = tombstones.chunks.get(row >>> 16);
  return chunk !== undefined && ((chunk[(row & 0xffff) >>> 3] ?? 0) & (1 << (row & 7))) !== 0;
}

/** How many rows from `from` to before `end` are deleted. */
export function deletedBetween(tombstones: Tombstones, from: number, end: number): number {
  if (tombstones.count === 0) return 0;
  let count = 0;
  for (let row = from; row < end; ) {
    const bitmap = tombstones.chunks.get(row >>> 16);
    const chunkEnd = Math.min(end, ((row >>> 16) + 1) * rowsPerChunk);
    if (bitmap === undefined) {
      row = chunkEnd;
    } else if ((row & 7) === 0 && row + 8 <= chunkEnd) {
      for (let bits = bitmap[(row & 0xffff) >>> 3] ?? 0; bits !== 0; bits &= bits - 1) count++;
      row += 8;
    } else {
      count += Number(isDeleted(tombstones, row));
      row++;
    }
  }
  return count;
}

/**
 * Answers a set of rows without those that are deleted. The set has a bit a row, the first of them for the row `first`, which may be any.
 */
export function withoutDeleted(bits: Uint32Array, first: number, tombstones: Tombstones): Uint32Array {
  const left = Uint32Array.from(bits);
  const end = first + bits.length * 32;
  for (let number = first >>> 16; number << 16 < end; number++) {
    const bitmap = tombstones.chunks.get(number);
    if (bitmap === undefined) continue;
    const chunkFirst = number * rowsPerChunk;
    for (let byte = 0; byte < bitmap.length; byte++) {
      for (let deleted = bitmap[byte] as number; deleted !== 0; deleted &= deleted - 1) {
        const row = chunkFirst + byte * 8 + 31 - Math.clz32(deleted & -deleted) - first;
        if (row >= 0 && row < left.length * 32)
          left[row >>> 5] = (left[row >>> 5] as number) & ~(1 << (row & 31));
      }
    }
  }
  return left;
}

/** Resident bytes. */
export function tombstoneBytes(tombstones: Tombstones): number {
  let bytes = 0;
  for (const bitmap of tombstones.chunks.values()) bytes += bitmap.length;
  return bytes;
}

/** The set with more rows in it. Rows that are in it already count once. */
export function withDeleted(tombstones: Tombstones, rows: Iterable<number>): Tombstones {
  const chunks = new Map(tombstones.chunks);
  const owned = new Set<Uint8Array>();
  let count = tombstones.count;
  for (const row of rows) {
    const number = row >>> 16;
    const byte = (row & 0xffff) >>> 3;
    let chunk = chunks.get(number);
    if (chunk === undefined || !owned.has(chunk) || byte >= chunk.length) {
      chunk = copyWithRoom(chunk, byte);
      owned.add(chunk);
      chunks.set(number, chunk);
    }
    const before = chunk[byte] ?? 0;
    chunk[byte] = before | (1 << (row & 7));
    if (chunk[byte] !== before) count++;
  }
  return count === tombstones.count ? tombstones : { count, chunks };
}

function copyWithRoom(chunk: Uint8Array | undefined, byte: number): Uint8Array {
  const copy = new Uint8Array(Math.max(chunk?.length ?? 0, bitmapBytes(byte)));
  if (chunk !== undefined) copy.set(chunk);
  return copy;
}

/** A power of two, so that rows that come one after the other do not copy it each time. */
function bitmapBytes(lastByte: number): number {
  return Math.max(bitmapBytesMin, 2 ** Math.ceil(Math.log2(lastByte + 1)));
}

/** Makes what another thread can read: pairs of chunk number and bitmap. */
export function tombstonesToWire(tombstones: Tombstones): unknown {
  return [tombstones.count, [...tombstones.chunks.entries()]];
}

export function tombstonesFromWire(wire: unknown): Tombstones {
  const [count, entries] = wire as [number, [number, Uint8Array][]];
  return { count, chunks: new Map(entries.map(([number, bitmap]) => [number, new Uint8Array(bitmap)])) };
}

/** Larger sets are objects of their own, so that a manifest stays small: this many bytes list some 2,000 rows. */
export const tombstonesInlineBytesMax = 4_096;
const deletesFormat = {
  magic: 'TBDL',
  versions: [formats.deletes.version],
  check: storedCheck(storedBytes),
} as const;

/**
 * The smallest form, little-endian: u32 count of rows, then per chunk u32 number | u32 rows listed, or `bitmapMark` | the
 * rows, u16 each and ascending, or the bitmap.
 */
const bitmapMark = 0xffff_ffff;
const chunkHeadBytes = 8;
/** Above it the bitmap is smaller. */
const listedRowsMax = bytesPerChunk / 2;

export function encodeTombstones(tombstones: Tombstones): Uint8Array {
  const head = Buffer.alloc(4);
  head.writeUInt32LE(tombstones.count);
  const chunks = [...tombstones.chunks].sort(([a], [b]) => a - b);
  return Buffer.concat([head, ...chunks.flatMap(([number, bitmap]) => encodeChunk(number, bitmap))]);
}

function encodeChunk(number: number, bitmap: Uint8Array): readonly Uint8Array[] {
  const rows = rowsOf(bitmap);
  const listed = rows.length <= listedRowsMax;
  const head = Buffer.alloc(chunkHeadBytes);
  head.writeUInt32LE(number, 0);
  head.writeUInt32LE(listed ? rows.length : bitmapMark, 4);
  if (!listed) return [head, copyWithRoom(bitmap, bytesPerChunk - 1)];
  const list = Buffer.alloc(rows.length * 2);
  rows.forEach((row, i) => {
    list.writeUInt16LE(row, i * 2);
  });
  return [head, list];
}

function rowsOf(bitmap: Uint8Array): number[] {
  const rows: number[] = [];
  for (let at = 0; at < bitmap.length; at++) {
    const byte = bitmap[at] ?? 0;
    for (let bit = 0; byte >>> bit !== 0; bit++) if ((byte >>> bit) & 1) rows.push(at * 8 + bit);
  }
  return rows;
}

/** The bytes come out of a checksummed record. */
export function decodeTombstones(bytes: Uint8Array): Tombstones {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const chunks = new Map<number, Uint8Array>();
  for (let at = 4; at < view.length; ) {
    const number = view.readUInt32LE(at);
    const listed = view.readUInt32LE(at + 4);
    at += chunkHeadBytes;
    const end = at + (listed === bitmapMark ? bytesPerChunk : listed * 2);
    const stored = view.subarray(at, end);
    chunks.set(number, listed === bitmapMark ? Uint8Array.from(stored) : bitmapOf(stored));
    at = end;
  }
  return { count: view.readUInt32LE(0), chunks };
}

/** Rows as `encodeChunk` lists them: u16 each, ascending. */
function bitmapOf(listed: Buffer): Uint8Array {
  const last = listed.length === 0 ? 0 : listed.readUInt16LE(listed.length - 2);
  const bitmap = new Uint8Array(bitmapBytes(last >>> 3));
  for (let at = 0; at < listed.length; at += 2) {
    const row = listed.readUInt16LE(at);
    bitmap[row >>> 3] = (bitmap[row >>> 3] ?? 0) | (1 << (row & 7));
  }
  return bitmap;
}

/** A set as an object of its own; `bytes` as `encodeTombstones` makes them. */
export function encodeTombstonesObject(bytes: Uint8Array, key: string): Uint8Array {
  return encodeRecord(deletesFormat, bytes, key);
}

/** Throws `DataError`. */
export function decodeTombstonesObject(object: Uint8Array, key: string): Tombstones {
  return decodeTombstones(decodeRecord(object, key, deletesFormat));
}
