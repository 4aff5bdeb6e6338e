import type { NamespaceReport } from '../../protocol/stored-tenant.ts';
import { DataError } from '../../src/base/assert.ts';
import { isImport } from '../../src/stored/import-mark.ts';
import type { ReplayedRecord } from '../log/replay.ts';
import { isApplied, type Manifest, type NamespaceIdentity } from '../storage/manifest.ts';
import { decodeImport } from './commit-import.ts';
import { loadBatch } from './loaded-batch.ts';
import { NamespaceState } from './namespace-state.ts';
import { stampFromWire } from './write-pipeline.ts';
import { dayOfMicros } from './writes-by-day.ts';

/** What a namespace tells its tenant: its counters at this moment. */
export function reportOf(
  { identity, counters, storedBytes, writesByDay }: NamespaceState,
  flushed: boolean,
): NamespaceReport {
  const { namespaceId } = identity;
  const { version, docsWritten, bytesWritten } = counters;
  return { namespaceId, writes: version, docsWritten, bytesWritten, storedBytes, days: writesByDay, flushed };
}

/**
 * The same of a namespace that is dropped without being opened, from its manifest and its records in the log. Null where they
 * do not lead to its counters: the manifest is deleted first, and not before the tenant has heard them.
 */
export function lastWords(
  identity: Omit<NamespaceIdentity, 'createdAt'>,
  manifest: Manifest | null,
  records: readonly ReplayedRecord[],
): NamespaceReport | null {
  const state = new NamespaceState({ ...identity, createdAt: '' }, null);
  if (manifest !== null) {
    state.counters = manifest.counters;
    const day = dayOfMicros(manifest.counters.lastWrittenAt);
    state.writesByDay = [{ day, writes: 0, docs: 0, bytes: 0 }];
  }
  for (const record of records) {
    if (manifest !== null && isApplied(manifest, record.position)) continue;
    const { head } = record;
    if (head.version !== state.counters.version + 1) break;
    const stamp = stampFromWire(head.version, head.detail);
    state.countWrite(stamp, { lastSequence: stamp.baseSequence, ...takenBy(record) });
  }
  return state.counters.version === 0 ? null : reportOf(state, false);
}

/** Answers what a record wrote, as it is metered. A payload that can't be read counts nothing: it must not keep alive what was deleted. */
function takenBy({ head, payload, damage }: ReplayedRecord): {
  readonly docs: number;
  readonly bytes: number;
} {
  if (damage !== undefined) return { docs: 0, bytes: 0 };
  try {
    if (isImport(head.detail)) {
      const { toc, bytes } = decodeImport(payload);
      return { docs: toc.rowCount, bytes };
    }
    const { documentOffsets, deletes } = loadBatch(payload);
    return { docs: documentOffsets.length + deletes.length, bytes: payload.byteLength };
  } catch (error) {
    if (!(error instanceof DataError)) throw error;
    return { docs: 0, bytes: 0 };
  }
}
