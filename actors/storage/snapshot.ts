import type { Memtable } from './memtable.ts';
import type { SegmentGraph } from './segment-graph.ts';
import type { SegmentReader } from './segment-reader.ts';
import type { Tombstones } from './tombstones.ts';

export interface OpenSegment {
  readonly id: string;
  readonly size: number;
  readonly reader: SegmentReader;
  readonly tombstones: Tombstones;
  /** The graphs, as the manifest has them. */
  readonly graphs: readonly SegmentGraph[] | null;
  /** The namespaces in whose folders the segment and its graphs lie; absent for the snapshot's own namespace. */
  readonly home?: string;
  readonly graphsHome?: string;
}

/**
 * An immutable view of a namespace: what a read sees, however long it runs and whatever is written meanwhile.
 * Memtable rows are guarded by the sequence, segment rows by their tombstones of that moment.
 */
export interface Snapshot {
  readonly version: number;
  readonly sequence: number;
  /** Live documents. */
  readonly documents: number;
  /** Newest first. */
  readonly memtables: readonly { readonly memtable: Memtable; readonly rowCount: number }[];
  /** Newest first. */
  readonly segments: readonly OpenSegment[];
  /** Keys of metas that hold dates or times; none where it is undefined. */
  readonly temporalKeys?: ReadonlySet<string>;
}
