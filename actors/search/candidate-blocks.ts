import type { ReadReport } from '../storage/block-fetch.ts';
import type { BlockIndex } from '../storage/block-index.ts';
import type { SegmentReader } from '../storage/segment-reader.ts';
import type { OpenSegment } from '../storage/snapshot.ts';
import type { Tombstones } from '../storage/tombstones.ts';
import type { RowGroups } from '../text/row-groups.ts';
import { openTextIndex, textIndexAtHand } from '../text/text-index.ts';
import type { CandidateGroups, TrigramIndexReader } from '../text/trigram-index-reader.ts';
import type { TrigramQuery } from '../text/trigram-query.ts';
import type { BlockSource, WantedBlock } from './read-ahead.ts';

/**
 * The document blocks of segments that may hold a match, from the newest to the oldest, each with the rows to look at.
 *
 * The indexes of all segments are asked for at once, and the posting lists as soon as a segment's index is there: two
 * rounds, whatever the number of segments. Then candidates are taken from the newest segment on; reading their blocks is
 * one more round for a search that finds little.
 */
export interface CandidatesWanted {
  readonly condition: TrigramQuery;
  /** Sequences from here on are not wanted. */
  readonly below: number;
  readonly report: ReadReport;
}

export class CandidateBlocks implements BlockSource {
  readonly firstRead = 1;
  /** Nobody knows how many of them match. */
  readonly isEnough = false;
  /** Newest first, as the segments are. */
  readonly #searches: SegmentSearch[];

  constructor(segments: readonly OpenSegment[], wanted: CandidatesWanted) {
    this.#searches = segments
      .filter(({ reader }) => reader.toc.minSequence < wanted.below)
      .map((segment) => new SegmentSearch(segment, wanted));
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
}

/** The candidates of one segment. */
class SegmentSearch {
  readonly #segment: OpenSegment;
  readonly #wanted: CandidatesWanted;
  /** Row numbers from here on are not wanted. */
  #rowEnd = 0;
  #index: BlockIndex | null = null;
  #rowGroups: RowGroups | null = null;
  #candidates: CandidateGroups | null = null;
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
    if (this.#ended || (this.#groups !== null && this.#at < this.#groups.length)) return null;
    return this.#waitFor(this.#nextGroups());
  }

  /** Adds blocks until there are `count`. Answers false where the segment has no more. */
  take(target: Candidates[], count: number): boolean {
    const { reader, tombstones } = this.#segment;
    const index = this.#index as BlockIndex;
    const rowGroups = this.#rowGroups as RowGroups;
    while (this.#groups !== null && this.#at < this.#groups.length) {
      const group = this.#groups[this.#at] as number;
      const first = rowGroups.firstRow(group);
      let end = Math.min(rowGroups.firstRow(group + 1), this.#rowEnd);
      // A group may begin in one block and end in the next.
      while (end > first) {
        const number = index.blockOfRow(end - 1);
        const from = Math.max(first, index.firstRow(number));
        const last = target.at(-1);
        if (last !== undefined && last.number === number && last.reader === reader) {
          addRange(last.ranges, from, end);
        } else {
          if (target.length >= count) return this.#goOnBelow(end);
          target.push({ reader, tombstones, number, ranges: [from, end] });
        }
        end = from;
      }
      this.#at++;
    }
    return !this.#ended;
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

  #nextGroups(): Promise<void> | null {
    const candidates = this.#candidates as CandidateGroups;
    const next = candidates.next(this.#wanted.report);
    if (next instanceof Promise) return next.then((groups) => this.#accept(groups));
    this.#accept(next);
    return null;
  }

  #accept(groups: Uint32Array | null): void {
    this.#groups = groups;
    this.#at = 0;
    this.#ended = groups === null;
  }

  /** Null where all is in memory. */
  #open(): Promise<void> | null {
    const { reader } = this.#segment;
    const { report } = this.#wanted;
    const index = reader.blockIndexAtHand;
    const text = textIndexAtHand(reader);
    if (index !== null && text !== null) {
      this.#begin(index, text);
      return null;
    }
    return Promise.all([reader.blockIndex(report), openTextIndex(reader, report)]).then(([blocks, texts]) => {
      this.#begin(blocks, texts);
      return this.#nextGroups() ?? undefined;
    });
  }

  #begin(index: BlockIndex, text: TrigramIndexReader): void {
    const { below, condition } = this.#wanted;
    this.#index = index;
    this.#rowGroups = text.rowGroups;
    // The block that holds the first unwanted row is looked into; the rows of those behind it are not.
    const lastBlock = below === Number.POSITIVE_INFINITY ? index.count - 1 : index.blockOfSequence(below);
    this.#rowEnd = index.firstRow(lastBlock) + index.rowCount(lastBlock);
    this.#candidates = text.search(condition);
  }
}

/** Candidates come in descending order, so that a range ends where the one before begins, or lower. */
function addRange(ranges: number[], from: number, end: number): void {
  const last = ranges.length - 2;
  if (ranges[last] === end) ranges[last] = from;
  else ranges.push(from, end);
}
