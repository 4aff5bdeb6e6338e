/**
 * How many documents match, without judging all that may.
 *
 * 1. The index says how many candidates there are, live ones only; no document is read for that.
 * 2. Groups of them, spread evenly from the oldest to the newest, are judged: `groupsMax` of the memtables' and as many
 *    blocks of the segments.
 * 3. The rest is taken to match as often as those did. What was judged bounds the answer from both sides, surely.
 */
import type { ReadTally } from '../storage/block-fetch.ts';
import type { Memtable } from '../storage/memtable.ts';
import { isReadFailure } from '../storage/read-failure.ts';
import type { Snapshot } from '../storage/snapshot.ts';
import { isDeleted } from '../storage/tombstones.ts';
import { rowsBelow } from '../text/searchable-memtable.ts';
import type { TextCondition } from '../text/trigram-query.ts';
import {
  type BlockSource,
  blocksAheadMax,
  blocksPerReadMax,
  readAhead,
  type WantedBlock,
} from './read-ahead.ts';
import { isOutOfTime, wantedBlocks } from './scan.ts';
import { SpreadSample } from './spread-sample.ts';
import type { TimeSlice } from './time-slice.ts';

export interface Estimate {
  readonly count: number;
  /** The least that can match; `high` is the most. */
  readonly low: number;
  readonly high: number;
  /** Whether the time was over before all groups were judged: the bounds hold, the count is rougher. */
  readonly timedOut: boolean;
}

type Bounds = Omit<Estimate, 'timedOut'>;

export interface EstimateOptions {
  readonly condition: TextCondition;
  readonly groupsMax: number;
  readonly slice: TimeSlice;
  readonly tally: ReadTally;
}

interface Place {
  readonly buffer: Buffer;
  readonly offset: number;
}

/** Whether a document matches; `late` where the deadline came first. */
export type JudgeDocument = (place: Place) => boolean | Promise<boolean | 'late'>;

/** Rows of a memtable that are judged together. */
const rowsPerGroup = 64;
/** Blocks that the index names at a time. */
const blocksPerLook = 256;

/**
 * Null where there are so few candidates that an exact count judges no more, and where the deadline came before all of
 * them were known. Throws what reading throws.
 */
export async function estimateCount(
  snapshot: Snapshot,
  options: EstimateOptions,
  judge: JudgeDocument,
): Promise<Estimate | null> {
  const memtables = await memtableCandidates(snapshot, options);
  const segments = memtables === null ? null : await segmentCandidates(snapshot, options);
  if (memtables === null || segments === null) return null;
  if (memtables.sample.isWhole && segments.sample.isWhole) return null;
  const isInTime =
    (await judgeRows(memtables, options, judge)) && (await judgeBlocks(segments, options, judge));
  return { ...sum(estimateOf(memtables), estimateOf(segments)), timedOut: !isInTime };
}

/** Candidates of one kind, and what is known of them. */
class Candidates<T> {
  readonly sample: SpreadSample<T>;
  rows = 0;
  judged = 0;
  matching = 0;

  constructor(groupsMax: number) {
    this.sample = new SpreadSample(groupsMax);
  }

  add(group: T, rows: number): void {
    if (rows === 0) return;
    this.rows += rows;
    this.sample.add(group);
  }

  note(matches: boolean): void {
    this.judged++;
    if (matches) this.matching++;
  }
}

function estimateOf({ rows, judged, matching }: Candidates<unknown>): Bounds {
  const unknown = rows - judged;
  const guessed = judged === 0 ? unknown : (unknown * matching) / judged;
  return { count: matching + Math.round(guessed), low: matching, high: matching + unknown };
}

function sum(one: Bounds, other: Bounds): Bounds {
  return { count: one.count + other.count, low: one.low + other.low, high: one.high + other.high };
}

interface MemtableRows {
  readonly memtable: Memtable;
  readonly rows: readonly number[];
}

async function memtableCandidates(
  { memtables, sequence }: Snapshot,
  { condition, groupsMax, slice }: EstimateOptions,
): Promise<Candidates<MemtableRows> | null> {
  const found = new Candidates<MemtableRows>(groupsMax);
  const target = new Uint32Array(rowsPerGroup);
  for (const { memtable, rowCount } of memtables) {
    for (let row = rowCount; row > 0; ) {
      const count = rowsBelow(memtable, condition, { row, target });
      const rows = [...target.subarray(0, count)].filter((one) => memtable.isLiveAt(one, sequence));
      found.add({ memtable, rows }, rows.length);
      row = count < target.length ? 0 : (target[count - 1] as number);
      if (await isOver(slice)) return null;
    }
  }
  return found;
}

async function segmentCandidates(
  snapshot: Snapshot,
  { condition, groupsMax, slice, tally }: EstimateOptions,
): Promise<Candidates<WantedBlock> | null> {
  const found = new Candidates<WantedBlock>(groupsMax);
  const everything = Number.POSITIVE_INFINITY;
  const source = wantedBlocks(snapshot, { condition, below: everything, rows: everything, tally });
  for (;;) {
    const taken = source.take(blocksPerLook);
    const blocks = taken instanceof Promise ? await slice.waitFor(taken) : taken;
    if (blocks.length === 0) return found;
    for (const block of blocks) found.add(block, liveRows(block));
    if (await isOver(slice)) return null;
  }
}

function liveRows({ ranges, tombstones }: WantedBlock): number {
  let live = 0;
  for (let at = 0; at < ranges.length; at += 2) {
    const [first, end] = [ranges[at] as number, ranges[at + 1] as number];
    live += end - first;
    if (tombstones.count === 0) continue;
    for (let row = first; row < end; row++) if (isDeleted(tombstones, row)) live--;
  }
  return live;
}

/** Answers false where the deadline came. */
async function judgeRows(
  candidates: Candidates<MemtableRows>,
  { slice }: EstimateOptions,
  judge: JudgeDocument,
): Promise<boolean> {
  for (const { memtable, rows } of candidates.sample.items) {
    for (const row of rows) {
      const place = { buffer: memtable.bufferOf(row), offset: memtable.offsetOf(row) };
      if (!(await judgeOne(candidates, place, judge))) return false;
      if (await isOver(slice)) return false;
    }
  }
  return true;
}

/** Answers false where the deadline came. Throws what reading throws. */
async function judgeBlocks(
  candidates: Candidates<WantedBlock>,
  options: EstimateOptions,
  judge: JudgeDocument,
): Promise<boolean> {
  try {
    return await judgeReadBlocks(candidates, options, judge);
  } catch (error) {
    if (isReadFailure(error) && isOutOfTime(error)) return false;
    throw error;
  }
}

async function judgeReadBlocks(
  candidates: Candidates<WantedBlock>,
  { slice, tally }: EstimateOptions,
  judge: JudgeDocument,
): Promise<boolean> {
  const blocks = readAhead(listed(candidates.sample.items), tally, slice);
  for await (const { block, ranges, tombstones } of blocks) {
    for (let at = 0; at < ranges.length; at += 2) {
      for (let row = ranges[at] as number; row < (ranges[at + 1] as number); row++) {
        if (isDeleted(tombstones, row)) continue;
        const place = { buffer: block.buffer, offset: block.entryOffset(row - block.firstRow) };
        if (!(await judgeOne(candidates, place, judge))) return false;
        if (await isOver(slice)) return false;
      }
    }
  }
  return true;
}

/** False where the deadline came. */
async function judgeOne(
  candidates: Candidates<unknown>,
  place: Place,
  judge: JudgeDocument,
): Promise<boolean> {
  const judged = judge(place);
  const matches = judged instanceof Promise ? await judged : judged;
  if (matches === 'late') return false;
  candidates.note(matches);
  return true;
}

function listed(blocks: readonly WantedBlock[]): BlockSource {
  let next = 0;
  return {
    firstRead: blocksPerReadMax,
    aheadMax: blocksAheadMax,
    isEnough: false,
    take(count) {
      const taken = blocks.slice(next, next + count);
      next += count;
      return taken;
    },
  };
}

/** Whether the deadline has come; gives way where the slice is over. */
async function isOver(slice: TimeSlice): Promise<boolean> {
  if (!slice.due()) return false;
  await slice.giveWay();
  return slice.timedOut;
}
