import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { parquetHeader } from 'hyparquet/src/column.js';
import { deltaBinaryUnpack } from 'hyparquet/src/delta.js';
import { byteStreamSplit } from 'hyparquet/src/encoding.js';
import { parquetMetadata } from 'hyparquet/src/metadata.js';
import type { FileMetaData, PageHeader, SchemaElement } from 'hyparquet/src/types.js';
import { compressors } from 'hyparquet-compressors';
import { limits } from '../../protocol/limits.ts';
import { type ViewedBytes, viewed } from '../columns/string-table.ts';
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
  return asking(() => parquetMetadata(footer, { geoparquet: false }));
}

/** A page's header and its length; null where more bytes are needed for it. */
export function readPageHeader(
  bytes: Buffer,
  isLast: boolean,
): { readonly header: PageHeader; readonly length: number } | null {
  const reader = { view: viewOf(bytes), offset: 0 };
  try {
    return { header: parquetHeader(reader), length: reader.offset };
  } catch (error) {
    if (!isLast) return null;
    throw asParquetError(error);
  }
}

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
  | { readonly kind: 'bigints'; readonly values: BigInt64Array }
  | {
      readonly kind: 'bytes';
      readonly source: Buffer;
      readonly viewed: ViewedBytes;
      readonly starts: Uint32Array;
      readonly ends: Uint32Array;
    };

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
    if (encoding === 'DELTA_LENGTH_BYTE_ARRAY') return deltaLengths(bytes, reader, count);
    if (encoding === 'DELTA_BYTE_ARRAY') return deltaPrefixes(bytes, reader, count);
    if (encoding === 'BYTE_STREAM_SPLIT' && element.type !== 'FIXED_LEN_BYTE_ARRAY') {
      if (count * widthOf(element) > bytes.length) throw tooFew();
      const values = byteStreamSplit(reader, count, element.type as 'DOUBLE', element.type_length);
      return values instanceof BigInt64Array
        ? { kind: 'bigints', values }
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
      return { kind: 'bigints', values: new BigInt64Array(copy.buffer) };
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
  if (element.type === 'INT32') {
    const values = new Int32Array(count);
    if (count > 0) deltaBinaryUnpack(reader, count, values);
    return { kind: 'numbers', values };
  }
  const values = new BigInt64Array(count);
  if (count > 0) deltaBinaryUnpack(reader, count, values);
  return { kind: 'bigints', values };
}

function deltaLengths(source: Buffer, reader: Reader, count: number): PageValues {
  const lengths = new Int32Array(count);
  if (count > 0) deltaBinaryUnpack(reader, count, lengths);
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
  const prefixes = new Int32Array(count);
  if (count > 0) deltaBinaryUnpack(reader, count, prefixes);
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
  if (error instanceof ParquetError) return error;
  const reason = error instanceof Error ? error.message : String(error);
  return new ParquetError(`it can't be read: ${reason}`);
}
