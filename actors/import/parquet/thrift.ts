/**
 * Thrift's compact protocol, in which Parquet writes footers and page headers. hyparquet reads them; here their sizes are checked
 * before it does, because it believes each count that it finds. Numbers of this protocol stand in delta-encoded pages too.
 */
import { ParquetError, tooFewValues } from './parquet-error.ts';

export interface ThriftReader {
  readonly view: DataView;
  offset: number;
  /** The number that was read last, exact in 64 bits: its lower and its upper half, each a signed integer of 32 bits. */
  low: number;
  high: number;
}

export function thriftReader(bytes: Uint8Array): ThriftReader {
  return {
    view: new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength),
    offset: 0,
    low: 0,
    high: 0,
  };
}

/** Reads an unsigned number of at most 64 bits. The answer is not exact past 2^53; the reader's halves are. */
export function readThriftVarint(reader: ThriftReader): number {
  let [low, high] = [0, 0];
  for (let shift = 0; shift < 70; shift += 7) {
    if (reader.offset >= reader.view.byteLength) throw tooFewValues();
    const byte = reader.view.getUint8(reader.offset++);
    const bits = byte & 0x7f;
    if (shift < 32) low |= bits << shift;
    if (shift > 31) high |= bits << (shift - 32);
    else if (shift > 25) high |= bits >>> (32 - shift);
    if (byte < 0x80) {
      reader.low = low;
      reader.high = high;
      return (high >>> 0) * 2 ** 32 + (low >>> 0);
    }
  }
  throw new ParquetError('the file has a number of more than 64 bits');
}

/** Reads a signed number, whose lowest bit is its sign, into the reader's halves. */
export function readZigzag(reader: ThriftReader): void {
  readThriftVarint(reader);
  const { low, high } = reader;
  const sign = -(low & 1);
  reader.low = ((low >>> 1) | (high << 31)) ^ sign;
  reader.high = (high >>> 1) ^ sign;
}

const depthMax = 16;
/** Structures, lists and values of one footer or header. */
const valuesMax = 2_000_000;
/** The longest texts are statistics of long strings, and what writers note of themselves. */
const textBytesMax = 1024 * 1024;

/** The type numbers of the compact protocol. */
const types = {
  true: 1,
  false: 2,
  byte: 3,
  i16: 4,
  i64: 6,
  double: 7,
  text: 8,
  list: 9,
  struct: 12,
} as const;

/**
 * Walks one structure without making anything of it. Throws ParquetError where it is too deep or too large, or a text in it is; throws
 * RangeError where it, or a list in it, is longer than the bytes.
 */
export function checkThrift(bytes: Uint8Array): void {
  const reader = thriftReader(bytes);
  const { byteLength } = reader.view;
  let values = 0;
  const readByte = (): number => {
    if (reader.offset >= byteLength) throw pastEnd();
    return reader.view.getUint8(reader.offset++);
  };
  const skip = (type: number, depth: number): void => {
    if (depth > depthMax || ++values > valuesMax)
      throw new ParquetError("the file's structure is too deep or too large");
    if (type === types.true || type === types.false) return;
    if (type === types.byte) reader.offset++;
    else if (type >= types.i16 && type <= types.i64) readThriftVarint(reader);
    else if (type === types.double) reader.offset += 8;
    else if (type === types.text) {
      const length = readThriftVarint(reader);
      if (length > textBytesMax) throw new ParquetError('a text of its structure is too long');
      reader.offset += length;
    } else if (type === types.list) {
      const head = readByte();
      const size = head >> 4 === 15 ? readThriftVarint(reader) : head >> 4;
      const element = head & 0x0f;
      if (size > byteLength - reader.offset) throw pastEnd();
      // In a list, a truth value takes a byte.
      const isTruth = element === types.true || element === types.false;
      for (let i = 0; i < size; i++) skip(isTruth ? types.byte : element, depth + 1);
    } else if (type === types.struct) {
      for (let head = readByte(); (head & 0x0f) !== 0; head = readByte()) {
        if (head >> 4 === 0) readThriftVarint(reader);
        skip(head & 0x0f, depth + 1);
      }
    } else throw new ParquetError("the file's structure has a value of an unknown type");
    if (reader.offset > byteLength) throw pastEnd();
  };
  skip(types.struct, 0);
}

function pastEnd(): RangeError {
  return new RangeError('a structure goes past its end');
}
