import { isUtf8 } from 'node:buffer';
import { scalarBytesMax } from '../json-bytes.ts';
import { type RenderedValues, renderedKinds } from '../rendered-values.ts';
import type { PageValues, StringValues } from './page-values.ts';
import { ParquetError } from './parquet-error.ts';
import type { ParquetValue } from './parquet-value.ts';

/** A column of bytes of which the file does not say what they are, and which were taken for text, has a value that is none. */
export class NotText extends Error {
  override name = 'NotText';
}

/** Whether bytes are a text: UTF-8 without control characters other than a tab and the ends of lines. */
export function isText(source: Buffer, start: number, end: number): boolean {
  let isAscii = true;
  for (let at = start; at < end; at++) {
    const byte = source[at] as number;
    if (byte >= 0x80) isAscii = false;
    else if ((byte < 0x20 && byte !== 0x09 && byte !== 0x0a && byte !== 0x0d) || byte === 0x7f) return false;
  }
  return isAscii || isUtf8(source.subarray(start, end));
}

/** Whether all values are texts. */
export function areTexts({ source, starts, ends }: StringValues): boolean {
  for (let at = 0; at < starts.length; at++)
    if (!isText(source, starts[at] as number, ends[at] as number)) return false;
  return true;
}

const base64Block = 1024 * 3;

/** Bytes as base64. */
export class BinaryValue implements ParquetValue {
  readonly kind = 'text';
  readonly isRaw = false;
  readonly expectsText = false;
  readonly jsonBytesMax = null;
  readonly quoteBytes = 1;
  readonly dropsFraction = false;

  render(values: PageValues, place: number, into: RenderedValues, at: number): void {
    if (values.kind !== 'bytes') return into.endBroken(at, 'it is no bytes');
    const end = values.ends[place] as number;
    const { json } = into;
    json.byte(0x22);
    for (let from = values.starts[place] as number; from < end; from += base64Block)
      json.ascii(values.source.toString('base64', from, Math.min(end, from + base64Block)));
    json.byte(0x22);
    into.end(at, renderedKinds.string, 0);
  }
}

/** Numbers of 16 bits. */
export class HalfValue implements ParquetValue {
  readonly kind = 'float';
  readonly isRaw = false;
  readonly expectsText = false;
  readonly jsonBytesMax = scalarBytesMax;
  readonly quoteBytes = 0;
  readonly dropsFraction = true;

  render(values: PageValues, place: number, into: RenderedValues, at: number): void {
    const value = halfAt(values, place);
    if (!Number.isFinite(value)) {
      into.json.ascii('null');
      return into.end(at, renderedKinds.null, 0);
    }
    into.json.double(value);
    into.end(at, renderedKinds.float, value);
  }
}

/** The number of 16 bits (IEEE 754) at a place. */
export function halfAt(values: PageValues, place: number): number {
  if (values.kind !== 'bytes' || (values.ends[place] as number) - (values.starts[place] as number) !== 2)
    throw new ParquetError('a number of 16 bits has another length');
  const bits = values.source.readUInt16LE(values.starts[place] as number);
  const sign = bits >> 15 === 0 ? 1 : -1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}
