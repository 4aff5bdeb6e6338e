import type { Snapshot } from '../storage/snapshot.ts';
import type { NamespaceState } from './namespace-state.ts';

/** The namespace as it is between two lines of anybody's code. */
export function takeSnapshot(state: NamespaceState): Snapshot {
  return {
    version: state.counters.version,
    sequence: state.counters.lastSequence,
    documents: state.liveDocuments,
    memtables: [...state.memtablesNewestFirst()].map((memtable) => ({
      memtable,
      rowCount: memtable.rowCount,
    })),
    segments: [...state.segments].reverse(),
    temporalKeys: state.temporalKeys,
  };
}
