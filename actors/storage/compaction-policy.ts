import { limits } from '../../protocol/limits.ts';

/**
 * Which segments to merge: sizes in, choice out. Pure.
 *
 * A run of at least `fanIn` neighbours in time becomes one segment where none of them is larger than half of the whole.
 * So whenever a document is rewritten, it ends in a segment at least twice as large as the one it came from: the write
 * amplification of compaction is at most the binary logarithm of the namespace's size over a flush's, and with equal
 * flushes the logarithm to the base `fanIn`. Where no run qualifies, sizes fall geometrically, so segments are few.
 * Only neighbours are merged, so order by sequence survives.
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
/** Longer runs are looked at where no shorter one qualifies. */
const runLengthMax = 32;
const deletedShareMax = 0.5;

export function chooseCompaction(segments: readonly SegmentSize[]): CompactionChoice | null {
  return mostlyDeleted(segments) ?? evenRun(segments);
}

function mostlyDeleted(segments: readonly SegmentSize[]): CompactionChoice | null {
  const index = segments.findIndex(({ rows, deletedRows }) => deletedRows > rows * deletedShareMax);
  return index < 0 ? null : { first: index, last: index };
}

/** Short runs first, of those the newest: it frees as many segments for the fewest bytes. */
function evenRun(segments: readonly SegmentSize[]): CompactionChoice | null {
  const sizes = segments.map(liveBytes);
  const rows = segments.map((segment) => segment.rows - segment.deletedRows);
  for (let length = fanIn; length <= Math.min(runLengthMax, sizes.length); length++) {
    for (let first = sizes.length - length; first >= 0; first--) {
      const run = sizes.slice(first, first + length);
      const total = sum(run);
      const fits =
        total <= limits.segmentBytesMax && sum(rows.slice(first, first + length)) <= limits.segmentRowsMax;
      if (fits && Math.max(...run) <= total / 2) return { first, last: first + length - 1 };
    }
  }
  return null;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

function liveBytes({ bytes, rows, deletedRows }: SegmentSize): number {
  return rows === 0 ? 0 : bytes * (1 - deletedRows / rows);
}
