import { DataError, must } from '../../src/base/assert.ts';
import { bitsIn, type ColumnValues } from '../columns/column-block.ts';
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

type ColumnsPlan = ChunkPlan & { readonly kind: 'columns' };

/** What is known of a chunk. */
interface KnownChunk {
  /** Which rows may pass; null where the chunk's columns have to be looked at first. */
  state: ChunkState | null;
  /** Which of the rows in `state` pass only if their documents do. */
  asks: ChunkState;
  /** How many bits are set in `state`; 0 where it is no bits. */
  count: number;
  /** The columns to look at; null where the directory alone settled the chunk. */
  readonly plan: ColumnsPlan | null;
  /** The columns that are on their way, by their offsets. */
  reading: Promise<ReadonlyMap<number, Block>> | null;
}

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
  /** The chunks that were asked about lately, by their numbers, none of which is above `#highest`. Rows are asked for downwards: what lies above is forgotten. */
  readonly #chunks = new Map<number, KnownChunk>();
  #highest = -1;
  /** Numbers of the chunks of which `letPass` lets any row pass, until `reconsider`. */
  readonly #passed = new Set<number>();
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
    return this.#chunk(this.chunkOfRow(row)).state !== null;
  }

  /** Whether the chunk's columns are on their way, or need no read of the object store. */
  isNear(chunk: number): boolean {
    const { plan, reading } = this.#chunk(chunk);
    if (plan === null || reading !== null) return true;
    return placesOf(plan.terms).every((place) => this.#reader.blocks.isAtHand(place));
  }

  /** Whether nothing has to be read to settle all chunks. */
  isInMemory(chunkCount: number): boolean {
    for (let chunk = 0; chunk < chunkCount; chunk++) {
      const { state, plan } = this.#chunk(chunk);
      if (state === null && !this.#isCached(must(plan, 'a plan'))) return false;
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
      if (!this.settleAtHand(first)) await this.settle(first, []);
      const { state, count: passing } = this.#chunk(chunk);
      if (state === 'none') continue;
      if (!(state instanceof Uint32Array) || count + passing > rowsMax) return null;
      count = addRows(state, first, rows, count);
    }
    return rows.subarray(0, count);
  }

  /** Lets any row of the chunk pass until `reconsider`: its documents are looked at instead of its columns. */
  letPass(chunk: number): void {
    const known = this.#chunk(chunk);
    known.state = 'all';
    known.asks = 'all';
    this.#passed.add(chunk);
  }

  reconsider(): void {
    for (const chunk of this.#passed) this.#chunks.delete(chunk);
    this.#passed.clear();
  }

  /** Whether each of the rows from `first` to before `end`, which are of one chunk and may pass, surely does. */
  isSure(first: number, end: number): boolean {
    const chunk = this.chunkOfRow(first);
    const { asks } = this.#chunk(chunk);
    if (!(asks instanceof Uint32Array)) return asks === 'none';
    const chunkFirst = this.firstRowOf(chunk);
    return lastBit(asks, { from: first - chunkFirst, end: end - chunkFirst }) < 0;
  }

  /** What is known of a settled chunk: which rows may pass, how many bits of it are set, and which of the rows pass only if their documents do. */
  stateOf(chunk: number): {
    readonly passing: ChunkState;
    readonly count: number;
    readonly asks: ChunkState;
  } {
    const { state, count, asks } = this.#chunk(chunk);
    return { passing: state ?? 'all', count, asks };
  }

  /**
   * The end of the next rows that may pass: one more than the highest of `first` … `end - 1`, or `first` where none does.
   * Stops above a row that is not settled.
   */
  passingEnd(first: number, end: number): number {
    let below = end;
    while (below > first) {
      const chunk = this.chunkOfRow(below - 1);
      const { state } = this.#chunk(chunk);
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
    const { state } = this.#chunk(chunk);
    const chunkFirst = this.firstRowOf(chunk);
    const from = Math.max(first, chunkFirst);
    if (!(state instanceof Uint32Array)) return from;
    let start = end - 1;
    while (start > from && isSet(state, start - 1 - chunkFirst)) start--;
    return start;
  }

  /** Asks for the columns of the first of these chunks, newest first, that have to come from the object store. */
  readAhead(chunks: Iterable<number>): void {
    const wanted: { readonly known: KnownChunk; readonly plan: ColumnsPlan }[] = [];
    let bytes = 0;
    let columns = 0;
    for (const chunk of chunks) {
      const known = this.#chunk(chunk);
      const { state, plan } = known;
      if (state !== null || plan === null || this.isNear(chunk)) continue;
      const places = placesOf(plan.terms);
      bytes += places.reduce((sum, { length }) => sum + length, 0);
      columns += places.length;
      if (wanted.length > 0 && (bytes > this.#roundBytes || columns > roundColumnsMax)) break;
      wanted.push({ known, plan });
    }
    if (wanted.length === 0) return;
    this.#roundBytes = Math.min(this.#roundBytes * 4, roundBytesMax);
    const blocks = this.#fetch(wanted.flatMap(({ plan }) => plan.terms));
    // Thrown when the chunk's turn comes; the search may stop before.
    blocks.catch(() => {});
    for (const { known } of wanted) known.reading = blocks;
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
    const known = this.#chunk(chunk);
    const plan = must(known.plan, 'a chunk that is not settled');
    const blocks = await (known.reading ?? this.#fetch(plan.terms));
    this.#evaluate(chunk, plan, (offset) => blocks.get(offset));
  }

  /** Answers whether the row's chunk is settled, and settles it before where its columns lie in memory and nobody else is to have a turn. */
  settleAtHand(row: number): boolean {
    const { slice } = this.#filter;
    const chunk = this.chunkOfRow(row);
    const { state, plan } = this.#chunk(chunk);
    if (state !== null) return true;
    if (plan === null || !this.#isCached(plan) || slice.due() || slice.timedOut) return false;
    this.#forgetAbove(chunk);
    try {
      this.#evaluate(chunk, plan, (offset) => this.#reader.blocks.cached(offset));
    } catch (error) {
      // `settle` throws a damaged column when the chunk's turn has come, after newer rows were looked at.
      if (!(error instanceof DataError)) throw error;
      return false;
    }
    return true;
  }

  /** Settles all chunks, the last one first: those before it are read ahead. */
  async settleAll(chunkCount: number): Promise<ChunkState[]> {
    const states: ChunkState[] = [];
    for (let chunk = chunkCount - 1; chunk >= 0; chunk--) {
      const first = this.firstRowOf(chunk);
      if (!this.settleAtHand(first)) await this.settle(first, chunksBelow(chunk));
      states[chunk] = this.#chunk(chunk).state ?? 'all';
    }
    return states;
  }

  #fetch(terms: readonly PlannedTerm[]): Promise<ReadonlyMap<number, Block>> {
    return this.#reader.blocks
      .fetch(placesOf(terms), this.#tally)
      .then((blocks) => new Map(blocks.map((block) => [block.offset, block])));
  }

  #isCached({ terms }: ColumnsPlan): boolean {
    const { blocks } = this.#reader;
    return terms.every(({ column }) => blocks.cached(column.place.offset) !== undefined);
  }

  #evaluate(chunk: number, plan: ColumnsPlan, blockAt: (offset: number) => Block | undefined): void {
    const rowCount = this.#columns === 'none' ? 0 : this.#columns.rowCount(chunk);
    const { objectKey, blocks: ownBlocks } = this.#reader;
    const columns: ColumnValues[] = [];
    const indexes: (ValueIndex | null)[] = [];
    for (const { column } of plan.terms) {
      const block = must(blockAt(column.place.offset), 'a column in memory');
      const values = storedColumn(block, column, { objectKey, rowCount });
      columns.push(values);
      indexes.push(storedIndex(block, values, ownBlocks));
    }
    const { isExact } = plan;
    const { bits, count, asks } = evaluateChunk(rowCount, plan.terms, columns, { isExact, indexes });
    const known = this.#chunk(chunk);
    known.reading = null;
    known.asks = asks ?? 'none';
    known.count = count;
    known.state = count === 0 ? 'none' : bits;
    if (this.#filter.unsureOnly !== true) return;
    known.state = known.asks;
    known.count = asks === null ? 0 : bitsIn(asks);
  }

  #chunk(chunk: number): KnownChunk {
    const known = this.#chunks.get(chunk);
    if (known !== undefined) return known;
    const made = this.#begin(chunk);
    this.#chunks.set(chunk, made);
    this.#highest = Math.max(this.#highest, chunk);
    return made;
  }

  #begin(chunk: number): KnownChunk {
    const plan = this.#plan(chunk);
    if (plan.kind === 'columns') return { state: null, asks: 'none', count: 0, plan, reading: null };
    const isUnsure = plan.kind === 'all' && !plan.isExact;
    const isLeftOut = this.#filter.unsureOnly === true && !isUnsure;
    return {
      state: isLeftOut ? 'none' : plan.kind,
      asks: isUnsure ? 'all' : 'none',
      count: 0,
      plan: null,
      reading: null,
    };
  }

  #plan(chunk: number): ChunkPlan {
    const { terms } = this.#filter;
    if (this.#columns !== 'none') return planChunk(this.#columns, chunk, terms);
    return terms.every(({ negated }) => negated) ? { kind: 'all', isExact: true } : { kind: 'none' };
  }

  /** Rows are asked for downwards. */
  #forgetAbove(chunk: number): void {
    for (; this.#highest > chunk; this.#highest--) {
      this.#chunks.delete(this.#highest);
      this.#passed.delete(this.#highest);
    }
  }
}

function* chunksBelow(chunk: number): Generator<number, void, void> {
  for (let next = chunk - 1; next >= 0; next--) yield next;
}

function* chunksFrom(first: number, ahead: Iterable<number>): Generator<number, void, void> {
  yield first;
  yield* ahead;
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
export function lastBit(
  bits: Uint32Array,
  { from, end }: { readonly from: number; readonly end: number },
): number {
  let at = (end - 1) >>> 5;
  let word = (bits[at] as number) & (0xffffffff >>> (31 - ((end - 1) & 31)));
  while (word === 0 && at * 32 > from) word = bits[--at] as number;
  const found = at * 32 + 31 - Math.clz32(word);
  return word !== 0 && found >= from ? found : -1;
}
