import { unpack } from './codec.ts';
import { readPackedLevels, readRuns, readValues } from './encoding.ts';
import type { PageHeader, SchemaElement } from './metadata.ts';
import { countOf, type PageValues } from './page-values.ts';
import { ParquetError } from './parquet-error.ts';

/** The values of one data page, nulls among them. */
export interface DataPage {
  /** How many values and nulls the page has; in a flat column these are its rows. */
  readonly rows: number;
  /** By entry 1 where there is a value and 0 where it is null; null where no entry is null, or where there are levels. */
  readonly present: Int32Array | null;
  /** The levels of each entry; null where they were not asked for. */
  readonly levels: PageLevels | null;
  /** Where the page's values stand in the dictionary, each within it; null where the page has values of its own. */
  readonly indexes: Int32Array | null;
  /** The dictionary's, or the page's own. */
  readonly values: PageValues;
}

export interface PageLevels {
  readonly repetitions: Int32Array;
  readonly definitions: Int32Array;
}

/** What a page's bytes mean depends on. */
export interface PageShape {
  readonly element: SchemaElement;
  readonly repetitionMax: number;
  readonly definitionMax: number;
  /** Whether levels are asked for, and not only which values are null. */
  readonly hasLevels: boolean;
  readonly codec: string;
  readonly dictionary: PageValues | null;
}

/** Answers how many values and nulls a data page has, of either version. The header is not believed: whoever asks compares it with the row group. */
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

/** Reads a data page of version 1, in which the levels are packed with the values. */
export function readDataPage(header: PageHeader, packed: Buffer, shape: PageShape): DataPage {
  const rows = pageRows(header);
  const raw = unpack(shape.codec, packed, header.uncompressed_page_size);
  const page = header.data_page_header;
  const bytes = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength);
  const levels = new LevelReader(bytes, rows);
  const repetitions = levels.next(shape.repetitionMax, page?.repetition_level_encoding);
  const definitions = levels.next(shape.definitionMax, page?.definition_level_encoding);
  return valuesOf(
    raw,
    { offset: levels.at, rows, repetitions, definitions, encoding: page?.encoding },
    shape,
  );
}

/** Levels of a page of version 1, each behind its length. */
class LevelReader {
  readonly #bytes: Buffer;
  readonly #count: number;
  at = 0;

  constructor(bytes: Buffer, count: number) {
    this.#bytes = bytes;
    this.#count = count;
  }

  /** Reads the next levels, which are at most `max`; null where there are none. */
  next(max: number, encoding: string | undefined): Int32Array | null {
    if (max === 0) return null;
    const width = bitsOf(max);
    if (encoding === 'BIT_PACKED') {
      const end = this.at + Math.ceil((this.#count * width) / 8);
      return this.#upTo(end, (bytes) => readPackedLevels(bytes, width, this.#count), this.at);
    }
    if (this.at + 4 > this.#bytes.length) throw new ParquetError('a page ends in its head');
    const start = this.at + 4;
    const end = start + this.#bytes.readUInt32LE(this.at);
    return this.#upTo(end, (bytes) => readRuns(bytes, width, this.#count), start);
  }

  #upTo(end: number, read: (bytes: Buffer) => Int32Array, start: number): Int32Array {
    if (end > this.#bytes.length) throw endsInLevels();
    this.at = end;
    return read(this.#bytes.subarray(start, end));
  }
}

/** The bits that the greatest level takes. */
function bitsOf(max: number): number {
  return 32 - Math.clz32(max);
}

/** Reads a data page of version 2, in which the levels stand before the packed values. */
export function readDataPageV2(header: PageHeader, packed: Buffer, shape: PageShape): DataPage {
  const rows = pageRows(header);
  const page = header.data_page_header_v2;
  const repetitionBytes = page?.repetition_levels_byte_length ?? 0;
  const definitionBytes = page?.definition_levels_byte_length ?? 0;
  const levelBytes = repetitionBytes + definitionBytes;
  const fits = levelBytes <= packed.length && levelBytes <= header.uncompressed_page_size;
  if (repetitionBytes < 0 || definitionBytes < 0 || !fits) throw endsInLevels();
  const levels = (start: number, end: number, max: number) =>
    max === 0 ? null : readRuns(packed.subarray(start, end), bitsOf(max), rows);
  const repetitions = levels(0, repetitionBytes, shape.repetitionMax);
  const definitions = levels(repetitionBytes, levelBytes, shape.definitionMax);
  const body = packed.subarray(levelBytes);
  const rawBytes = header.uncompressed_page_size - levelBytes;
  const raw = page?.is_compressed === false ? body : unpack(shape.codec, body, rawBytes);
  return valuesOf(raw, { offset: 0, rows, repetitions, definitions, encoding: page?.encoding }, shape);
}

function endsInLevels(): ParquetError {
  return new ParquetError('a page ends in its levels');
}

interface PageBody {
  /** Where the values begin. */
  readonly offset: number;
  readonly rows: number;
  readonly repetitions: Int32Array | null;
  readonly definitions: Int32Array | null;
  readonly encoding: string | undefined;
}

function valuesOf(raw: Uint8Array, body: PageBody, shape: PageShape): DataPage {
  const { offset, rows, repetitions, definitions, encoding } = body;
  const { element, dictionary, repetitionMax, definitionMax, hasLevels } = shape;
  if (repetitions !== null) checkLevels(repetitions, repetitionMax);
  const count = definitions === null ? rows : countPresent(definitions, definitionMax);
  const none = () => new Int32Array(rows);
  const levels = !hasLevels
    ? null
    : { repetitions: repetitions ?? none(), definitions: definitions ?? none() };
  const present = !hasLevels && count < rows ? definitions : null;
  if (encoding === 'RLE_DICTIONARY' || encoding === 'PLAIN_DICTIONARY') {
    const indexes = readIndexes(raw, { offset, count, dictionary });
    return { rows, present, levels, indexes, values: dictionary ?? noValues };
  }
  const values = readValues(raw, offset, { element, encoding, count });
  return { rows, present, levels, indexes: null, values };
}

/** What a page of nulls alone has where there is no dictionary. */
const noValues: PageValues = { kind: 'numbers', values: new Uint8Array(0) };

function checkLevels(levels: Int32Array, max: number): void {
  for (let at = 0; at < levels.length; at++)
    if ((levels[at] as number) > max || (levels[at] as number) < 0)
      throw new ParquetError('a value has a level that its column does not have');
}

/** Counts the levels that are the greatest: those of values that are there. */
function countPresent(levels: Int32Array, max: number): number {
  let count = 0;
  for (let at = 0; at < levels.length; at++) {
    const level = levels[at] as number;
    if (level === max) count++;
    else if (level > max || level < 0)
      throw new ParquetError('a value has a level that its column does not have');
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
