import { must } from '../../src/base/assert.ts';
import { bitCount, type ColumnValues } from '../columns/column-block.ts';
import type { SegmentColumns } from '../columns/columns-section.ts';
import {
  type ChunkPlan,
  evaluateChunk,
  type PlannedTerm,
  placesOf,
  planChunk,
} from '../columns/evaluate-filter.ts';
import type { ColumnTerm } from '../columns/filter-terms.ts';
import { storedColumn, storedIndex } from '../columns/stored-column.ts';
import type { ValueIndex } from '../columns/value-index.ts';
import type { Block, ReadTally } from '../storage/block-fetch.ts';
import type { SegmentReader } from '../storage/segment-reader.ts';
import type { TimeSlice } from './time-slice.ts';

export interface SegmentFilter {
  readonly terms: readonly ColumnTerm[];
  readonly slice: TimeSlice;
  /** Whether only those rows are wanted that columns are not sure of, because the sure ones were counted already. Default: false. */
  readonly unsureOnly?: boolean;
}

/** Bytes of columns that the first round reads; each further one reads four times as much. */
const firstRoundBytes = 1024 * 1024;
const roundBytesMax = 8 * 1024 * 1024;
/** Columns of a round: they are unpacked together. At least those of one chunk. */
const roundColumnsMax = 32;

/** A bit a row that may pass, or the same for all of them. */
export type ChunkState = 'none' | 'all' | Uint32Array;

interface ReadingChunk {
  readonly plan: ColumnsPlan;
  /** The blocks that were read, by their offsets. */
  readonly blocks: Promise<ReadonlyMap<number, Block>>;
}

type ColumnsPlan = ChunkPlan & { readonly kind: 'columns' };

/**
 * Which rows of a segment may pass a filter, as far as its columns tell: asked from the newest row down, chunk by chunk,
 * and only for chunks in which there is something to ask for.
 *
 * 1. Many chunks are settled by the directory, which is in memory.
 * 2. Columns of several chunks are asked for at a time, the more the longer a search goes on.
 * 3. A chunk is evaluated when its turn comes, about a millisecond; between two of them others have their turn.
 */
export class FilterRows {
  readonly #reader: SegmentReader;
  readonly #columns: SegmentColumns;
  readonly #filter: SegmentFilter;
  readonly #tally: ReadTally;
  /** What is known of the chunks that were asked about lately, by their numbers. */
  readonly #states = new Map<number, ChunkState>();
  /** By the number of a chunk, the rows that pass only if their documents do; a chunk that is not in it has none. */
  readonly #asks = new Map<number, 'all' | Uint32Array>();
  readonly #passed = new Set<number>();
  readonly #plans = new Map<number, ColumnsPlan>();
  readonly #reading = new Map<number, ReadingChunk>();
  #roundBytes = firstRoundBytes;

  constructor(reader: SegmentReader, columns: SegmentColumns, filter: SegmentFilter, tally: ReadTally) {
    this.#reader = reader;
    this.#columns = columns;
    this.#filter = filter;
    this.#tally = tally;
  }

  chunkOfRow(row: number): number {
    return this.#columns === 'none' ? 0 : this.#columns.chunkOfRow(row);
  }

  firstRowOf(chunk: number): number {
    return this.#columns === 'none' ? 0 : this.#columns.firstRow(chunk);
  }

  /** Whether the row's chunk is settled; `settle` comes before its rows are asked for otherwise. */
  isSettled(row: number): boolean {
    return this.#stateOf(this.chunkOfRow(row)) !== null;
  }

  /** Whether the chunk's columns are on their way, or need no read of the object store. */
  isNear(chunk: number): boolean {
    const plan = this.#plans.get(chunk);
    if (plan === undefined || this.#reading.has(chunk)) return true;
    return placesOf(plan.terms).every((place) => this.#reader.blocks.isAtHand(place));
  }

  /** Whether nothing has to be read to settle all chunks. */
  isInMemory(chunkCount: number): boolean {
    for (let chunk = 0; chunk < chunkCount; chunk++) {
      if (this.#stateOf(chunk) !== null) continue;
      const { terms } = must(this.#plans.get(chunk), 'a plan');
      if (terms.some(({ column }) => this.#reader.blocks.cached(column.place.offset) === undefined))
        return false;
    }
    return true;
  }

  /** Settles all chunks, and answers the rows that may pass, ascending; null where they are more than `rowsMax`. */
  async fewRows({
    chunkCount,
    rowsMax,
  }: {
    readonly chunkCount: number;
    readonly rowsMax: number;
  }): Promise<Uint32Array | null> {
    const rows = new Uint32Array(rowsMax);
    let count = 0;
    // Upwards, because what is above a chunk is forgotten when it is settled.
    for (let chunk = 0; chunk < chunkCount; chunk++) {
      const first = this.firstRowOf(chunk);
      if (this.#stateOf(chunk) === null) await this.settle(first, []);
      const state = this.#stateOf(chunk) ?? 'all';
      if (state === 'none') continue;
      if (state === 'all' || count + bitsIn(state) > rowsMax) return null;
      count = addRows(state, first, rows, count);
    }
    return rows.subarray(0, count);
  }

  /** Lets any row of the chunk pass until `reconsider`: its documents are looked at instead of its columns. */
  letPass(chunk: number): void {
    this.#states.set(chunk, 'all');
    this.#asks.set(chunk, 'all');
    this.#passed.add(chunk);
  }

  reconsider(): void {
    for (const chunk of this.#passed) {
      this.#states.delete(chunk);
      this.#asks.delete(chunk);
    }
    this.#passed.clear();
  }

  /** Whether each of the rows from `first` to before `end`, which are of one chunk and may pass, surely does. */
  isSure(first: number, end: number): boolean {
    const chunk = this.chunkOfRow(first);
    const asks = this.#asks.get(chunk);
    if (asks === undefined || asks === 'all') return asks === undefined;
    const chunkFirst = this.firstRowOf(chunk);
    return lastBit(asks, { from: first - chunkFirst, end: end - chunkFirst }) < 0;
  }

  /** What is known of a settled chunk: rows that may pass, and those of them that pass only if their documents do. */
  stateOf(chunk: number): { readonly passing: ChunkState; readonly asks: ChunkState } {
    return { passing: this.#stateOf(chunk) ?? 'all', asks: this.#asks.get(chunk) ?? 'none' };
  }

  /**
   * The end of the next rows that may pass: one more than the highest of `first` … `end - 1`, or `first` where none does.
   * Stops above a row that is not settled.
   */
  passingEnd(first: number, end: number): number {
    let below = end;
    while (below > first) {
      const chunk = this.chunkOfRow(below - 1);
      const state = this.#stateOf(chunk);
      if (state === null || state === 'all') return below;
      const chunkFirst = this.firstRowOf(chunk);
      const from = Math.max(first, chunkFirst);
      const found =
        state === 'none' ? -1 : lastBit(state, { from: from - chunkFirst, end: below - chunkFirst });
      if (found >= 0) return chunkFirst + found + 1;
      below = from;
    }
    return first;
  }

  /** The first of the neighbouring rows from `first` on that may pass and end at `end`, as `passingEnd` found it. */
  passingStart(first: number, end: number): number {
    const chunk = this.chunkOfRow(end - 1);
    const state = this.#stateOf(chunk);
    const chunkFirst = this.firstRowOf(chunk);
    const from = Math.max(first, chunkFirst);
    if (!(state instanceof Uint32Array)) return from;
    let start = end - 1;
    while (start > from && isSet(state, start - 1 - chunkFirst)) start--;
    return start;
  }

  /** Asks for the columns of the first of these chunks, newest first, that have to come from the object store. */
  readAhead(chunks: Iterable<number>): void {
    const wanted: { readonly chunk: number; readonly plan: ColumnsPlan }[] = [];
    let bytes = 0;
    let columns = 0;
    for (const chunk of chunks) {
      if (this.#stateOf(chunk) !== null || this.isNear(chunk)) continue;
      const plan = must(this.#plans.get(chunk), 'a plan');
      const places = placesOf(plan.terms);
      bytes += places.reduce((sum, { length }) => sum + length, 0);
      columns += places.length;
      if (wanted.length > 0 && (bytes > this.#roundBytes || columns > roundColumnsMax)) break;
      wanted.push({ chunk, plan });
    }
    if (wanted.length === 0) return;
    this.#roundBytes = Math.min(this.#roundBytes * 4, roundBytesMax);
    const blocks = this.#fetch(wanted.flatMap(({ plan }) => plan.terms));
    // Thrown when the chunk's turn comes; the search may stop before.
    blocks.catch(() => {});
    for (const { chunk, plan } of wanted) this.#reading.set(chunk, { plan, blocks });
  }

  /** Settles the row's chunk. `ahead`: chunks that will be asked for after it, newest first. */
  async settle(row: number, ahead: Iterable<number>): Promise<void> {
    const { slice } = this.#filter;
    const chunk = this.chunkOfRow(row);
    this.#forgetAbove(chunk);
    if (slice.due()) await slice.giveWay();
    // The walk notices at the documents; they move its place on, so that the next page does not begin here again.
    if (slice.timedOut) return this.letPass(chunk);
    if (!this.isNear(chunk)) this.readAhead(chunksFrom(chunk, ahead));
    const plan = must(this.#plans.get(chunk), 'a chunk that is not settled');
    const reading = this.#reading.get(chunk);
    const blocks = await (reading?.blocks ?? this.#fetch(plan.terms));
    this.#reading.delete(chunk);
    this.#states.set(chunk, this.#evaluate(chunk, plan, blocks));
  }

  /** Settles all chunks, the last one first: those before it are read ahead. */
  async settleAll(chunkCount: number): Promise<ChunkState[]> {
    const states: ChunkState[] = [];
    for (let chunk = chunkCount - 1; chunk >= 0; chunk--) {
      if (this.#stateOf(chunk) === null) await this.settle(this.firstRowOf(chunk), chunksBelow(chunk));
      states[chunk] = this.#stateOf(chunk) ?? 'all';
    }
    return states;
  }

  #fetch(terms: readonly PlannedTerm[]): Promise<ReadonlyMap<number, Block>> {
    return this.#reader.blocks
      .fetch(placesOf(terms), this.#tally)
      .then((blocks) => new Map(blocks.map((block) => [block.offset, block])));
  }

  #evaluate(chunk: number, plan: ColumnsPlan, blocks: ReadonlyMap<number, Block>): ChunkState {
    const rowCount = this.#columns === 'none' ? 0 : this.#columns.rowCount(chunk);
    const { objectKey, blocks: ownBlocks } = this.#reader;
    const columns: ColumnValues[] = [];
    const indexes: (ValueIndex | null)[] = [];
    for (const { column } of plan.terms) {
      const block = must(blocks.get(column.place.offset), 'a fetched column');
      const values = storedColumn(block, column, { objectKey, rowCount });
      columns.push(values);
      indexes.push(storedIndex(block, values, ownBlocks));
    }
    const { isExact } = plan;
    const { bits, count, asks } = evaluateChunk(rowCount, plan.terms, columns, { isExact, indexes });
    if (asks !== null) this.#asks.set(chunk, asks);
    if (this.#filter.unsureOnly === true) return asks ?? 'none';
    return count === 0 ? 'none' : bits;
  }

  /** Null where its columns have to be looked at. */
  #stateOf(chunk: number): ChunkState | null {
    const known = this.#states.get(chunk);
    if (known !== undefined) return known;
    if (this.#plans.has(chunk)) return null;
    const plan = this.#plan(chunk);
    if (plan.kind === 'columns') {
      this.#plans.set(chunk, plan);
      return null;
    }
    if (plan.kind === 'all' && !plan.isExact) this.#asks.set(chunk, 'all');
    const state =
      plan.kind === 'all' && plan.isExact && this.#filter.unsureOnly === true ? 'none' : plan.kind;
    this.#states.set(chunk, state);
    return state;
  }

  #plan(chunk: number): ChunkPlan {
    const { terms } = this.#filter;
    if (this.#columns !== 'none') return planChunk(this.#columns, chunk, terms);
    return terms.every(({ negated }) => negated) ? { kind: 'all', isExact: true } : { kind: 'none' };
  }

  /** Rows are asked for downwards. */
  #forgetAbove(chunk: number): void {
    for (const known of [this.#states, this.#asks, this.#plans, this.#reading, this.#passed])
      for (const other of known.keys()) if (other > chunk) known.delete(other);
  }
}

function* chunksBelow(chunk: number): Generator<number, void, void> {
  for (let next = chunk - 1; next >= 0; next--) yield next;
}

function* chunksFrom(first: number, ahead: Iterable<number>): Generator<number, void, void> {
  yield first;
  yield* ahead;
}

function bitsIn(bits: Uint32Array): number {
  let count = 0;
  for (let at = 0; at < bits.length; at++) count += bitCount(bits[at] as number);
  return count;
}

/** Adds the rows of a chunk to `rows` at `count`; answers where they end. */
function addRows(bits: Uint32Array, first: number, rows: Uint32Array, count: number): number {
  let end = count;
  for (let at = 0; at < bits.length; at++)
    for (let word = bits[at] as number; word !== 0; word &= word - 1)
      rows[end++] = first + at * 32 + 31 - Math.clz32(word & -word);
  return end;
}

export function isSet(bits: Uint32Array, at: number): boolean {
  return (((bits[at >>> 5] as number) >>> (at & 31)) & 1) === 1;
}

/** The highest set bit of `from` … `end - 1`, or -1. */
function lastBit(bits: Uint32Array, { from, end }: { readonly from: number; readonly end: number }): number {
  let at = (end - 1) >>> 5;
  let word = (bits[at] as number) & (0xffffffff >>> (31 - ((end - 1) & 31)));
  while (word === 0 && at * 32 > from) word = bits[--at] as number;
  const found = at * 32 + 31 - Math.clz32(word);
  return word !== 0 && found >= from ? found : -1;
}
