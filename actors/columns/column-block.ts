/**
 * The values of one key in the rows of one chunk, as a block of the segment. Little-endian; every array begins at a
 * multiple of 8 bytes.
 *
 *   head, 72 bytes: u32 rows of the chunk | u32 entries: rows that have the key | u8 presence | u8 bytes of an integer |
 *     u8 bytes of a code | u8 the kind of all entries, or 0 | u32 strings | u32 bytes of strings | u32 zero | i64 base of
 *     the integers | u32 entries of each kind 1 … 10
 *   float64 of each float, in the order of rows; here and below a kind's values have no gaps for other kinds
 *   each integer, date and time less the base, of 1, 2 or 4 bytes; or int64, and the base is 0
 *   code of each string, of 1 or 2 bytes: its number in the dictionary
 *   presence: nothing where every row has an entry; or a bit a row; or u16 row of each entry
 *   u8 kind of each entry, where they differ
 *   dictionary: u32 end of each string, in the order of their first rows; their UTF-8 bytes
 */
import { DataError } from '../../src/base/assert.ts';
import { chunkRowsMax, kindBound, valueKinds, wholeCount } from './value-kinds.ts';

export const columnHeadBytes = 72;

export const presences = { all: 0, bitmap: 1, rows: 2 } as const;

/** As the head says them; arrays as views of the block. */
export interface ColumnValues {
  readonly rowCount: number;
  readonly entryCount: number;
  /** Entries of each kind; of `missing`, rows without one. */
  readonly counts: Uint32Array;
  /** The kind of every entry, or 0 where they differ. */
  readonly uniformKind: number;
  readonly kinds: Uint8Array;
  readonly presence: number;
  readonly bitmap: Uint32Array;
  readonly rows: Uint16Array;
  readonly floats: Float64Array;
  readonly integerBytes: number;
  readonly integerBase: bigint;
  /** Integers less their base, of 1, 2 or 4 bytes; empty where they have 8. */
  readonly integers: Uint8Array | Uint16Array | Uint32Array;
  /** Integers of 8 bytes, low half first; empty where they have fewer. */
  readonly wideIntegers: Int32Array;
  readonly codes: Uint8Array | Uint16Array;
  readonly stringEnds: Uint32Array;
  readonly stringBytes: Uint8Array;
}

export interface ColumnShape {
  readonly rowCount: number;
  readonly entryCount: number;
  readonly presence: number;
  readonly integerBytes: number;
  readonly codeBytes: number;
  readonly uniformKind: number;
  readonly stringCount: number;
  readonly stringBytes: number;
  readonly counts: Uint32Array;
}

const aligned = (bytes: number) => (bytes + 7) & ~7;

/** Where each array begins, and how long the block is. */
export function columnLayout(shape: ColumnShape) {
  const { counts, entryCount, presence } = shape;
  const floats = columnHeadBytes;
  const integers = floats + (counts[valueKinds.float] as number) * 8;
  const codes = integers + aligned(wholeCount(counts) * shape.integerBytes);
  const present = codes + aligned((counts[valueKinds.string] as number) * shape.codeBytes);
  const presentBytes =
    presence === presences.all
      ? 0
      : presence === presences.bitmap
        ? Math.ceil(shape.rowCount / 32) * 4
        : entryCount * 2;
  const kinds = present + aligned(presentBytes);
  const ends = kinds + (shape.uniformKind === 0 ? aligned(entryCount) : 0);
  const strings = ends + aligned(shape.stringCount * 4);
  return { floats, integers, codes, present, kinds, ends, strings, length: strings + shape.stringBytes };
}

export function writeColumnHead(raw: Buffer, shape: ColumnShape, integerBase: bigint): void {
  raw.writeUInt32LE(shape.rowCount, 0);
  raw.writeUInt32LE(shape.entryCount, 4);
  raw.writeUInt8(shape.presence, 8);
  raw.writeUInt8(shape.integerBytes, 9);
  raw.writeUInt8(shape.codeBytes, 10);
  raw.writeUInt8(shape.uniformKind, 11);
  raw.writeUInt32LE(shape.stringCount, 12);
  raw.writeUInt32LE(shape.stringBytes, 16);
  raw.writeBigInt64LE(integerBase, 24);
  for (let kind = 1; kind < kindBound; kind++) raw.writeUInt32LE(shape.counts[kind] as number, 28 + kind * 4);
}

/** `raw` begins at a multiple of 8 of its memory. Throws `DataError` where its parts contradict each other. */
export function readColumn(
  raw: Buffer,
  place: { readonly name: string; readonly offset: number },
): ColumnValues {
  const damaged = (reason: string) => new DataError(place.name, place.offset, `column: ${reason}`);
  if (raw.length < columnHeadBytes) throw damaged('shorter than its head');
  const shape = readShape(raw);
  const problem = problemOfShape(shape);
  if (problem !== null) throw damaged(problem);
  const layout = columnLayout(shape);
  if (layout.length !== raw.length) throw damaged('its arrays do not fill it');
  const values = viewsOf(raw, shape, layout);
  const contradiction = problemOfValues(values, shape);
  if (contradiction !== null) throw damaged(contradiction);
  return values;
}

function readShape(raw: Buffer): ColumnShape {
  const counts = new Uint32Array(kindBound);
  for (let kind = 1; kind < kindBound; kind++) counts[kind] = raw.readUInt32LE(28 + kind * 4);
  const rowCount = raw.readUInt32LE(0);
  const entryCount = raw.readUInt32LE(4);
  counts[valueKinds.missing] = rowCount - entryCount;
  return {
    rowCount,
    entryCount,
    presence: raw.readUInt8(8),
    integerBytes: raw.readUInt8(9),
    codeBytes: raw.readUInt8(10),
    uniformKind: raw.readUInt8(11),
    stringCount: raw.readUInt32LE(12),
    stringBytes: raw.readUInt32LE(16),
    counts,
  };
}

/** No sum of the layout can be large after it. */
function problemOfShape(shape: ColumnShape): string | null {
  const { rowCount, entryCount, presence, integerBytes, codeBytes, uniformKind, counts } = shape;
  if (rowCount === 0 || rowCount > chunkRowsMax || entryCount === 0 || entryCount > rowCount)
    return `${entryCount} entries in ${rowCount} rows`;
  let sum = 0;
  for (let kind = 1; kind < kindBound; kind++) sum += counts[kind] as number;
  if (sum !== entryCount) return 'kinds of another count';
  if (uniformKind >= kindBound || (uniformKind > 0 && counts[uniformKind] !== entryCount))
    return 'entries of another kind';
  if (presence > presences.rows || (presence === presences.all && entryCount !== rowCount))
    return 'rows without a presence';
  if (![0, 1, 2, 4, 8].includes(integerBytes) || (integerBytes === 0 && wholeCount(counts) !== 0))
    return `integers of ${integerBytes} bytes`;
  if (codeBytes > 2 || (codeBytes === 0 && counts[valueKinds.string] !== 0))
    return `codes of ${codeBytes} bytes`;
  return shape.stringCount > (counts[valueKinds.string] as number) ? 'more strings than codes' : null;
}

function viewsOf(raw: Buffer, shape: ColumnShape, layout: ReturnType<typeof columnLayout>): ColumnValues {
  const { buffer, byteOffset } = raw;
  const { counts, entryCount, integerBytes, presence } = shape;
  const integerCount = wholeCount(counts);
  const stringEntries = counts[valueKinds.string] as number;
  const at = (offset: number) => byteOffset + offset;
  const narrowCount = integerBytes === 8 ? 0 : integerCount;
  const bitmapWords = presence === presences.bitmap ? Math.ceil(shape.rowCount / 32) : 0;
  return {
    rowCount: shape.rowCount,
    entryCount,
    counts,
    uniformKind: shape.uniformKind,
    kinds: new Uint8Array(buffer, at(layout.kinds), shape.uniformKind === 0 ? entryCount : 0),
    presence,
    bitmap: new Uint32Array(buffer, at(layout.present), bitmapWords),
    rows: new Uint16Array(buffer, at(layout.present), presence === presences.rows ? entryCount : 0),
    floats: new Float64Array(buffer, at(layout.floats), counts[valueKinds.float] as number),
    integerBytes,
    integerBase: raw.readBigInt64LE(24),
    integers: unsigned(integerBytes, buffer, at(layout.integers), narrowCount),
    wideIntegers: new Int32Array(buffer, at(layout.integers), (integerCount - narrowCount) * 2),
    codes:
      shape.codeBytes === 2
        ? new Uint16Array(buffer, at(layout.codes), stringEntries)
        : new Uint8Array(buffer, at(layout.codes), stringEntries),
    stringEnds: new Uint32Array(buffer, at(layout.ends), shape.stringCount),
    stringBytes: new Uint8Array(buffer, at(layout.strings), shape.stringBytes),
  };
}

function unsigned(bytes: number, buffer: ArrayBufferLike, at: number, count: number) {
  if (bytes === 4) return new Uint32Array(buffer, at, count);
  return bytes === 2 ? new Uint16Array(buffer, at, count) : new Uint8Array(buffer, at, count);
}

/** Checked once a block, so that nobody who reads entries has to. */
function problemOfValues(values: ColumnValues, { stringCount, stringBytes }: ColumnShape): string | null {
  if (!kindsAgree(values)) return 'kinds of another count';
  if (!presenceAgrees(values)) return 'another presence';
  const { codes, stringEnds } = values;
  let code = -1;
  for (let i = 0; i < codes.length; i++) code = Math.max(code, codes[i] as number);
  if (code >= stringCount) return 'a code without a string';
  let end = 0;
  for (let i = 0; i < stringCount; i++) {
    if ((stringEnds[i] as number) < end) return 'strings out of order';
    end = stringEnds[i] as number;
  }
  return end === stringBytes ? null : 'strings of another length';
}

function kindsAgree({ kinds, counts, uniformKind }: ColumnValues): boolean {
  if (uniformKind !== 0) return true;
  const found = new Uint32Array(256);
  for (let i = 0; i < kinds.length; i++) (found[kinds[i] as number] as number)++;
  for (let kind = 1; kind < kindBound; kind++) if (found[kind] !== counts[kind]) return false;
  return true;
}

function presenceAgrees({ presence, bitmap, rows, rowCount, entryCount }: ColumnValues): boolean {
  if (presence === presences.rows) {
    for (let i = 1; i < entryCount; i++) if ((rows[i] as number) <= (rows[i - 1] as number)) return false;
    return (rows[entryCount - 1] as number) < rowCount;
  }
  if (presence === presences.all) return true;
  const tail = rowCount % 32;
  return bitsIn(bitmap) === entryCount && (tail === 0 || (bitmap.at(-1) as number) >>> tail === 0);
}

/** Counts the set bits of all words. */
export function bitsIn(bits: Uint32Array): number {
  let count = 0;
  for (let at = 0; at < bits.length; at++) count += bitCount(bits[at] as number);
  return count;
}

export function bitCount(word: number): number {
  let bits = word - ((word >>> 1) & 0x55555555);
  bits = (bits & 0x33333333) + ((bits >>> 2) & 0x33333333);
  return Math.imul((bits + (bits >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}
