/**
 * How many documents match, without judging all that may.
 *
 * 1. The index says how many candidates there are, live ones only; no document is read for that. Where they are very many, some blocks are
 *    drawn first, and it is asked about these alone (sample-blocks.ts).
 * 2. Groups of them, spread evenly from the oldest to the newest, are judged: `groupsMax` of the memtables' and as many
 *    blocks of the segments.
 * 3. The rest is taken to match as often as those did. What was judged bounds the answer from both sides, surely; how much the groups
 *    differ says between which counts it lies with a likelihood of 95 % (likely-bounds.ts).
 */
import type { Memtable } from '../storage/memtable.ts';
import { isReadFailure } from '../storage/read-failure.ts';
import type { Snapshot } from '../storage/snapshot.ts';
import { isDeleted } from '../storage/tombstones.ts';
import { rowsBelow } from '../text/searchable-memtable.ts';
import { type Bounds, EstimateSample, sumOf } from './estimate-sample.ts';
import {
  type BlockSource,
  blocksAheadMax,
  blocksPerReadMax,
  type ReadBlock,
  readAhead,
  type WantedBlock,
} from './read-ahead.ts';
import { countLiveRows, type SampledBlock, type SampleOptions, sampleBlocks } from './sample-blocks.ts';
import { isOutOfTime } from './scan.ts';
import { SpreadSample } from './spread-sample.ts';
import { isOver } from './time-slice.ts';

export interface Estimate extends Bounds {
  /** Whether the time was over before all groups were judged: the bounds hold, the count is rougher. */
  readonly timedOut: boolean;
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
/** Groups of memtables that are judged at least: fewer would hardly say how much groups differ. */
const memtableGroupsMin = 16;
/** How many times their share of the rows memtables have of the groups that are judged, at most. */
const memtableGroupsShare = 4;
/** Matches with which an interval of 95 % is some ± 12 %, where groups are alike. */
const matchesEnough = 250;

/**
 * Null where there are so few candidates that an exact count judges no more, and where the deadline came before all of
 * them were known. Throws what reading throws.
 */
export async function estimateCount(
  snapshot: Snapshot,
  options: SampleOptions,
  judge: JudgeCandidates,
): Promise<Estimate | null> {
  const inMemory = await sampleMemtables(snapshot, options);
  const segments = inMemory === null ? null : await sampleBlocks(snapshot, options);
  if (inMemory === null || segments === null) return null;
  if (inMemory.isWhole && segments.isWhole) return null;
  const share = inMemory.rows / Math.max(1, inMemory.rows + segments.rows);
  const groupsMax = Math.max(memtableGroupsMin, Math.ceil(options.groupsMax * share * memtableGroupsShare));
  const memtables = inMemory.thinned(groupsMax);
  const isInTime =
    (await judgeSample(memtables, (groups) => judgeRows(memtables, groups, options, judge))) &&
    (await judgeSample(segments, (groups) => judgeBlocks(segments, groups, options, judge)));
  const estimate = sumOf(memtables.bounds, segments.bounds);
  // What was judged first is the newest, and nothing like a sample of all.
  return { ...estimate, ...(isInTime ? {} : { likely: estimate }), timedOut: !isInTime };
}

interface MemtableRows {
  readonly memtable: Memtable;
  readonly rows: readonly number[];
}

async function sampleMemtables(
  { memtables, sequence }: Snapshot,
  { condition, groupsMax, slice }: SampleOptions,
): Promise<EstimateSample<MemtableRows> | null> {
  const sample = new SpreadSample<MemtableRows>(groupsMax);
  const target = new Uint32Array(rowsPerGroup);
  let rows = 0;
  for (const { memtable, rowCount } of memtables) {
    for (let row = rowCount; row > 0; ) {
      const count = rowsBelow(memtable, condition, { row, target });
      const live: number[] = [];
      for (let at = 0; at < count; at++) {
        const one = target[at] as number;
        if (memtable.isLiveAt(one, sequence)) live.push(one);
      }
      rows += live.length;
      if (live.length > 0) sample.add({ memtable, rows: live });
      row = count < target.length ? 0 : (target[count - 1] as number);
      if (await isOver(slice)) return null;
    }
  }
  return new EstimateSample(sample.items, { rows, isWhole: sample.isWhole });
}

/** Answers false where the deadline came. */
async function judgeRows(
  sample: EstimateSample<MemtableRows>,
  groups: readonly MemtableRows[],
  { slice }: SampleOptions,
  judge: JudgeCandidates,
): Promise<boolean> {
  for (const { memtable, rows } of groups) {
    sample.beginGroup();
    for (const row of rows) {
      const place = { buffer: memtable.bufferOf(row), offset: memtable.offsetOf(row) };
      if (!(await judgeOne(sample, place, judge))) return false;
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
  sample: EstimateSample<T>,
  judgeSome: (groups: readonly T[]) => Promise<boolean>,
): Promise<boolean> {
  const { items, isWhole } = sample;
  if (!(await judgeSome(items.filter((_, at) => at % 2 === 0)))) return false;
  if (!isWhole && sample.matching >= matchesEnough) return true;
  return judgeSome(items.filter((_, at) => at % 2 === 1));
}

/** Answers false where the deadline came. Throws what reading throws. */
async function judgeBlocks(
  sample: EstimateSample<SampledBlock>,
  blocks: readonly SampledBlock[],
  options: SampleOptions,
  judge: JudgeCandidates,
): Promise<boolean> {
  const wanted: WantedBlock[] = [];
  const others: number[] = [];
  for (const block of blocks) {
    if (block.wanted === null) {
      sample.beginGroup();
      sample.note(block.others, 0);
    } else {
      wanted.push(block.wanted);
      others.push(block.others);
    }
  }
  try {
    return await judgeReadBlocks(sample, { wanted, others }, options, judge);
  } catch (error) {
    if (isReadFailure(error) && isOutOfTime(error)) return false;
    throw error;
  }
}

async function judgeReadBlocks(
  sample: EstimateSample<SampledBlock>,
  { wanted, others }: { readonly wanted: readonly WantedBlock[]; readonly others: readonly number[] },
  { slice, tally }: SampleOptions,
  judge: JudgeCandidates,
): Promise<boolean> {
  const blocks = readAhead(listed(wanted), tally, slice);
  let number = 0;
  for await (const read of blocks) {
    const { block, ranges, tombstones } = read;
    sample.beginGroup();
    sample.note(others[number++] as number, 0);
    const matching = judge.block(read);
    if (matching !== null) {
      sample.note(countLiveRows(read), matching);
      if (await isOver(slice)) return false;
      continue;
    }
    for (let at = 0; at < ranges.length; at += 2) {
      for (let row = ranges[at] as number; row < (ranges[at + 1] as number); row++) {
        if (isDeleted(tombstones, row)) continue;
        const place = { buffer: block.buffer, offset: block.entryOffset(row - block.firstRow) };
        if (!(await judgeOne(sample, place, judge))) return false;
        if (await isOver(slice)) return false;
      }
    }
  }
  return true;
}

/** False where the deadline came. */
async function judgeOne(
  sample: EstimateSample<unknown>,
  place: Place,
  judge: JudgeCandidates,
): Promise<boolean> {
  const judged = judge.document(place);
  const matches = judged instanceof Promise ? await judged : judged;
  if (matches === 'late') return false;
  sample.note(1, matches ? 1 : 0);
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
