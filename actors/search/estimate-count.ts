/**
 * How many documents match, without judging all that may.
 *
 * 1. The index says how many candidates there are, live ones only; no document is read for that.
 * 2. Groups of them, spread evenly from the oldest to the newest, are judged: `groupsMax` of the memtables' and as many
 *    blocks of the segments.
 * 3. The rest is taken to match as often as those did. What was judged bounds the answer from both sides, surely; how much the groups
 *    differ says between which counts it lies with a likelihood of 95 % (likely-bounds.ts).
 */
import { must } from '../../src/base/assert.ts';
import type { ReadTally } from '../storage/block-fetch.ts';
import type { Memtable } from '../storage/memtable.ts';
import { isReadFailure } from '../storage/read-failure.ts';
import type { Snapshot } from '../storage/snapshot.ts';
import { isDeleted } from '../storage/tombstones.ts';
import { rowsBelow } from '../text/searchable-memtable.ts';
import type { TextCondition } from '../text/trigram-query.ts';
import { type LikelyBounds, likelyBounds } from './likely-bounds.ts';
import {
  type BlockSource,
  blocksAheadMax,
  blocksPerReadMax,
  type ReadBlock,
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
  /** Between these the count lies with a likelihood of 95 %. */
  readonly likely: LikelyBounds;
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

export interface JudgeCandidates {
  /** Whether a document matches; `late` where the deadline came first. */
  readonly document: (place: Place) => boolean | Promise<boolean | 'late'>;
  /** How many live documents of a block's ranges match; null where each is to be judged by itself. */
  readonly block: (block: ReadBlock) => number | null;
}

/** Rows of a memtable that are judged together. */
const rowsPerGroup = 64;
/** Matches with which an interval of 95 % is some ± 12 %, where groups are alike. */
const matchesEnough = 250;
/** Blocks that the index names at a time. */
const blocksPerLook = 256;

/**
 * Null where there are so few candidates that an exact count judges no more, and where the deadline came before all of
 * them were known. Throws what reading throws.
 */
export async function estimateCount(
  snapshot: Snapshot,
  options: EstimateOptions,
  judge: JudgeCandidates,
): Promise<Estimate | null> {
  const memtables = await memtableCandidates(snapshot, options);
  const segments = memtables === null ? null : await segmentCandidates(snapshot, options);
  if (memtables === null || segments === null) return null;
  if (memtables.sample.isWhole && segments.sample.isWhole) return null;
  const isInTime =
    (await judgeSample(memtables, (groups) => judgeRows(memtables, groups, options, judge))) &&
    (await judgeSample(segments, (groups) => judgeBlocks(segments, groups, options, judge)));
  const estimate = sum(estimateOf(memtables), estimateOf(segments));
  // What was judged first is the newest, and nothing like a sample of all.
  return { ...estimate, ...(isInTime ? {} : { likely: estimate }), timedOut: !isInTime };
}

/** Candidates of one kind, and what is known of them. */
class Candidates<T> {
  readonly sample: SpreadSample<T>;
  readonly groups: { rows: number; matching: number }[] = [];
  rows = 0;

  constructor(groupsMax: number) {
    this.sample = new SpreadSample(groupsMax);
  }

  add(group: T, rows: number): void {
    if (rows === 0) return;
    this.rows += rows;
    this.sample.add(group);
  }

  get matching(): number {
    return this.groups.reduce((total, group) => total + group.matching, 0);
  }

  /** Rows that are noted from here on are another group's. */
  beginGroup(): void {
    this.groups.push({ rows: 0, matching: 0 });
  }

  note(rows: number, matching: number): void {
    const group = must(this.groups.at(-1), 'a group');
    group.rows += rows;
    group.matching += matching;
  }
}

function estimateOf({ rows, groups, matching }: Candidates<unknown>): Bounds {
  const judged = groups.reduce((total, group) => total + group.rows, 0);
  const unknown = rows - judged;
  const guessed = judged === 0 ? unknown : (unknown * matching) / judged;
  return {
    count: matching + Math.round(guessed),
    low: matching,
    high: matching + unknown,
    likely: likelyBounds(groups, rows),
  };
}

/** Bounds of a sum: both parts are hardly ever as far off as they may be, so likely ones are rather too wide. */
function sum(one: Bounds, other: Bounds): Bounds {
  return {
    count: one.count + other.count,
    low: one.low + other.low,
    high: one.high + other.high,
    likely: { low: one.likely.low + other.likely.low, high: one.likely.high + other.likely.high },
  };
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
  groups: readonly MemtableRows[],
  { slice }: EstimateOptions,
  judge: JudgeCandidates,
): Promise<boolean> {
  for (const { memtable, rows } of groups) {
    candidates.beginGroup();
    for (const row of rows) {
      const place = { buffer: memtable.bufferOf(row), offset: memtable.offsetOf(row) };
      if (!(await judgeOne(candidates, place, judge))) return false;
      if (await isOver(slice)) return false;
    }
  }
  return true;
}

/**
 * Judges every second group of a sample, which is as evenly spread, and the others where too few match for a narrow interval. Answers false
 * where the deadline came.
 */
async function judgeSample<T>(
  candidates: Candidates<T>,
  judgeSome: (groups: readonly T[]) => Promise<boolean>,
): Promise<boolean> {
  const { items, isWhole } = candidates.sample;
  if (!(await judgeSome(items.filter((_, at) => at % 2 === 0)))) return false;
  if (!isWhole && candidates.matching >= matchesEnough) return true;
  return judgeSome(items.filter((_, at) => at % 2 === 1));
}

/** Answers false where the deadline came. Throws what reading throws. */
async function judgeBlocks(
  candidates: Candidates<WantedBlock>,
  blocks: readonly WantedBlock[],
  options: EstimateOptions,
  judge: JudgeCandidates,
): Promise<boolean> {
  try {
    return await judgeReadBlocks(candidates, blocks, options, judge);
  } catch (error) {
    if (isReadFailure(error) && isOutOfTime(error)) return false;
    throw error;
  }
}

async function judgeReadBlocks(
  candidates: Candidates<WantedBlock>,
  wanted: readonly WantedBlock[],
  { slice, tally }: EstimateOptions,
  judge: JudgeCandidates,
): Promise<boolean> {
  const blocks = readAhead(listed(wanted), tally, slice);
  for await (const read of blocks) {
    const { block, ranges, tombstones } = read;
    candidates.beginGroup();
    const matching = judge.block(read);
    if (matching !== null) {
      candidates.note(liveRows(read), matching);
      if (await isOver(slice)) return false;
      continue;
    }
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
  judge: JudgeCandidates,
): Promise<boolean> {
  const judged = judge.document(place);
  const matches = judged instanceof Promise ? await judged : judged;
  if (matches === 'late') return false;
  candidates.note(1, matches ? 1 : 0);
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
