/**
 * Which segments to merge: sizes in, choice out. Pure.
 *
 * A run of at least `fanIn` neighbours in time becomes one segment where none of them is larger than a third of the whole.
 * So whenever a document is rewritten, it ends in a segment at least three times as large as the one it came from: the
 * write amplification of compaction is at most the logarithm to the base 3 of the namespace's size over a flush's. Where
 * no run qualifies, sizes fall geometrically, so segments are few: after 300 equal flushes 10 at most and 5 on average,
 * with each byte rewritten 3.6 times. With a half in place of the third it was 8, 4 and 4.9 times. Only neighbours are
 * merged, so order by sequence survives.
 *
 * Where a search pays for each segment, the longest run becomes one whose largest segment is at most 15 sixteenths of the whole:
 * one that grows by sixteenths is rewritten sixteen times, and is one large segment with little beside it.
 *
 * A segment more than half of whose rows are deleted is rewritten by itself: space comes back, and a namespace whose
 * documents are replaced over and over stays in proportion to what lives. One that has held deleted rows for too long is
 * rewritten however few they are.
 */
import { limits } from '../../protocol/limits.ts';

export interface SegmentSize {
  readonly bytes: number;
  readonly rows: number;
  readonly deletedRows: number;
  /** Whether it has held deleted rows for too long. */
  readonly isOverdue?: boolean;
}

/** Segments from `first` to `last`, both included, oldest first. */
export interface CompactionChoice {
  readonly first: number;
  readonly last: number;
}

const fanIn = 4;
/** The part of a run's bytes that its largest segment may be. */
const largestShareMax = 1 / 3;
const gatheredShareMax = 15 / 16;
/** Longer runs are looked at where no shorter one qualifies. */
const runLengthMax = 32;
const deletedShareMax = 0.5;

export function chooseCompaction(segments: readonly SegmentSize[]): CompactionChoice | null {
  return mostlyDeleted(segments) ?? evenRun(segments) ?? overdue(segments);
}

function mostlyDeleted(segments: readonly SegmentSize[]): CompactionChoice | null {
  const index = segments.findIndex(({ rows, deletedRows }) => deletedRows > rows * deletedShareMax);
  return index < 0 ? null : { first: index, last: index };
}

/** After runs, which may have it in them. */
function overdue(segments: readonly SegmentSize[]): CompactionChoice | null {
  const index = segments.findIndex(({ isOverdue }) => isOverdue === true);
  return index < 0 ? null : { first: index, last: index };
}

/** Short runs first, of those the newest: it frees as many segments for the fewest bytes. */
function evenRun(segments: readonly SegmentSize[]): CompactionChoice | null {
  for (let length = fanIn; length <= Math.min(runLengthMax, segments.length); length++) {
    const run = newestRun(segments, length, largestShareMax);
    if (run !== null) return run;
  }
  return null;
}

/** Long runs first: one segment is what is wanted. */
export function chooseGathering(segments: readonly SegmentSize[]): CompactionChoice | null {
  for (let length = Math.min(runLengthMax, segments.length); length > 1; length--) {
    const run = newestRun(segments, length, gatheredShareMax);
    if (run !== null) return run;
  }
  return null;
}

function newestRun(
  segments: readonly SegmentSize[],
  length: number,
  shareMax: number,
): CompactionChoice | null {
  for (let first = segments.length - length; first >= 0; first--) {
    const run = segments.slice(first, first + length);
    const bytes = run.map(liveBytes);
    const total = sum(bytes);
    const rows = sum(run.map((segment) => segment.rows - segment.deletedRows));
    const fits = total <= limits.segmentBytesMax && rows <= limits.segmentRowsMax;
    if (fits && Math.max(...bytes) <= total * shareMax) return { first, last: first + length - 1 };
  }
  return null;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

function liveBytes({ bytes, rows, deletedRows }: SegmentSize): number {
  return rows === 0 ? 0 : bytes * (1 - deletedRows / rows);
}
