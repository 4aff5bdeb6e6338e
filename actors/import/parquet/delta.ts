import { limits } from '../../../protocol/limits.ts';
import type { SchemaElement } from './metadata.ts';
import { type PageValues, type StringValues, stringValues, wideIntegers } from './page-values.ts';
import { ParquetError, tooFewValues } from './parquet-error.ts';
import { readThriftVarint, readZigzag, type ThriftReader } from './thrift.ts';

const blockValuesMax = 1 << 20;
const miniblocksMax = 1_024;

/** Reads `count` integers that are written as differences (DELTA_BINARY_PACKED). */
export function readDeltaIntegers(reader: ThriftReader, element: SchemaElement, count: number): PageValues {
  if (element.type === 'INT32') return { kind: 'numbers', values: deltaIntegers(reader, count) };
  if (element.type !== 'INT64')
    throw new ParquetError(`a column of ${element.type} is written as differences of integers`);
  const values = wideIntegers(new BigInt64Array(count));
  eachDelta(reader, count, (low, high, at) => {
    values.halves[at * 2] = low;
    values.halves[at * 2 + 1] = high;
  });
  return values;
}

/** Reads `count` strings: first their lengths, as differences, then their bytes (DELTA_LENGTH_BYTE_ARRAY). */
export function readDeltaLengths(source: Buffer, reader: ThriftReader, count: number): StringValues {
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
  return stringValues(source, starts, ends);
}

/**
 * Reads `count` strings of which each begins as the one before it (DELTA_BYTE_ARRAY): how many bytes they share, then the rest of each.
 * Together they may be far longer than their page, so their sum is checked before memory is made for it.
 */
export function readDeltaStrings(source: Buffer, reader: ThriftReader, count: number): StringValues {
  const shared = deltaIntegers(reader, count);
  const rests = readDeltaLengths(source, reader, count);
  let total = 0;
  for (let value = 0; value < count; value++)
    total += (shared[value] as number) + (rests.ends[value] as number) - (rests.starts[value] as number);
  if (total > limits.parquetPageBytesMax)
    throw new ParquetError(
      `the strings of a page take ${total} bytes, and at most ${limits.parquetPageBytesMax} are read: write smaller pages`,
    );
  const joined = Buffer.alloc(total);
  const starts = new Uint32Array(count);
  const ends = new Uint32Array(count);
  let at = 0;
  for (let value = 0; value < count; value++) {
    const sharedBytes = shared[value] as number;
    const before = value === 0 ? 0 : (starts[value - 1] as number);
    const beforeEnd = value === 0 ? 0 : (ends[value - 1] as number);
    if (sharedBytes < 0 || before + sharedBytes > beforeEnd)
      throw new ParquetError('a string shares more bytes with the one before than that one has');
    starts[value] = at;
    at += joined.copy(joined, at, before, before + sharedBytes);
    at += source.copy(joined, at, rests.starts[value], rests.ends[value]);
    ends[value] = at;
  }
  return stringValues(joined, starts, ends);
}

function deltaIntegers(reader: ThriftReader, count: number): Int32Array {
  const values = new Int32Array(count);
  eachDelta(reader, count, (low, _, at) => {
    values[at] = low;
  });
  return values;
}

/**
 * Visits `count` integers of 64 bits, each as its lower and upper 32 bits. They stand in blocks of miniblocks, each with a width in bits
 * of its own and a least difference of its block, which is added to all.
 *
 * Hot, and by halves: with BigInt it took far longer, and V8's optimising compiler ended the process on it (Node 20.20).
 */
function eachDelta(
  reader: ThriftReader,
  count: number,
  visit: (low: number, high: number, at: number) => void,
): void {
  const { miniblocks, values } = readBlockShape(reader);
  readZigzag(reader);
  let { low, high } = reader;
  if (count > 0) visit(low, high, 0);
  for (let at = 1; at < count; ) {
    readZigzag(reader);
    const { low: leastLow, high: leastHigh } = reader;
    const widths = reader.offset;
    reader.offset += miniblocks;
    if (reader.offset > reader.view.byteLength) throw tooFewValues();
    for (let miniblock = 0; miniblock < miniblocks && at < count; miniblock++) {
      const width = reader.view.getUint8(widths + miniblock);
      if (width > 64) throw new ParquetError(`the differences of a page have ${width} bits, of 64 at most`);
      const end = reader.offset + Math.ceil((values * width) / 8);
      let bit = reader.offset * 8;
      for (let i = 0; i < values && at < count; i++, bit += width) {
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

/** Reads the head of delta-encoded values: how many miniblocks a block has, and how many values a miniblock. */
function readBlockShape(reader: ThriftReader): { readonly miniblocks: number; readonly values: number } {
  const blockValues = readThriftVarint(reader);
  const miniblocks = readThriftVarint(reader);
  // How many values there are, which the page's header says too.
  readThriftVarint(reader);
  const values = blockValues / miniblocks;
  const isPossible = blockValues <= blockValuesMax && miniblocks <= miniblocksMax;
  if (!isPossible || !Number.isInteger(values) || values === 0)
    throw new ParquetError('a block of differences has an impossible size');
  return { miniblocks, values };
}

/** Answers the `width` bits from bit number `bit` on, the lowest first: at most 32, as a signed integer. Hot. */
function bitsAt(view: DataView, bit: number, width: number): number {
  if (width === 0) return 0;
  const first = Math.floor(bit / 8);
  const shift = bit - first * 8;
  if (first + 5 > view.byteLength) return bitsNearEnd(view, { first, shift, width });
  let word = view.getUint32(first, true) >>> shift;
  if (shift > 0) word |= view.getUint8(first + 4) << (32 - shift);
  return width === 32 ? word | 0 : word & ((1 << width) - 1);
}

/** Reads bits where fewer than five bytes are left, one byte after the other. */
function bitsNearEnd(
  view: DataView,
  { first, shift, width }: { readonly first: number; readonly shift: number; readonly width: number },
): number {
  const last = first + ((shift + width - 1) >> 3);
  if (last >= view.byteLength) throw tooFewValues();
  let word = 0;
  for (let at = last; at >= first; at--) word = word * 256 + view.getUint8(at);
  return (Math.floor(word / 2 ** shift) % 2 ** width) | 0;
}
