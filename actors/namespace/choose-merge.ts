import { type CompactionChoice, chooseCompaction, chooseGathering } from '../storage/compaction-policy.ts';
import type { OpenSegment } from '../storage/snapshot.ts';
import { paysForGraphs } from '../vector/plan-graphs.ts';
import { vectorsOf } from '../vector/vector-index-reader.ts';

/**
 * Which segments of a namespace become one. A search asks the graphs of each segment, and looks as far into those of a small
 * one: so where it is quiet, the segments of a namespace whose vectors need graphs are gathered. Pure.
 */
export function chooseMerge(
  segments: readonly OpenSegment[],
  {
    isQuiet,
    overdue,
  }: {
    readonly isQuiet: boolean;
    /** Ids of segments that have held deleted rows for too long. */
    readonly overdue: ReadonlySet<string>;
  },
): CompactionChoice | null {
  const sizes = segments.map(({ id, size, reader, tombstones }) => ({
    bytes: size,
    rows: reader.rowCount,
    deletedRows: tombstones.count,
    isOverdue: overdue.has(id),
  }));
  return chooseCompaction(sizes) ?? (isQuiet && needGraphs(segments) ? chooseGathering(sizes) : null);
}

function needGraphs(segments: readonly OpenSegment[]): boolean {
  const each = segments.map(({ reader }) => vectorsOf(reader.toc));
  const count = each.reduce((sum, vectors) => sum + vectors.count, 0);
  return paysForGraphs({ count, dims: Math.max(0, ...each.map(({ dims }) => dims)) });
}
