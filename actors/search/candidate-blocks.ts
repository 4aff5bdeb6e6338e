import { columnsAtHand, openColumns, type SegmentColumns } from '../columns/columns-section.ts';
import type { ReadTally } from '../storage/block-fetch.ts';
import type { BlockIndex } from '../storage/block-index.ts';
import type { SegmentReader } from '../storage/segment-reader.ts';
import type { OpenSegment } from '../storage/snapshot.ts';
import type { Tombstones } from '../storage/tombstones.ts';
import type { GroupRows, RowGroups } from '../text/row-groups.ts';
import { openTextIndex, textIndexAtHand } from '../text/text-index.ts';
import { liesInPart } from '../text/text-parts.ts';
import type { CandidateGroups, TrigramIndexReader } from '../text/trigram-index-reader.ts';
import type { TextCondition } from '../text/trigram-query.ts';
import { FilterRows, type SegmentFilter } from './filter-rows.ts';
import { type BlockSource, blocksAheadMax, type WantedBlock } from './read-ahead.ts';

export interface CandidatesWanted {
  readonly condition: TextCondition;
  /** Sequences from here on are not wanted. */
  readonly below: number;
  /** What every row that is wanted passes. Default: nothing. */
  readonly filter?: SegmentFilter | null;
  /** The blocks that are wanted; null for all. Default: all. */
  readonly drawn?: DrawnBlocks | null;
  readonly tally: ReadTally;
}

/** Numbers of some blocks of some segments, each segment's ascending. */
export type DrawnBlocks = ReadonlyMap<SegmentReader, readonly number[]>;

/**
 * The document blocks of segments that may hold a match, from the newest to the oldest, each with the rows to look at: those
 * that the text index names, and of them those that the columns of the filter's keys let pass.
 *
 * The indexes of all segments are asked for at once, and posting lists and the newest columns as soon as a segment's
 * indexes are there: two rounds, whatever the number of segments. Then candidates are taken from the newest segment on;
 * reading their blocks is one more round for a search that finds little.
 */
export class CandidateBlocks implements BlockSource {
  readonly firstRead = 1;
  /** Nobody knows how many of them match. */
  readonly isEnough = false;
  /** Whether the text says nothing: each segment is one group then. */
  readonly #everyRow: boolean;
  /** Newest first, as the segments are. */
  readonly #searches: SegmentSearch[];

  constructor(segments: readonly OpenSegment[], wanted: CandidatesWanted) {
    this.#everyRow = wanted.condition.query.kind === 'all';
    this.#searches = segments
      .filter(({ reader }) => reader.toc.minSequence < wanted.below && wanted.drawn?.has(reader) !== false)
      .map((segment) => new SegmentSearch(segment, wanted));
  }

  /** A search that names few will hardly be over before all of them were looked at. */
  get aheadMax(): number {
    const groupsLeft = this.#searches[0]?.groupsLeft ?? 0;
    return groupsLeft <= fewGroups && !this.#everyRow ? fewGroups : blocksAheadMax;
  }

  take(count: number): WantedBlock[] | Promise<WantedBlock[]> {
    const searches = this.#searches;
    const taken: Candidates[] = [];
    for (let search = searches[0]; search !== undefined && taken.length < count; search = searches[0]) {
      const ready = search.ready();
      if (ready !== null) {
        // What is there already is looked at while more comes.
        return taken.length > 0 ? taken : ready.then(() => this.take(count));
      }
      if (!search.take(taken, count)) searches.shift();
    }
    return taken;
  }
}

/** Whether all of them can be read without the object store. */
export function areAtHand(segments: readonly OpenSegment[], wanted: CandidatesWanted): boolean {
  for (const segment of segments) {
    const search = new SegmentSearch(segment, wanted);
    const candidates: Candidates[] = [];
    do {
      if (search.ready() !== null) return false;
    } while (search.take(candidates, Number.POSITIVE_INFINITY));
    if (candidates.some(({ reader, number }) => reader.bytesAtHand(number) === 0)) return false;
  }
  return true;
}

/** A block with its candidates so far. */
interface Candidates extends WantedBlock {
  readonly reader: SegmentReader;
  readonly tombstones: Tombstones;
  readonly ranges: number[];
  parts: Map<number, readonly number[]> | null;
  passes: boolean;
}

/** Candidate groups of a chunk for which its columns are not read: up to so many, their documents are less to read than its columns. */
const groupsWithoutColumnsMax = 16;

/** The share of a segment's groups up to which rows that pass a filter narrow the search of its text index. */
const narrowShareMax = 1 / 8;

/** Candidates of one segment that are read at once, in one round: 16 MB before compression at worst. */
const fewGroups = 128;

type SegmentGroups = Pick<RowGroups, 'rowsOf' | 'hasParts' | 'runAt'>;

/** The candidates of one segment. */
class SegmentSearch {
  readonly #segment: OpenSegment;
  readonly #wanted: CandidatesWanted;
  /** Row numbers from here on are not wanted. */
  #rowEnd = 0;
  #index: BlockIndex | null = null;
  #rowGroups: SegmentGroups | null = null;
  #candidates: Pick<CandidateGroups, 'next'> | null = null;
  /** Null where there is no filter. */
  #filter: FilterRows | null = null;
  /** Numbers of the segment's blocks that are wanted; null for all. */
  #drawn: ReadonlySet<number> | null = null;
  #groups: Uint32Array | null = null;
  #at = 0;
  #ended = false;
  /** Index pages on their way. It stays where it failed. */
  #waiting: Promise<void> | null = null;

  constructor(segment: OpenSegment, wanted: CandidatesWanted) {
    this.#segment = segment;
    this.#wanted = wanted;
    this.#waitFor(this.#open());
  }

  /** Null where candidates are at hand, or there are no more; else what to wait for. */
  ready(): Promise<void> | null {
    if (this.#waiting !== null) return this.#waiting;
    if (this.#ended) return null;
    if (this.#groups === null || this.#at === this.#groups.length) return this.#waitFor(this.#nextGroups());
    return this.#waitFor(this.#settleRows(this.#groups));
  }

  /** Candidates that are known and were not taken yet. */
  get groupsLeft(): number {
    return this.#groups === null ? 0 : this.#groups.length - this.#at;
  }

  /** Adds blocks until there are `count`. Answers false where the segment has no more. */
  take(target: Candidates[], count: number): boolean {
    const { reader, tombstones } = this.#segment;
    const index = this.#index as BlockIndex;
    const filter = this.#filter;
    const { matchLength } = this.#wanted.condition;
    const groups = this.#rowGroups as SegmentGroups;
    const isPlain = filter === null && !groups.hasParts;
    // Rows descend, so the next one is mostly of the same block.
    let number = 0;
    let blockFirst = Number.POSITIVE_INFINITY;
    while (this.#groups !== null && this.#at < this.#groups.length) {
      let { first, end, kind, linesAreWhole } = this.#rowsOf(this.#groups[this.#at] as number);
      // Rows of neighbours are taken at once.
      const taken = isPlain ? groups.runAt(this.#groups, this.#at) : 1;
      if (taken > 1) ({ first } = groups.rowsOf(this.#groups[this.#at + taken - 1] as number));
      // A large text is asked by its parts, or as a whole.
      if (kind === (liesInPart(matchLength, linesAreWhole) ? 'whole' : 'part')) {
        this.#at++;
        continue;
      }
      // A group may begin in one block and end in the next.
      while (end > first) {
        if (filter !== null) {
          end = filter.passingEnd(first, end);
          if (end === first) break;
          if (!filter.isSettled(end - 1)) {
            if (filter.settleAtHand(end - 1)) continue;
            return this.#goOnBelow(end);
          }
        }
        if (end <= blockFirst) {
          number = index.blockOfRow(end - 1);
          blockFirst = index.firstRow(number);
        }
        if (this.#drawn?.has(number) === false) {
          end = Math.max(first, blockFirst);
          continue;
        }
        const lowest = filter === null ? first : filter.passingStart(first, end);
        const from = Math.max(lowest, blockFirst);
        const passes = filter?.isSure(from, end) ?? false;
        const last = target.at(-1);
        if (last !== undefined && last.number === number && last.reader === reader) {
          addRange(last.ranges, from, end);
          last.passes &&= passes;
        } else {
          if (target.length >= count) return this.#goOnBelow(end);
          target.push({ reader, tombstones, number, ranges: [from, end], parts: null, passes });
        }
        if (kind === 'part' && linesAreWhole) this.#noteParts(target.at(-1) as Candidates, from);
        end = from;
      }
      // Further parts of the same text are no news.
      this.#rowEnd = Math.min(this.#rowEnd, end);
      this.#at += taken;
    }
    return !this.#ended;
  }

  /** Which parts of a row are candidates, where all of them are known. */
  #noteParts(candidates: Candidates, row: number): void {
    const parts: number[] = [];
    for (let at = this.#at; ; at++) {
      const group = this.#groups?.[at];
      if (group === undefined) return;
      const { first, kind, part } = this.#rowsOf(group);
      if (first !== row || kind !== 'part') break;
      parts.push(part);
    }
    candidates.parts ??= new Map();
    candidates.parts.set(row, parts.reverse());
  }

  /** The rest of the group is for the next call. */
  #goOnBelow(row: number): boolean {
    this.#rowEnd = row;
    return true;
  }

  /** Whoever asks again waits for the same: asked for twice, the next groups would be those after the next. */
  #waitFor(work: Promise<void> | null): Promise<void> | null {
    if (work === null) return null;
    this.#waiting = work.then(() => {
      this.#waiting = null;
    });
    // The consumer may stop before it comes to a segment that can't be read.
    this.#waiting.catch(() => {});
    return this.#waiting;
  }

  #rowsOf(group: number): GroupRows {
    const rows = (this.#rowGroups as SegmentGroups).rowsOf(group);
    return rows.end <= this.#rowEnd ? rows : { ...rows, end: this.#rowEnd };
  }

  /** Null where it is known which of the next rows pass the filter. */
  #settleRows(groups: Uint32Array): Promise<void> | null {
    const filter = this.#filter;
    if (filter === null) return null;
    const { first, end } = this.#rowsOf(groups[this.#at] as number);
    if (end <= first || filter.settleAtHand(end - 1)) return null;
    const chunk = filter.chunkOfRow(end - 1);
    if (!filter.isNear(chunk) && this.#hasFewGroups(groups, filter.firstRowOf(chunk))) {
      filter.letPass(chunk);
      return null;
    }
    return filter.settle(end - 1, this.#chunksBelow(groups, chunk));
  }

  /** Whether few of the candidates lie from a row on; one that is the whole segment has many. */
  #hasFewGroups(groups: Uint32Array, row: number): boolean {
    if (this.#wanted.condition.query.kind === 'all') return false;
    const after = groups[this.#at + groupsWithoutColumnsMax];
    return after === undefined || this.#rowsOf(after).end <= row;
  }

  /** Chunks that hold candidates below this one, as far as candidates are known. */
  *#chunksBelow(groups: Uint32Array, chunk: number): Generator<number, void, void> {
    const filter = this.#filter as FilterRows;
    let last = chunk;
    for (let at = this.#at; at < groups.length && last > 0; at++) {
      const { first, end } = this.#rowsOf(groups[at] as number);
      if (end <= first || first >= filter.firstRowOf(last)) continue;
      const lowest = filter.chunkOfRow(first);
      for (let next = Math.min(last - 1, filter.chunkOfRow(end - 1)); next >= lowest; next--) {
        yield next;
        last = next;
      }
    }
  }

  #nextGroups(): Promise<void> | null {
    const candidates = this.#candidates as Pick<CandidateGroups, 'next'>;
    const next = candidates.next(this.#wanted.tally);
    if (next instanceof Promise) return next.then((groups) => this.#accept(groups));
    this.#accept(next);
    return null;
  }

  #accept(groups: Uint32Array | null): void {
    this.#filter?.reconsider();
    this.#groups = groups;
    this.#at = 0;
    this.#ended = groups === null;
  }

  /** Null where all is in memory. */
  #open(): Promise<void> | null {
    const { reader } = this.#segment;
    const { tally, condition, filter = null } = this.#wanted;
    const index = reader.blockIndexAtHand;
    const text = condition.query.kind === 'all' ? 'none' : textIndexAtHand(reader);
    const columns = filter === null ? 'none' : columnsAtHand(reader);
    if (index !== null && text !== null && columns !== null) {
      this.#begin(index, text, columns);
      return this.#narrowed(text);
    }
    const reads = [
      reader.blockIndex(tally),
      text ?? openTextIndex(reader, tally),
      columns ?? openColumns(reader, tally),
    ] as const;
    return Promise.all(reads).then((opened) => {
      this.#begin(...opened);
      return this.#nextGroups() ?? undefined;
    });
  }

  /**
   * Asks the text index for groups alone that have rows which pass the filter, where columns in memory say that these are few. Null
   * where there is nothing to wait for.
   */
  #narrowed(text: TrigramIndexReader | 'none'): Promise<void> | null {
    const filter = this.#filter;
    if (filter === null || text === 'none') return null;
    const { reader } = this.#segment;
    const chunkCount = filter.chunkOfRow(reader.rowCount - 1) + 1;
    if (!filter.isInMemory(chunkCount)) return null;
    const { rowGroups } = text;
    const rowsMax = Math.ceil(rowGroups.groupCount * narrowShareMax);
    return filter.fewRows({ chunkCount, rowsMax }).then((rows) => {
      if (rows !== null)
        this.#candidates = text.search(this.#wanted.condition.query, rowGroups.groupsOf(rows));
    });
  }

  #begin(index: BlockIndex, text: TrigramIndexReader | 'none', columns: SegmentColumns): void {
    const { below, condition, filter = null, drawn = null, tally } = this.#wanted;
    const { reader } = this.#segment;
    const blocks = drawn?.get(reader) ?? null;
    this.#drawn = blocks === null ? null : new Set(blocks);
    this.#index = index;
    this.#rowGroups = text === 'none' ? wholeSegment(reader.rowCount) : text.rowGroups;
    // The block that holds the first unwanted row is looked into; the rows of those behind it are not.
    const lastBlock = below === Number.POSITIVE_INFINITY ? index.count - 1 : index.blockOfSequence(below);
    this.#rowEnd = index.firstRow(lastBlock) + index.rowCount(lastBlock);
    this.#candidates =
      text === 'none' ? oneGroup() : text.search(condition.query, groupsOf(blocks, text, index));
    if (filter === null) return;
    this.#filter = new FilterRows(reader, columns, filter, tally);
    // Beside the posting lists: whether they name rows of these chunks is not known yet, but a round later it is late.
    this.#filter.readAhead(chunksDown(this.#filter.chunkOfRow(this.#rowEnd - 1)));
  }
}

/** The groups that have rows of some blocks; null for all. */
function groupsOf(
  blocks: readonly number[] | null,
  { rowGroups }: TrigramIndexReader,
  index: BlockIndex,
): Uint32Array | null {
  if (blocks === null) return null;
  const ends = blocks.map((block) => index.firstRow(block) + index.rowCount(block));
  return rowGroups.groupsIn(blocks.flatMap((block, at) => [index.firstRow(block), ends[at] as number]));
}

/** One group of all rows, for queries without a condition. */
function wholeSegment(rowCount: number): SegmentGroups {
  const rowsOf = () => ({ first: 0, end: rowCount, kind: 'rows', linesAreWhole: true, part: 0 }) as const;
  return { rowsOf, hasParts: false, runAt: () => 1 };
}

function oneGroup(): Pick<CandidateGroups, 'next'> {
  let given = false;
  return {
    next() {
      if (given) return null;
      given = true;
      return Uint32Array.of(0);
    },
  };
}

function* chunksDown(from: number): Generator<number, void, void> {
  for (let chunk = from; chunk >= 0; chunk--) yield chunk;
}

/** Candidates come in descending order, so that a range ends where the one before begins, or lower. */
function addRange(ranges: number[], from: number, end: number): void {
  const last = ranges.length - 2;
  if (ranges[last] === end) ranges[last] = from;
  else ranges.push(from, end);
}
