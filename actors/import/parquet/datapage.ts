import { unpack } from './codec.ts';
import { readRuns, readValues } from './encoding.ts';
import type { PageHeader, SchemaElement } from './metadata.ts';
import { countOf, type PageValues } from './page-values.ts';
import { ParquetError } from './parquet-error.ts';

/** The rows of one data page of a flat column. */
export interface DataPage {
  readonly rows: number;
  /** For each row 1 where it has a value and 0 where it is null; null where every row has one. */
  readonly present: Int32Array | null;
  /** Where the page's values stand in the dictionary, each within it; null where the page has values of its own. */
  readonly indexes: Int32Array | null;
  /** The dictionary's, or the page's own. */
  readonly values: PageValues;
}

/** What a page's bytes mean depends on. */
export interface PageShape {
  readonly element: SchemaElement;
  readonly codec: string;
  readonly dictionary: PageValues | null;
}

/** Answers how many rows a data page has, of either version. The header is not believed: whoever asks compares it with the row group. */
export function pageRows({ data_page_header: v1, data_page_header_v2: v2 }: PageHeader): number {
  const count = (v1 ?? v2)?.num_values;
  if (count === undefined || !Number.isInteger(count) || count < 0)
    throw new ParquetError('a page does not say how many values it has');
  return count;
}

export function readDictionaryPage(header: PageHeader, packed: Buffer, shape: PageShape): PageValues {
  const count = header.dictionary_page_header?.num_values ?? -1;
  const raw = unpack(shape.codec, packed, header.uncompressed_page_size);
  if (count < 0 || count > raw.length * 8)
    throw new ParquetError('a dictionary has fewer values than it says');
  return readValues(raw, 0, { element: shape.element, encoding: 'PLAIN', count });
}

/** Reads a data page of version 1, in which it is packed with the values which rows are null. */
export function readDataPage(header: PageHeader, packed: Buffer, shape: PageShape): DataPage {
  const rows = pageRows(header);
  const raw = unpack(shape.codec, packed, header.uncompressed_page_size);
  const encoding = header.data_page_header?.encoding;
  if (!isOptional(shape)) return valuesOf(raw, { offset: 0, rows, present: null, encoding }, shape);
  const view = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength);
  if (view.length < 4) throw new ParquetError('a page ends in its head');
  const offset = 4 + view.readUInt32LE(0);
  if (offset > view.length) throw endsInLevels();
  const present = readRuns(view.subarray(4, offset), 1, rows);
  return valuesOf(raw, { offset, rows, present, encoding }, shape);
}

/** Reads a data page of version 2, in which it stands before the packed values which rows are null. */
export function readDataPageV2(header: PageHeader, packed: Buffer, shape: PageShape): DataPage {
  const rows = pageRows(header);
  const page = header.data_page_header_v2;
  const repetitions = page?.repetition_levels_byte_length ?? 0;
  const definitions = page?.definition_levels_byte_length ?? 0;
  const fits = definitions <= packed.length && definitions <= header.uncompressed_page_size;
  if (repetitions !== 0 || definitions < 0 || !fits) throw endsInLevels();
  const present = isOptional(shape) ? readRuns(packed.subarray(0, definitions), 1, rows) : null;
  const body = packed.subarray(definitions);
  const rawBytes = header.uncompressed_page_size - definitions;
  const raw = page?.is_compressed === false ? body : unpack(shape.codec, body, rawBytes);
  return valuesOf(raw, { offset: 0, rows, present, encoding: page?.encoding }, shape);
}

function isOptional({ element }: PageShape): boolean {
  return element.repetition_type === 'OPTIONAL';
}

function endsInLevels(): ParquetError {
  return new ParquetError('a page ends in its levels');
}

interface PageBody {
  /** Where the values begin. */
  readonly offset: number;
  readonly rows: number;
  readonly present: Int32Array | null;
  readonly encoding: string | undefined;
}

function valuesOf(raw: Uint8Array, body: PageBody, { element, dictionary }: PageShape): DataPage {
  const { offset, rows, encoding } = body;
  const count = body.present === null ? rows : countPresent(body.present);
  const present = count === rows ? null : body.present;
  if (encoding === 'RLE_DICTIONARY' || encoding === 'PLAIN_DICTIONARY') {
    const indexes = readIndexes(raw, { offset, count, dictionary });
    return { rows, present, indexes, values: dictionary ?? noValues };
  }
  return { rows, present, indexes: null, values: readValues(raw, offset, { element, encoding, count }) };
}

/** What a page of nulls alone has where there is no dictionary. */
const noValues: PageValues = { kind: 'numbers', values: new Uint8Array(0) };

function countPresent(present: Int32Array): number {
  let count = 0;
  for (let row = 0; row < present.length; row++) {
    if ((present[row] as number) > 1) throw new ParquetError('a value is neither there nor missing');
    count += present[row] as number;
  }
  return count;
}

function readIndexes(
  raw: Uint8Array,
  {
    offset,
    count,
    dictionary,
  }: { readonly offset: number; readonly count: number; readonly dictionary: PageValues | null },
): Int32Array {
  if (count === 0) return new Int32Array(0);
  if (dictionary === null || offset >= raw.length) throw new ParquetError('a page has no dictionary');
  const bytes = Buffer.from(raw.buffer, raw.byteOffset + offset, raw.byteLength - offset);
  const indexes = readRuns(bytes.subarray(1), bytes[0] as number, count);
  const size = countOf(dictionary);
  for (let at = 0; at < count; at++) {
    const index = indexes[at] as number;
    if (index < 0 || index >= size) throw new ParquetError('a value is not in its dictionary');
  }
  return indexes;
}
