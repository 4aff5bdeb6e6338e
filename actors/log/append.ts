/**
 * Puts one object into one slot of the log and finds out what became of it.
 *
 * 1. PUT if absent. Stored: the slot is ours.
 * 2. Refused: GET the slot. Our own batch id: an earlier try (or a duplicate on the way) got through; the slot is ours.
 *    A seal: this server was removed; nothing of this slot was written, and the log is at its end. Unless the slot above
 *    holds a seal too: then that one ended the log, when this slot was taken, by us. The group went into manifests and
 *    was collected, and a seal on its way for long found the slot empty.
 * 3. Anything else (time-out, 5xx, conflict): the outcome is unknown. The same bytes again, for the same slot, until
 *    it is known. A slot never gets other bytes: a late first try could otherwise surface beside them.
 */
import { DataError } from '../../src/base/assert.ts';
import type { Clock } from '../../src/base/clock.ts';
import { describeError, type Logger } from '../../src/base/log.ts';
import { type ObjectStore, StoreError } from '../../src/object-store/object-store.ts';
import { paths } from '../../src/object-store/paths.ts';
import { decodeLogObject, type LogObject } from '../../src/stored/log-object.ts';

export type AppendOutcome = 'stored' | 'sealed';

export interface SlotWrite {
  readonly logId: string;
  readonly slot: number;
  readonly batchId: string;
  readonly bytes: Uint8Array;
}

const retryDelayMsMin = 20;
/** The store may be away for long; a client was told after ten seconds, the slot is resolved whenever it comes back. */
const retryDelayMsMax = 1_000;
const callTimeoutMs = 10_000;

export async function appendToSlot(
  store: ObjectStore,
  clock: Clock,
  logger: Logger,
  write: SlotWrite,
): Promise<AppendOutcome> {
  const key = paths.logObject(write.logId, write.slot);
  for (let delayMs = retryDelayMsMin; ; delayMs = Math.min(delayMs * 2, retryDelayMsMax)) {
    try {
      const put = await store.putIfAbsent(key, [write.bytes], { timeoutMs: callTimeoutMs });
      if (put.kind === 'stored') return 'stored';
      const outcome = await whoHolds(store, write);
      if (outcome !== 'nobody') return outcome;
    } catch (error) {
      // A look at the slot that came back damaged says nothing either; the next one mostly comes back whole.
      if (!(error instanceof StoreError) && !(error instanceof DataError)) throw error;
      logger.error('a log slot is not resolved yet', { object: key, error: describeError(error) });
    }
    await clock.sleep(delayMs);
  }
}

async function whoHolds(store: ObjectStore, write: SlotWrite): Promise<AppendOutcome | 'nobody'> {
  const object = await readSlot(store, write.logId, write.slot);
  // Refused and yet absent: the store contradicts itself for a moment; asking again is always safe.
  if (object === null) return 'nobody';
  if (object.batchId === write.batchId) return 'stored';
  if (object.kind !== 'seal') {
    const key = paths.logObject(write.logId, write.slot);
    throw new Error(`${key} holds a batch of another writer: two processes use one log id`);
  }
  const above = await readSlot(store, write.logId, write.slot + 1);
  return above?.kind === 'seal' ? 'stored' : 'sealed';
}

async function readSlot(store: ObjectStore, logId: string, slot: number): Promise<LogObject | null> {
  const key = paths.logObject(logId, slot);
  const found = await store.get(key, { timeoutMs: callTimeoutMs });
  return found === null ? null : decodeLogObject(found.bytes, key);
}
