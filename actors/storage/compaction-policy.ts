import { limits } from '../../protocol/limits.ts';

/**
 * Which segments to merge: sizes in, choice out. Pure.
 *
 * Segments are cut into tiers by live size, each `fanIn` times the one below. A run of `fanIn` neighbours in time that
 * are all of one tier or below becomes one segment. So a document is rewritten at most once a tier, and the write
 * amplification of compaction is at most the number of tiers: log base `fanIn` of the namespace's size over a
 * memtable's, which is 4 for 32 MB to 8 GB. Only neighbours are merged, so order by sequence survives.
 *
 * A segment more than half of whose rows are deleted is rewritten by itself: space comes back, and a namespace whose
 * documents are replaced over and over stays in proportion to what lives.
 */
export interface SegmentSize {
  readonly bytes: number;
  readonly rows: number;
  readonly deletedRows: number;
}

/** Segments from `first` to `last`, both included, oldest first. */
export interface CompactionChoice {
  readonly first: number;
  readonly last: number;
}

const fanIn = 4;
/** Segments of the lowest tier: what one flush makes, compressed. */
const lowestTierBytes = limits.memtableBytesMax;
const deletedShareMax = 0.5;

export function chooseCompaction(segments: readonly SegmentSize[]): CompactionChoice | null {
  return mostlyDeleted(segments) ?? longEnoughRun(segments);
}

function mostlyDeleted(segments: readonly SegmentSize[]): CompactionChoice | null {
  const index = segments.findIndex(({ rows, deletedRows }) => deletedRows > rows * deletedShareMax);
  return index < 0 ? null : { first: index, last: index };
}

/** The cheapest tier first: small merges free the most segments for the least bytes. */
function longEnoughRun(segments: readonly SegmentSize[]): CompactionChoice | null {
  const tiers = segments.map(tierOf);
  const highest = Math.max(-1, ...tiers);
  for (let tier = 0; tier <= highest; tier++) {
    const run = newestRun(segments, tiers, tier);
    if (run !== null) return run;
  }
  return null;
}

/**
 * The newest `fanIn` neighbours of at most this tier, at least one of which is of it, that fit one segment. The newest,
 * because the older ones of a run are left by an earlier, larger choice.
 */
function newestRun(
  segments: readonly SegmentSize[],
  tiers: readonly number[],
  tier: number,
): CompactionChoice | null {
  for (let last = segments.length - 1; last >= fanIn - 1; last--) {
    const first = last - fanIn + 1;
    const members = tiers.slice(first, last + 1);
    if (!members.every((member) => member <= tier) || !members.includes(tier)) continue;
    if (bytesOf(segments.slice(first, last + 1)) <= limits.segmentBytesMax) return { first, last };
  }
  return null;
}

function tierOf(segment: SegmentSize): number {
  let tier = 0;
  for (let bytes = lowestTierBytes; liveBytes(segment) > bytes; bytes *= fanIn) tier++;
  return tier;
}

function liveBytes({ bytes, rows, deletedRows }: SegmentSize): number {
  return rows === 0 ? 0 : bytes * (1 - deletedRows / rows);
}

function bytesOf(segments: readonly SegmentSize[]): number {
  return segments.reduce((sum, segment) => sum + liveBytes(segment), 0);
}
