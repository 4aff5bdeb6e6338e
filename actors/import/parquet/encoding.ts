import { readDeltaIntegers, readDeltaLengths, readDeltaStrings } from './delta.ts';
import type { SchemaElement } from './metadata.ts';
import type { PageValues } from './page-values.ts';
import { ParquetError, refusing, tooFewValues } from './parquet-error.ts';
import { fixedValues, readPlain, widthOf } from './plain.ts';
import { thriftReader } from './thrift.ts';

/** What says how values are written: the column, its page's encoding, and how many there are. */
export interface EncodedValues {
  readonly element: SchemaElement;
  readonly encoding: string | undefined;
  readonly count: number;
}

/** Reads the values of a page, from `offset` on. Throws ParquetError where they are not all there. */
export function readValues(raw: Uint8Array, offset: number, encoded: EncodedValues): PageValues {
  return refusing(() => readEncoded(raw, offset, encoded));
}

function readEncoded(
  raw: Uint8Array,
  offset: number,
  { element, encoding, count }: EncodedValues,
): PageValues {
  if (encoding === 'PLAIN') return readPlain(raw, offset, element, count);
  const bytes = Buffer.from(raw.buffer, raw.byteOffset + offset, raw.byteLength - offset);
  const isString = element.type === 'BYTE_ARRAY' || element.type === 'FIXED_LEN_BYTE_ARRAY';
  switch (encoding) {
    case 'RLE':
      if (element.type !== 'BOOLEAN') break;
      // Behind their length.
      return { kind: 'numbers', values: Uint8Array.from(readRuns(bytes.subarray(4), 1, count)) };
    case 'DELTA_BINARY_PACKED':
      return readDeltaIntegers(thriftReader(bytes), element, count);
    case 'DELTA_LENGTH_BYTE_ARRAY':
      if (isString) return readDeltaLengths(bytes, thriftReader(bytes), count);
      break;
    case 'DELTA_BYTE_ARRAY':
      if (isString) return readDeltaStrings(bytes, thriftReader(bytes), count);
      break;
    case 'BYTE_STREAM_SPLIT':
      if (widthOf(element) > 0) return readByteStreams(bytes, element, count);
      break;
    default:
      throw new ParquetError(
        `the file's pages have ${encoding === undefined ? 'an encoding' : `the encoding ${encoding},`} which is not known here`,
      );
  }
  throw new ParquetError(`a column of ${element.type} can't have the encoding ${encoding}`);
}

/** Reads values of which the first bytes stand together, then all second ones, and so on (BYTE_STREAM_SPLIT). */
function readByteStreams(bytes: Buffer, element: SchemaElement, count: number): PageValues {
  const width = widthOf(element);
  if (count * width > bytes.length) throw tooFewValues();
  const joined = new Uint8Array(count * width);
  for (let byte = 0; byte < width; byte++)
    for (let value = 0; value < count; value++)
      joined[value * width + byte] = bytes[byte * count + value] as number;
  return fixedValues(joined, element, count);
}

/** Reads `count` numbers of `width` bits, which stand in runs of one number and in packed ones (RLE). */
export function readRuns(bytes: Buffer, width: number, count: number): Int32Array {
  const numbers = new Int32Array(count);
  if (width === 0) return numbers;
  if (width > 32) throw new ParquetError(`numbers of runs have ${width} bits, of 32 at most`);
  let at = 0;
  let filled = 0;
  while (filled < count) {
    let header = 0;
    for (let shift = 0; ; shift += 7) {
      if (at >= bytes.length || shift > 28) throw tooFewValues();
      const byte = bytes[at++] as number;
      header += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) break;
    }
    const length = Math.floor(header / 2);
    if (length === 0) continue;
    if (header % 2 === 0) {
      const valueBytes = (width + 7) >> 3;
      if (at + valueBytes > bytes.length) throw tooFewValues();
      const value = bytes.readUIntLE(at, valueBytes);
      at += valueBytes;
      const end = Math.min(count, filled + length);
      numbers.fill(value, filled, end);
      filled = end;
    } else {
      const packed = Math.min(count - filled, length * 8);
      if (at + Math.ceil((packed * width) / 8) > bytes.length) throw tooFewValues();
      unpackBits(bytes, at, { width, numbers, first: filled, count: packed });
      filled += packed;
      at += length * width;
    }
  }
  return numbers;
}

/** Reads `count` levels of `width` bits each, the highest bit first (BIT_PACKED): what writers used before they used runs. */
export function readPackedLevels(bytes: Buffer, width: number, count: number): Int32Array {
  const levels = new Int32Array(count);
  for (let at = 0, bit = 0; at < count; at++)
    for (let more = 0; more < width; more++, bit++) {
      const byte = bytes[bit >> 3];
      if (byte === undefined) throw tooFewValues();
      levels[at] = ((levels[at] as number) << 1) | ((byte >> (7 - (bit & 7))) & 1);
    }
  return levels;
}

interface PackedNumbers {
  readonly width: number;
  readonly numbers: Int32Array;
  /** Which of `numbers` is filled first, and how many are. */
  readonly first: number;
  readonly count: number;
}

/** With one byte more, what is held of narrower numbers stays within 32 bits. */
const shiftedBitsMax = 24;

/** Hot: a step for each value of a dictionary-encoded page, and for each null. */
function unpackBits(bytes: Buffer, from: number, packed: PackedNumbers): void {
  const { width, numbers, first, count } = packed;
  if (width > shiftedBitsMax) return unpackWideBits(bytes, from, packed);
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
}

function unpackWideBits(bytes: Buffer, from: number, { width, numbers, first, count }: PackedNumbers): void {
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
