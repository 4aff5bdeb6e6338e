/**
 * The values of one field in the rows that come next, ready to be written: rendered column by column, each kind in a loop of its
 * own. Those of a dictionary are rendered when they come first, for all of its pages; a text that stands for itself is not rendered, but copied from
 * its page when its row is written.
 */
import { escapedBytesMax } from '../json-bytes.ts';
import { type RawStrings, RenderedValues, renderedKinds, renderedValueBytes } from '../rendered-values.ts';
import { isText, NotText } from './bytes-value.ts';
import type { ParquetColumn } from './column.ts';
import { countOf, type PageValues, type StringValues } from './page-values.ts';
import { ParquetError } from './parquet-error.ts';
import type { ParquetValue } from './parquet-value.ts';

const rowsMax = 2_048;
/** Values of all fields that a window holds at most: with many fields it has few rows. */
const cellsMax = 65_536;

export function windowRows(fields: number): number {
  return Math.min(rowsMax, Math.ceil(cellsMax / fields));
}

/** A larger dictionary is read as values that stand for themselves. */
const dictionaryValuesMax = 131_072;

/** What the rendered dictionaries of all fields may take together; what is over it goes without. */
export class DictionaryRoom {
  #left = 128 * 1024 * 1024;

  take(bytes: number): boolean {
    if (bytes > this.#left) return false;
    this.#left -= bytes;
    return true;
  }

  giveBack(bytes: number): void {
    this.#left += bytes;
  }
}

/** The values of one field in the rows at hand, to be written from. */
export interface FieldWindow {
  readonly name: string;
  /** How many bytes before and behind its JSON an id or an indexed text does not have. */
  readonly quoteBytes: number;
  /** Whether a whole number has a fraction in JSON alone. */
  readonly dropsFraction: boolean;
  /** For each row the place of its value among `rendered`, or else among `texts`; -1 for null. */
  readonly places: Int32Array;
  readonly rendered: RenderedValues | null;
  readonly texts: StringValues | null;
  /** Bytes of the longest value, before anything is escaped. */
  readonly longest: number;
  /** Bytes of a row's value, before anything is escaped. It is asked before the row is written, row by row. */
  bytesOf(row: number): number;
}

export class ParquetWindow implements FieldWindow {
  readonly name: string;
  readonly value: ParquetValue;
  readonly quoteBytes: number;
  readonly dropsFraction: boolean;
  readonly places: Int32Array;
  rendered: RenderedValues | null = null;
  texts: StringValues | null = null;
  longest = 0;
  readonly #room: DictionaryRoom;
  #window: RenderedValues | null = null;
  #dictionary: PageValues | null = null;
  #renderedDictionary: RenderedValues | null = null;
  #dictionaryBytes = 0;

  constructor(name: string, value: ParquetValue, rows: number, room: DictionaryRoom) {
    this.name = name;
    this.value = value;
    this.quoteBytes = value.quoteBytes;
    this.dropsFraction = value.dropsFraction;
    this.places = new Int32Array(rows);
    this.#room = room;
  }

  /** The next `count` rows of the column, which are at hand. */
  open(column: ParquetColumn, count: number): void {
    const { values } = column;
    column.take(this.places, count);
    // One that the column has no more is not held either: nobody counts it.
    if (this.#dictionary !== column.dictionary) this.#forgetDictionary();
    this.rendered = column.isShared ? this.#dictionaryOf(values) : null;
    this.texts = null;
    if (this.rendered !== null) this.#renderShared(this.rendered, values, count);
    else if (!this.value.isRaw) this.#render(values, count);
    else {
      if (values.kind !== 'bytes') throw new ParquetError('a column of texts has something else');
      if (this.value.expectsText) this.#expectTexts(values, count);
      this.texts = values;
      this.longest = longestOf(values, this.places, count);
    }
  }

  bytesOf(row: number): number {
    const place = this.places[row] as number;
    if (place < 0) return nullBytes;
    if (this.texts !== null) return (this.texts.ends[place] as number) - (this.texts.starts[place] as number);
    const { rendered } = this;
    return rendered === null ? 0 : (rendered.ends[place] as number) - (rendered.starts[place] as number);
  }

  /** The row group is over: nothing of its pages is held, for nobody counts it any more. */
  release(): void {
    this.rendered = null;
    this.texts = null;
    this.#forgetDictionary();
  }

  #expectTexts({ source, starts, ends }: StringValues, count: number): void {
    const { places } = this;
    for (let row = 0; row < count; row++) {
      const place = places[row] as number;
      if (place >= 0 && !isText(source, starts[place] as number, ends[place] as number)) throw new NotText();
    }
  }

  #render(values: PageValues, count: number): void {
    const { places, value } = this;
    const bytesMax = value.jsonBytesMax;
    this.#window ??= new RenderedValues(places.length, {
      bytes: places.length * (bytesMax ?? 0),
      isLasting: false,
    });
    const rendered = this.#window;
    rendered.clear();
    if (bytesMax === null) rendered.reserve(binaryBytesMax(values, places, count));
    for (let row = 0; row < count; row++) {
      const place = places[row] as number;
      if (place < 0) continue;
      value.render(values, place, rendered, row);
      places[row] = row;
    }
    this.rendered = rendered;
    this.longest = rendered.longest;
  }

  #renderShared(rendered: RenderedValues, values: PageValues, count: number): void {
    const { places, value } = this;
    const { kinds } = rendered;
    for (let row = 0; row < count; row++) {
      const place = places[row] as number;
      if (place >= 0 && kinds[place] === renderedKinds.missing) value.render(values, place, rendered, place);
    }
    this.longest = rendered.longest;
  }

  #dictionaryOf(values: PageValues): RenderedValues | null {
    if (this.#dictionary === values) return this.#renderedDictionary;
    this.#forgetDictionary();
    this.#dictionary = values;
    this.#renderedDictionary = this.#roomForDictionary(values);
    return this.#renderedDictionary;
  }

  #forgetDictionary(): void {
    this.#room.giveBack(this.#dictionaryBytes);
    this.#dictionaryBytes = 0;
    this.#dictionary = null;
    this.#renderedDictionary = null;
  }

  #roomForDictionary(values: PageValues): RenderedValues | null {
    const { value } = this;
    const raw = value.isRaw && values.kind === 'bytes' ? values : null;
    const count = countOf(values);
    if (count > dictionaryValuesMax) return null;
    const strings = value.jsonBytesMax === null && values.kind === 'bytes' ? values : null;
    const bytes = strings === null ? count * (value.jsonBytesMax ?? 0) : jsonBytesMax(strings, count);
    const all = bytes + count * renderedValueBytes;
    if (!this.#room.take(all)) return null;
    this.#dictionaryBytes = all;
    return new RenderedValues(count, { bytes, raw, isLasting: true });
  }
}

/** `null`, as JSON. */
export const nullBytes = 4;

function jsonBytesMax({ starts, ends }: RawStrings, count: number): number {
  let bytes = 0;
  for (let at = 0; at < count; at++) bytes += (ends[at] as number) - (starts[at] as number);
  return bytes * escapedBytesMax + count * 2;
}

/** Answers how many bytes values take at most as base64 with its quotes. */
function binaryBytesMax(values: PageValues, places: Int32Array, count: number): number {
  if (values.kind !== 'bytes') return 0;
  let bytes = 0;
  for (let row = 0; row < count; row++) {
    const place = places[row] as number;
    if (place >= 0) bytes += ((values.ends[place] as number) - (values.starts[place] as number)) * 2 + 8;
  }
  return bytes;
}

function longestOf({ starts, ends }: StringValues, places: Int32Array, count: number): number {
  let longest = 0;
  for (let row = 0; row < count; row++) {
    const place = places[row] as number;
    if (place >= 0) longest = Math.max(longest, (ends[place] as number) - (starts[place] as number));
  }
  return longest;
}
