import type { SchemaElement } from './metadata.ts';
import { type PageValues, stringValues, wideIntegers } from './page-values.ts';
import { ParquetError, tooFewValues } from './parquet-error.ts';

/** Reads `count` values that stand one behind the other, each as its type has it (the encoding PLAIN). */
export function readPlain(
  raw: Uint8Array,
  offset: number,
  element: SchemaElement,
  count: number,
): PageValues {
  if (element.type === 'BOOLEAN') return readBits(raw, offset, count);
  if (element.type === 'BYTE_ARRAY') return readStrings(raw, offset, count);
  const bytes = count * widthOf(element);
  if (offset + bytes > raw.length) throw tooFewValues();
  // A copy begins at an address where its numbers may begin.
  return fixedValues(Uint8Array.from(raw.subarray(offset, offset + bytes)), element, count);
}

/** Makes `count` values of bytes that hold those alone, and begin at a multiple of eight. */
export function fixedValues(bytes: Uint8Array, element: SchemaElement, count: number): PageValues {
  const { buffer } = bytes;
  switch (element.type) {
    case 'INT32':
      return { kind: 'numbers', values: new Int32Array(buffer) };
    case 'FLOAT':
      return { kind: 'numbers', values: new Float32Array(buffer) };
    case 'DOUBLE':
      return { kind: 'numbers', values: new Float64Array(buffer) };
    case 'INT64':
      return wideIntegers(new BigInt64Array(buffer as ArrayBuffer));
    default: {
      const width = widthOf(element);
      const starts = Uint32Array.from({ length: count }, (_, at) => at * width);
      const ends = starts.map((start) => start + width);
      return stringValues(Buffer.from(buffer), starts, ends);
    }
  }
}

/** Answers how many bytes a value of a type of fixed length takes; 0 for other types. */
export function widthOf({ type, type_length: length }: SchemaElement): number {
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
      if (length === undefined || length <= 0)
        throw new ParquetError('a column of strings of one length lacks that length');
      return length;
    default:
      return 0;
  }
}

function readBits(raw: Uint8Array, offset: number, count: number): PageValues {
  if (offset + Math.ceil(count / 8) > raw.length) throw tooFewValues();
  const values = new Uint8Array(count);
  for (let at = 0; at < count; at++) values[at] = ((raw[offset + (at >> 3)] as number) >> (at & 7)) & 1;
  return { kind: 'numbers', values };
}

function readStrings(raw: Uint8Array, offset: number, count: number): PageValues {
  const source = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength);
  if (offset + count * 4 > source.length) throw tooFewValues();
  const starts = new Uint32Array(count);
  const ends = new Uint32Array(count);
  let at = offset;
  for (let value = 0; value < count; value++) {
    if (at + 4 > source.length) throw tooFewValues();
    const start = at + 4;
    at = start + source.readUInt32LE(at);
    if (at > source.length) throw new ParquetError('a string goes past its page');
    starts[value] = start;
    ends[value] = at;
  }
  return stringValues(source, starts, ends);
}
