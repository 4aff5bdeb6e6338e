/**
 * Blocks of segments for an estimate to judge, spread evenly over all of them.
 *
 * 1. Where posting lists name few groups, all candidates are listed, and the sample is of the blocks that have some.
 * 2. Where they name many, listing them would take longer than judging the sample, and the longer the larger the namespace is. Then blocks are
 *    drawn first, of all that there are, and the text index is asked for the candidates in these alone. A drawn block's rows that are no
 *    candidates are known not to match.
 */
import { limits } from '../../protocol/limits.ts';
import type { ReadTally } from '../storage/block-fetch.ts';
import type { BlockIndex } from '../storage/block-index.ts';
import type { SegmentReader } from '../storage/segment-reader.ts';
import type { OpenSegment, Snapshot } from '../storage/snapshot.ts';
import { deletedBetween } from '../storage/tombstones.ts';
import { openTextIndex, textIndexAtHand } from '../text/text-index.ts';
import type { TextCondition } from '../text/trigram-query.ts';
import type { DrawnBlocks } from './candidate-blocks.ts';
import { EstimateSample } from './estimate-sample.ts';
import type { WantedBlock } from './read-ahead.ts';
import { wantedBlocks } from './scan.ts';
import { SpreadSample } from './spread-sample.ts';
import { isOver, type TimeSlice } from './time-slice.ts';

export interface SampleOptions {
  readonly condition: TextCondition;
  /** Blocks with a candidate that are judged, at most. */
  readonly groupsMax: number;
  /** Candidate groups up to which all of them are listed. Default: 32,768, which takes some milliseconds at most. */
  readonly listedGroupsMax?: number;
  readonly slice: TimeSlice;
  readonly tally: ReadTally;
}

export interface SampledBlock {
  /** Rows that may match; null where none of the block may. */
  readonly wanted: WantedBlock | null;
  /** Live rows of the block that are known not to match. */
  readonly others: number;
}

const listedGroupsDefault = 32 * 1024;
/** How many blocks the text index is asked for at a time. */
const blocksPerLook = 256;

/** Samples the blocks of all segments; null where the deadline came first. Throws what reading throws. */
export async function sampleBlocks(
  snapshot: Snapshot,
  options: SampleOptions,
): Promise<EstimateSample<SampledBlock> | null> {
  const drawn = await drawBlocks(snapshot.segments, options);
  return drawn === null ? listBlocks(snapshot, options) : sampleOfDrawn(snapshot, drawn, options);
}

async function listBlocks(
  snapshot: Snapshot,
  options: SampleOptions,
): Promise<EstimateSample<SampledBlock> | null> {
  const sample = new SpreadSample<SampledBlock>(options.groupsMax);
  let rows = 0;
  const isInTime = await eachWanted(snapshot, options, (wanted) => {
    const live = countLiveRows(wanted);
    if (live === 0) return;
    rows += live;
    sample.add({ wanted, others: 0 });
  });
  return isInTime ? new EstimateSample(sample.items, { rows, isWhole: sample.isWhole }) : null;
}

async function sampleOfDrawn(
  snapshot: Snapshot,
  drawn: DrawnBlocks,
  options: SampleOptions,
): Promise<EstimateSample<SampledBlock> | null> {
  const candidates = new Map<SegmentReader, Map<number, WantedBlock>>();
  for (const reader of drawn.keys()) candidates.set(reader, new Map());
  const isInTime = await eachWanted(snapshot, { ...options, drawn }, (wanted) => {
    candidates.get(wanted.reader)?.set(wanted.number, wanted);
  });
  if (!isInTime) return null;
  const items: SampledBlock[] = [];
  let rows = 0;
  for (const { reader, tombstones } of snapshot.segments) {
    rows += reader.rowCount - tombstones.count;
    const index = await reader.blockIndex(options.tally);
    for (const number of drawn.get(reader) ?? []) {
      const wanted = candidates.get(reader)?.get(number) ?? null;
      const first = index.firstRow(number);
      const live = countLiveRows({ ranges: [first, first + index.rowCount(number)], tombstones });
      items.push({ wanted, others: live - (wanted === null ? 0 : countLiveRows(wanted)) });
    }
  }
  return new EstimateSample(items, { rows, isWhole: false });
}

/** Takes the blocks that have candidates, newest first; false where the deadline came. */
async function eachWanted(
  snapshot: Snapshot,
  { condition, slice, tally, drawn = null }: SampleOptions & { readonly drawn?: DrawnBlocks | null },
  take: (wanted: WantedBlock) => void,
): Promise<boolean> {
  const everything = Number.POSITIVE_INFINITY;
  const source = wantedBlocks(snapshot, { condition, below: everything, rows: everything, drawn, tally });
  for (;;) {
    const taken = source.take(blocksPerLook);
    const blocks = taken instanceof Promise ? await slice.waitFor(taken) : taken;
    if (blocks.length === 0) return true;
    for (const block of blocks) take(block);
    if (await isOver(slice)) return false;
  }
}

/** Draws some of all blocks, evenly; null where candidates are few enough to be listed, or there is no condition to ask the index about. */
async function drawBlocks(
  segments: readonly OpenSegment[],
  { condition, groupsMax, listedGroupsMax = listedGroupsDefault, slice, tally }: SampleOptions,
): Promise<DrawnBlocks | null> {
  if (condition.query.kind === 'all' || condition.query.kind === 'none') return null;
  let groups = 0;
  let blocks = 0;
  const indexes: BlockIndex[] = [];
  for (const { reader } of segments) {
    const text = textIndexAtHand(reader) ?? (await slice.waitFor(openTextIndex(reader, tally)));
    const index = reader.blockIndexAtHand ?? (await slice.waitFor(reader.blockIndex(tally)));
    const atMost = text.search(condition.query).atMost(tally);
    groups += atMost instanceof Promise ? await slice.waitFor(atMost) : atMost;
    indexes.push(index);
    blocks += index.count;
    if (slice.due()) await slice.giveWay();
  }
  if (groups <= listedGroupsMax) return null;
  const count = Math.min(
    limits.estimateBlocksDrawnMax,
    Math.ceil((groupsMax * blocks) / Math.min(groups, blocks)),
  );
  return evenly(segments, indexes, { blocks, count });
}

/** Numbers of `count` of the blocks, or of all, as far from each other as they can be. */
function evenly(
  segments: readonly OpenSegment[],
  indexes: readonly BlockIndex[],
  { blocks, count }: { readonly blocks: number; readonly count: number },
): DrawnBlocks {
  const drawn = new Map<SegmentReader, number[]>();
  const stride = Math.max(1, blocks / count);
  let firstBlock = 0;
  let next = stride / 2;
  for (const [at, { reader }] of segments.entries()) {
    const end = firstBlock + (indexes[at] as BlockIndex).count;
    const numbers: number[] = [];
    for (; next < end; next += stride) numbers.push(Math.floor(next) - firstBlock);
    if (numbers.length > 0) drawn.set(reader, numbers);
    firstBlock = end;
  }
  return drawn;
}

export function countLiveRows({ ranges, tombstones }: Pick<WantedBlock, 'ranges' | 'tombstones'>): number {
  let live = 0;
  for (let at = 0; at < ranges.length; at += 2) {
    const [first, end] = [ranges[at] as number, ranges[at + 1] as number];
    live += end - first - deletedBetween(tombstones, first, end);
  }
  return live;
}
