import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { parquetHeader } from 'hyparquet/src/column.js';
import { byteStreamSplit } from 'hyparquet/src/encoding.js';
import { parquetMetadata } from 'hyparquet/src/metadata.js';
import type { FileMetaData, PageHeader, SchemaElement } from 'hyparquet/src/types.js';
import { compressors } from 'hyparquet-compressors';
import { limits } from '../../protocol/limits.ts';
import { type ViewedBytes, viewed } from '../../src/base/viewed-bytes.ts';
import { decompressExactly } from '../storage/compress.ts';

/**
 * The door to hyparquet, which understands Parquet's footers, page headers and codecs. Everything whose size a file may lie about is
 * bounded here before memory is made for it: pages, dictionaries, counts, runs, lengths of strings. A file that breaks a bound, or
 * that the library can't read, is a ParquetError.
 */
export class ParquetError extends Error {
  override name = 'ParquetError';
}

export type { FileMetaData, PageHeader, SchemaElement };

const magicBytes = 4;
const footerTailBytes = 8;
const magic = 0x31524150;

/** How long the footer is, its length and magic included, from the last bytes of the file. */
export function footerBytes(tail: Buffer, fileBytes: number): number {
  if (tail.length < footerTailBytes || tail.readUInt32LE(tail.length - magicBytes) !== magic)
    throw new ParquetError('it does not end as a Parquet file does');
  const length = tail.readUInt32LE(tail.length - footerTailBytes) + footerTailBytes;
  if (length > fileBytes) throw new ParquetError('its footer says that it is longer than the file');
  if (length > limits.parquetFooterBytesMax)
    throw new ParquetError(
      `its footer has ${length} bytes, and at most ${limits.parquetFooterBytesMax} are read: write larger row groups`,
    );
  return length;
}

export function readFooter(footer: Uint8Array): FileMetaData {
  checkThrift(footer.subarray(0, footer.length - footerTailBytes));
  return asking(() => parquetMetadata(footer, { geoparquet: false }));
}

/** A page's header and its length; null where more bytes are needed for it. */
export function readPageHeader(
  bytes: Buffer,
  isLast: boolean,
): { readonly header: PageHeader; readonly length: number } | null {
  const reader = { view: viewOf(bytes), offset: 0 };
  try {
    checkThrift(bytes);
    return { header: parquetHeader(reader), length: reader.offset };
  } catch (error) {
    if (!isLast) return null;
    throw asParquetError(error);
  }
}

const thriftDepthMax = 16;
/** Structures, lists and values of a footer or header. */
const thriftValuesMax = 2_000_000;

/** One structure of the compact protocol, before the library makes anything of it: numbers are short, lists are as long as they say. */
function checkThrift(bytes: Uint8Array): void {
  const reader: Reader = { view: viewOf(bytes), offset: 0 };
  let values = 0;
  const one = (): number => {
    if (reader.offset >= reader.view.byteLength) throw new RangeError('a structure goes past its end');
    return reader.view.getUint8(reader.offset++);
  };
  const skip = (type: number, depth: number): void => {
    if (depth > thriftDepthMax || ++values > thriftValuesMax)
      throw new ParquetError('its structure is too deep or too large');
    if (type === 1 || type === 2) return;
    if (type === 3) reader.offset++;
    else if (type >= 4 && type <= 6) readVarint(reader);
    else if (type === 7) reader.offset += 8;
    else if (type === 8) {
      const length = readVarint(reader);
      if (length > maxBinaryBytes) throw new ParquetError('a text of its structure is too long');
      reader.offset += length;
    } else if (type === 9) {
      const head = one();
      const size = head >> 4 === 15 ? readVarint(reader) : head >> 4;
      const element = head & 0x0f;
      if (size > reader.view.byteLength - reader.offset) throw new RangeError('a list goes past its end');
      for (let i = 0; i < size; i++) skip(element === 1 || element === 2 ? 3 : element, depth + 1);
    } else if (type === 12) {
      for (let head = one(); (head & 0x0f) !== 0; head = one()) {
        if (head >> 4 === 0) readVarint(reader);
        skip(head & 0x0f, depth + 1);
      }
    } else throw new ParquetError('a structure that is none');
    if (reader.offset > reader.view.byteLength) throw new RangeError('a structure goes past its end');
  };
  skip(12, 0);
}

/** Statistics of long strings, and what writers note of themselves. */
const maxBinaryBytes = 1024 * 1024;

/** Says what a page takes before anything of it is unpacked. */
export function checkPageSize({
  compressed_page_size: packed,
  uncompressed_page_size: raw,
}: PageHeader): void {
  if (!Number.isInteger(packed) || !Number.isInteger(raw) || packed < 0 || raw < 0)
    throw new ParquetError('a page has no size');
  if (raw > limits.parquetPageBytesMax)
    throw new ParquetError(
      `a page unpacks to ${raw} bytes, and at most ${limits.parquetPageBytesMax} are read`,
    );
  if (raw > packed * ratioMax + ratioSlackBytes)
    throw new ParquetError(`a page of ${packed} bytes says that it unpacks to ${raw}`);
}

/** Packed data hardly ever shrinks by more, but for pages that say nothing. */
const ratioMax = 1_000;
const ratioSlackBytes = 1024 * 1024;

export function unpack(codec: string, packed: Uint8Array, rawBytes: number): Uint8Array {
  return asking(() => {
    const raw = unpackAny(codec, packed, rawBytes);
    if (raw.length !== rawBytes) throw new ParquetError('a page unpacks to another size than it says');
    return raw;
  });
}

function unpackAny(codec: string, packed: Uint8Array, rawBytes: number): Uint8Array {
  switch (codec) {
    case 'UNCOMPRESSED':
      return packed;
    case 'ZSTD':
      return decompressExactly(packed, rawBytes);
    case 'GZIP':
      return gunzipSync(packed, { maxOutputLength: Math.max(1, rawBytes) });
    case 'BROTLI':
      return brotliDecompressSync(packed, { maxOutputLength: Math.max(1, rawBytes) });
    case 'SNAPPY':
    case 'LZ4':
    case 'LZ4_RAW': {
      const decompress = compressors[codec];
      if (decompress === undefined) throw new ParquetError(`the codec ${codec} is not known`);
      return decompress(packed, rawBytes);
    }
    default:
      throw new ParquetError(`the codec ${codec} is not known`);
  }
}

/** Values that are there, without the missing ones. */
export type PageValues =
  | { readonly kind: 'numbers'; readonly values: Int32Array | Float32Array | Float64Array | Uint8Array }
  /** `halves`: the same, of each the lower and the higher 32 bits. */
  | { readonly kind: 'bigints'; readonly values: BigInt64Array; readonly halves: Int32Array }
  | {
      readonly kind: 'bytes';
      readonly source: Buffer;
      readonly viewed: ViewedBytes;
      readonly starts: Uint32Array;
      readonly ends: Uint32Array;
    };

function bigints(values: BigInt64Array): Extract<PageValues, { kind: 'bigints' }> {
  const halves = new Int32Array(values.buffer, values.byteOffset, values.length * 2);
  return { kind: 'bigints', values, halves };
}

function strings(source: Buffer, starts: Uint32Array, ends: Uint32Array): PageValues {
  return { kind: 'bytes', source, viewed: viewed(source), starts, ends };
}

/** `count` values of a type, as `encoding` has them, from `offset` on. */
export function readValues(
  raw: Uint8Array,
  offset: number,
  {
    element,
    encoding,
    count,
  }: { readonly element: SchemaElement; readonly encoding: string | undefined; readonly count: number },
): PageValues {
  return asking(() => {
    if (encoding === 'PLAIN') return readPlain(raw, offset, element, count);
    const bytes = Buffer.from(raw.buffer, raw.byteOffset + offset, raw.byteLength - offset);
    if (encoding === 'RLE' && element.type === 'BOOLEAN')
      return { kind: 'numbers', values: Uint8Array.from(readRuns(bytes.subarray(4), 1, count)) };
    const reader = { view: viewOf(bytes), offset: 0 };
    if (encoding === 'DELTA_BINARY_PACKED') return readDelta(reader, element, count);
    const isBytes = element.type === 'BYTE_ARRAY' || element.type === 'FIXED_LEN_BYTE_ARRAY';
    if (encoding === 'DELTA_LENGTH_BYTE_ARRAY' && isBytes) return deltaLengths(bytes, reader, count);
    if (encoding === 'DELTA_BYTE_ARRAY' && isBytes) return deltaPrefixes(bytes, reader, count);
    if (encoding === 'BYTE_STREAM_SPLIT' && element.type !== 'FIXED_LEN_BYTE_ARRAY') {
      if (count * widthOf(element) > bytes.length) throw tooFew();
      const values = byteStreamSplit(reader, count, element.type as 'DOUBLE', element.type_length);
      return values instanceof BigInt64Array
        ? bigints(values)
        : { kind: 'numbers', values: values as Float64Array };
    }
    throw new ParquetError(`the encoding ${encoding} is not known`);
  });
}

function tooFew(): ParquetError {
  return new ParquetError('a page has fewer values than it says');
}

function widthOf({ type, type_length: length }: SchemaElement): number {
  switch (type) {
    case 'INT32':
    case 'FLOAT':
      return 4;
    case 'INT64':
    case 'DOUBLE':
      return 8;
    case 'INT96':
      return 12;
    case 'FIXED_LEN_BYTE_ARRAY':
      if (length === undefined || length <= 0) throw new ParquetError('a fixed length is missing');
      return length;
    default:
      return 0;
  }
}

function readPlain(raw: Uint8Array, offset: number, element: SchemaElement, count: number): PageValues {
  if (element.type === 'BOOLEAN') return readBits(raw, offset, count);
  if (element.type === 'BYTE_ARRAY') return readStrings(raw, offset, count);
  const width = widthOf(element);
  const bytes = count * width;
  if (offset + bytes > raw.length) throw tooFew();
  // Of its own, so that it begins where its numbers may.
  const copy = Uint8Array.from(raw.subarray(offset, offset + bytes));
  switch (element.type) {
    case 'INT32':
      return { kind: 'numbers', values: new Int32Array(copy.buffer) };
    case 'FLOAT':
      return { kind: 'numbers', values: new Float32Array(copy.buffer) };
    case 'DOUBLE':
      return { kind: 'numbers', values: new Float64Array(copy.buffer) };
    case 'INT64':
      return bigints(new BigInt64Array(copy.buffer));
    default: {
      const starts = Uint32Array.from({ length: count }, (_, at) => at * width);
      const ends = starts.map((start) => start + width);
      return strings(Buffer.from(copy.buffer), starts, ends);
    }
  }
}

function readBits(raw: Uint8Array, offset: number, count: number): PageValues {
  if (offset + Math.ceil(count / 8) > raw.length) throw tooFew();
  const values = new Uint8Array(count);
  for (let at = 0; at < count; at++) values[at] = ((raw[offset + (at >> 3)] as number) >> (at & 7)) & 1;
  return { kind: 'numbers', values };
}

function readStrings(raw: Uint8Array, offset: number, count: number): PageValues {
  const source = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength);
  if (offset + count * 4 > source.length) throw tooFew();
  const starts = new Uint32Array(count);
  const ends = new Uint32Array(count);
  let at = offset;
  for (let value = 0; value < count; value++) {
    if (at + 4 > source.length) throw tooFew();
    const start = at + 4;
    at = start + source.readUInt32LE(at);
    if (at > source.length) throw new ParquetError('a string goes past its page');
    starts[value] = start;
    ends[value] = at;
  }
  return strings(source, starts, ends);
}

interface Reader {
  readonly view: DataView;
  offset: number;
}

function readDelta(reader: Reader, element: SchemaElement, count: number): PageValues {
  if (element.type === 'INT32') return { kind: 'numbers', values: deltaIntegers(reader, count) };
  if (element.type !== 'INT64') throw new ParquetError('an encoding of whole numbers for something else');
  const values = bigints(new BigInt64Array(count));
  eachDelta(reader, count, (low, high, at) => {
    values.halves[at * 2] = low;
    values.halves[at * 2 + 1] = high;
  });
  return values;
}

function deltaIntegers(reader: Reader, count: number): Int32Array {
  const values = new Int32Array(count);
  eachDelta(reader, count, (low, _, at) => {
    values[at] = low;
  });
  return values;
}

const deltaBlockMax = 1 << 20;
const miniblocksMax = 1_024;

/**
 * Differences in blocks of miniblocks, each of which has a width of bits of its own. Of numbers of 64 bits by their halves: with
 * BigInt it took far longer, and V8's optimising compiler ended the process on it (Node 20.20).
 */
function eachDelta(
  reader: Reader,
  count: number,
  visit: (low: number, high: number, at: number) => void,
): void {
  const blockSize = readVarint(reader);
  const miniblocks = readVarint(reader);
  readVarint(reader);
  readZigzag(reader);
  let [low, high] = [varintLow, varintHigh];
  const perMiniblock = blockSize / miniblocks;
  if (
    blockSize > deltaBlockMax ||
    miniblocks > miniblocksMax ||
    !Number.isInteger(perMiniblock) ||
    perMiniblock === 0
  )
    throw new ParquetError('a block of differences has no size');
  if (count > 0) visit(low, high, 0);
  for (let at = 1; at < count; ) {
    readZigzag(reader);
    const [leastLow, leastHigh] = [varintLow, varintHigh];
    const widths = reader.offset;
    reader.offset += miniblocks;
    if (reader.offset > reader.view.byteLength) throw tooFew();
    for (let miniblock = 0; miniblock < miniblocks && at < count; miniblock++) {
      const width = reader.view.getUint8(widths + miniblock);
      if (width > 64) throw new ParquetError(`differences of ${width} bits`);
      const end = reader.offset + Math.ceil((perMiniblock * width) / 8);
      let bit = reader.offset * 8;
      for (let i = 0; i < perMiniblock && at < count; i++, bit += width) {
        const moreLow = bitsAt(reader.view, bit, Math.min(width, 32));
        const moreHigh = bitsAt(reader.view, bit + 32, Math.max(0, width - 32));
        const sum = (low >>> 0) + (leastLow >>> 0) + (moreLow >>> 0);
        high = (high + leastHigh + moreHigh + Math.floor(sum / 2 ** 32)) | 0;
        low = sum | 0;
        visit(low, high, at++);
      }
      reader.offset = end;
    }
  }
}

/** So many bits from that one on, 32 at most, the lowest first: as an integer of 32 bits. */
function bitsAt(view: DataView, bit: number, width: number): number {
  if (width === 0) return 0;
  const first = Math.floor(bit / 8);
  const shift = bit - first * 8;
  const last = first + ((shift + width - 1) >> 3);
  if (last >= view.byteLength) throw tooFew();
  let word = 0;
  for (let at = last; at >= first; at--) word = word * 256 + view.getUint8(at);
  return (Math.floor(word / 2 ** shift) % 2 ** width) | 0;
}

/** The number that was read last, by its halves: each an integer of 32 bits. */
let varintLow = 0;
let varintHigh = 0;

/** Of 64 bits at most; as a number, which is not exact past 2^53. */
function readVarint(reader: Reader): number {
  varintLow = 0;
  varintHigh = 0;
  for (let shift = 0; shift < 70; shift += 7) {
    if (reader.offset >= reader.view.byteLength) throw tooFew();
    const byte = reader.view.getUint8(reader.offset++);
    const bits = byte & 0x7f;
    if (shift < 32) varintLow |= bits << shift;
    if (shift > 31) varintHigh |= bits << (shift - 32);
    else if (shift > 25) varintHigh |= bits >>> (32 - shift);
    if (byte < 0x80) return (varintHigh >>> 0) * 2 ** 32 + (varintLow >>> 0);
  }
  throw new ParquetError('a number of more than 64 bits');
}

/** A signed one, which is written with its sign as its lowest bit: into the halves. */
function readZigzag(reader: Reader): void {
  readVarint(reader);
  const sign = -(varintLow & 1);
  varintLow = ((varintLow >>> 1) | (varintHigh << 31)) ^ sign;
  varintHigh = (varintHigh >>> 1) ^ sign;
}

function deltaLengths(source: Buffer, reader: Reader, count: number): PageValues {
  const lengths = deltaIntegers(reader, count);
  const starts = new Uint32Array(count);
  const ends = new Uint32Array(count);
  let at = reader.offset;
  for (let value = 0; value < count; value++) {
    const length = lengths[value] as number;
    if (length < 0 || at + length > source.length) throw new ParquetError('a string goes past its page');
    starts[value] = at;
    at += length;
    ends[value] = at;
  }
  return strings(source, starts, ends);
}

/** Each string begins as the one before: together they may be far longer than what is stored of them. */
function deltaPrefixes(bytes: Buffer, reader: Reader, count: number): PageValues {
  const prefixes = deltaIntegers(reader, count);
  const suffixes = deltaLengths(bytes, reader, count);
  if (suffixes.kind !== 'bytes') throw tooFew();
  let total = 0;
  for (let value = 0; value < count; value++)
    total +=
      (prefixes[value] as number) + (suffixes.ends[value] as number) - (suffixes.starts[value] as number);
  if (total > limits.parquetPageBytesMax) throw new ParquetError(`the strings of a page take ${total} bytes`);
  const source = Buffer.alloc(total);
  const starts = new Uint32Array(count);
  const ends = new Uint32Array(count);
  let at = 0;
  for (let value = 0; value < count; value++) {
    const prefix = prefixes[value] as number;
    const before = value === 0 ? 0 : (starts[value - 1] as number);
    const beforeEnd = value === 0 ? 0 : (ends[value - 1] as number);
    if (prefix < 0 || before + prefix > beforeEnd)
      throw new ParquetError('a string begins as none before it');
    starts[value] = at;
    at += source.copy(source, at, before, before + prefix);
    at += bytes.copy(source, at, suffixes.starts[value], suffixes.ends[value]);
    ends[value] = at;
  }
  return strings(source, starts, ends);
}

/** `count` numbers of `width` bits, in runs and packed. Throws where they are not all there. */
export function readRuns(bytes: Buffer, width: number, count: number): Int32Array {
  const numbers = new Int32Array(count);
  if (width === 0) return numbers;
  if (width > 32) throw new ParquetError(`numbers of ${width} bits`);
  let at = 0;
  let filled = 0;
  while (filled < count) {
    let header = 0;
    for (let shift = 0; ; shift += 7) {
      if (at >= bytes.length || shift > 28) throw tooFew();
      const byte = bytes[at++] as number;
      header += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) break;
    }
    const length = Math.floor(header / 2);
    if (length === 0) continue;
    if (header % 2 === 0) {
      const valueBytes = (width + 7) >> 3;
      if (at + valueBytes > bytes.length) throw tooFew();
      const value = bytes.readUIntLE(at, valueBytes);
      at += valueBytes;
      const end = Math.min(count, filled + length);
      numbers.fill(value, filled, end);
      filled = end;
    } else {
      const packed = Math.min(count - filled, length * 8);
      if (at + Math.ceil((packed * width) / 8) > bytes.length) throw tooFew();
      unpackBits(bytes, at, { width, numbers, first: filled, count: packed });
      filled += packed;
      at += length * width;
    }
  }
  return numbers;
}

function unpackBits(
  bytes: Buffer,
  from: number,
  {
    width,
    numbers,
    first,
    count,
  }: { readonly width: number; readonly numbers: Int32Array; readonly first: number; readonly count: number },
): void {
  if (width <= shiftedBitsMax) {
    const mask = (1 << width) - 1;
    let position = from;
    let word = 0;
    let left = 0;
    for (let i = 0; i < count; i++) {
      for (; left < width; left += 8) word |= (bytes[position++] as number) << left;
      numbers[first + i] = word & mask;
      word >>>= width;
      left -= width;
    }
    return;
  }
  let at = from;
  let held = 0;
  let bits = 0;
  const bound = 2 ** width;
  for (let i = 0; i < count; i++) {
    while (bits < width) {
      held += (bytes[at++] as number) * 2 ** bits;
      bits += 8;
    }
    numbers[first + i] = held % bound;
    held = Math.floor(held / bound);
    bits -= width;
  }
}

/** With a byte more, what is held stays within 32 bits. */
const shiftedBitsMax = 24;

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Whatever the library says of a file is said of the file. */
function asking<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw asParquetError(error);
  }
}

function asParquetError(error: unknown): ParquetError {
  return error instanceof ParquetError ? error : new ParquetError(unreadable);
}

/** Of a file in which something is not where or what the file says: what a library makes of that says nothing to who wrote it. */
export const unreadable =
  'it is damaged, or written in a way that is not known here: write it anew, with another tool';
