import type { Memtable } from '../storage/memtable.ts';
import type { NamespaceState, OpenSegment } from './namespace-state.ts';

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
}

export function takeSnapshot(state: NamespaceState): Snapshot {
  return {
    version: state.counters.version,
    sequence: state.counters.lastSequence,
    documents: state.liveDocuments,
    memtables: [...state.memtablesNewestFirst()].map((memtable) => ({ memtable, rowCount: memtable.rowCount })),
    segments: [...state.segments].reverse(),
  };
}
