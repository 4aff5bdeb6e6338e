import type { SegmentSize } from '../storage/compaction-policy.ts';
import type { OpenSegment } from '../storage/snapshot.ts';

/** As the compaction policy sees a segment. */
export function sizeOf({ size, reader, tombstones }: OpenSegment): SegmentSize {
  return { bytes: size, rows: reader.rowCount, deletedRows: tombstones.count };
}
