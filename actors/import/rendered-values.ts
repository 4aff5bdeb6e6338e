/**
 * Values of one column, each as JSON and as the entry of its key's column: made once, and written as often as they come. Those of a
 * dictionary, or of the rows that come next.
 *
 * Memory: a value's JSON, and `renderedValueBytes`.
 */
import type { ViewedBytes } from '../../src/base/viewed-bytes.ts';
import type { StringTable } from '../columns/string-table.ts';
import { valueKinds } from '../columns/value-kinds.ts';
import { JsonBytes } from './json-bytes.ts';

/** Kinds beside those of columns, of which `missing` is one that was not rendered. `wide`: an integer of 64 bits by its halves. `broken`: one of which `problemOf` knows what is wrong. */
export const renderedKinds = { ...valueKinds, wide: 254, broken: 255 } as const;

/** Where strings stand before they were escaped. */
export interface RawStrings {
  readonly viewed: ViewedBytes;
  readonly starts: Uint32Array;
  readonly ends: Uint32Array;
}

const notAsked = -2;
/** Its place, kind, number, and a string's number. */
export const renderedValueBytes = 21;

export class RenderedValues {
  json: JsonBytes;
  readonly starts: Uint32Array;
  readonly ends: Uint32Array;
  readonly kinds: Uint8Array;
  readonly numbers: Float64Array;
  /** The same: of `wide` ones the lower and the higher 32 bits. */
  readonly halves: Int32Array;
  /** The strings as they were before JSON escaped them; null where what stands in the quotes is what they are. */
  readonly raw: RawStrings | null;
  /** What the longest of them takes. */
  longest = 0;
  /** Where the JSON of the next one begins. */
  #start = 0;
  readonly #problems = new Map<number, string>();
  readonly #strings: Int32Array | null;
  #stringsOf = -1;

  /** `isLasting`: the same values as long as it is used, so that the numbers of their strings are kept. */
  constructor(
    count: number,
    {
      bytes,
      raw = null,
      isLasting,
    }: { readonly bytes: number; readonly raw?: RawStrings | null; readonly isLasting: boolean },
  ) {
    this.json = new JsonBytes(new ArrayBuffer(bytes));
    this.starts = new Uint32Array(count);
    this.ends = new Uint32Array(count);
    this.kinds = new Uint8Array(count);
    this.numbers = new Float64Array(count);
    this.halves = new Int32Array(this.numbers.buffer);
    this.raw = raw;
    this.#strings = isLasting ? new Int32Array(count) : null;
  }

  /** Makes room for so many bytes more of JSON. */
  reserve(bytes: number): void {
    const { json } = this;
    const needed = json.at + bytes;
    if (needed <= json.bytes.length) return;
    const grown = new JsonBytes(new ArrayBuffer(Math.max(needed, json.bytes.length * 2)));
    grown.copy(json.bytes, 0, json.at);
    this.json = grown;
  }

  /** Forgets all values. */
  clear(): void {
    this.json.at = 0;
    this.#start = 0;
    this.longest = 0;
    this.#problems.clear();
  }

  /** Notes that the JSON of a value was written. */
  end(at: number, kind: number, number: number): void {
    this.kinds[at] = kind;
    this.numbers[at] = number;
    this.#close(at);
  }

  endWide(at: number, low: number, high: number): void {
    this.kinds[at] = renderedKinds.wide;
    this.halves[at * 2] = low;
    this.halves[at * 2 + 1] = high;
    this.#close(at);
  }

  /** Notes that all JSON there is belongs to one value, with whatever was noted of parts of it. */
  endNested(at: number): void {
    this.#start = 0;
    this.end(at, renderedKinds.nested, 0);
  }

  endBroken(at: number, problem: string): void {
    this.#problems.set(at, problem);
    this.end(at, renderedKinds.broken, 0);
  }

  problemOf(at: number): string {
    return this.#problems.get(at) ?? 'it can’t be read';
  }

  /** The number that a chunk's table has for a string; it is asked once a chunk for those that last. */
  stringIn(chunk: number, table: StringTable, at: number): number {
    const strings = this.#strings;
    if (strings === null) return this.#addTo(table, at);
    if (this.#stringsOf !== chunk) {
      strings.fill(notAsked);
      this.#stringsOf = chunk;
    }
    const known = strings[at] as number;
    if (known !== notAsked) return known;
    const string = this.#addTo(table, at);
    strings[at] = string;
    return string;
  }

  #addTo(table: StringTable, at: number): number {
    const { raw, json, starts, ends } = this;
    if (raw !== null) return table.addBytes(raw.viewed, raw.starts[at] as number, raw.ends[at] as number);
    return table.addBytes(json, (starts[at] as number) + 1, (ends[at] as number) - 1);
  }

  #close(at: number): void {
    const end = this.json.at;
    const length = end - this.#start;
    this.starts[at] = this.#start;
    this.ends[at] = end;
    this.#start = end;
    if (length > this.longest) this.longest = length;
  }
}
