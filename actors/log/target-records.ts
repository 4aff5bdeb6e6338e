/**
 * What logs have of one namespace, read from the store by whoever does not own it.
 *
 * 1. Each log is read from its floor to its end: a slot that is empty. What lies under a floor is in manifests, so a manifest that is read after
 *    the logs, with what they have beyond it, is the namespace as it was at some moment, write by write.
 * 2. That moment is the one at which the end was asked for: whatever its process had acknowledged by then lies below. Where a log has been sealed
 *    or has passed to a placement that is not known here, others may have acknowledged more since; then it is when that object was stored.
 */
import { ApiError } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import type { Clock } from '../../src/base/clock.ts';
import type { ObjectStore } from '../../src/object-store/object-store.ts';
import { paths } from '../../src/object-store/paths.ts';
import { readFloor } from '../../src/stored/log-floor.ts';
import type { LogObject } from '../../src/stored/log-object.ts';
import { readSlot } from './read-slots.ts';
import { type ReplayedRecord, withBlob } from './replay.ts';

export interface TargetRecords {
  readonly records: readonly ReplayedRecord[];
  /** Everything acknowledged before this was in the log; by the clock's `monotonic`. */
  readonly asOfMs: number;
}

interface Components {
  readonly store: Pick<ObjectStore, 'get' | 'list'>;
  readonly clock: Clock;
}

/** Slots that are read ahead of the one whose turn it is. */
const readAheadMax = 8;

/** Throws 503 where the log has more than may be read for this, and what the store and damage throw. */
export async function targetRecords(
  components: Components,
  log: { readonly logId: string; readonly placement: number },
  namespaceId: string,
): Promise<TargetRecords> {
  const { store } = components;
  const { logId, placement } = log;
  const records: ReplayedRecord[] = [];
  let [objects, bytes] = [0, 0];
  let passedAtMs = Number.POSITIVE_INFINITY;
  let slot = (await readFloor(store, logId)) + 1;
  let nextSlot = readAhead(components, logId, slot);
  for (;;) {
    const { askedAtMs, object } = await nextSlot();
    if (object === null || object.kind === 'seal') {
      const floor = await readFloor(store, logId);
      if (floor >= slot) {
        // Collected meanwhile: it is in manifests.
        slot = floor + 1;
        nextSlot = readAhead(components, logId, slot);
        continue;
      }
      const endMs = object === null ? askedAtMs : await storedAtMs(components, logId, slot);
      return { records, asOfMs: Math.min(endMs, passedAtMs) };
    }
    if (++objects > limits.copyLogObjectsMax) throw tooFarBehind();
    if (object.placement > placement && passedAtMs === Number.POSITIVE_INFINITY)
      passedAtMs = await storedAtMs(components, logId, slot);
    for (const record of recordsOf(object, namespaceId)) {
      const { blob } = record.head;
      bytes += blob?.length ?? record.payload.byteLength;
      if (bytes > limits.copyLogBytesMax) throw tooFarBehind();
      const whole = blob === null ? record : await withBlob(store, record, blob);
      // Its blob is collected with its slot: then the manifest has it.
      if (whole !== null) records.push(whole);
    }
    slot++;
  }
}

/** The records of one namespace, whose payloads do not keep the whole object in memory. */
function recordsOf({ logId, slot, records }: LogObject, namespaceId: string): ReplayedRecord[] {
  return records.flatMap(({ head, payload }, index) =>
    head.namespaceId === namespaceId
      ? [{ position: { logId, slot, index }, head, payload: new Uint8Array(payload) }]
      : [],
  );
}

/** Answers a function of which each call reads the next slot, with when it was asked for; some further ones are being read already. */
function readAhead({ store, clock }: Components, logId: string, from: number) {
  const ahead: { readonly askedAtMs: number; readonly reading: Promise<LogObject | null> }[] = [];
  let asked = from;
  return async () => {
    while (ahead.length < readAheadMax) {
      const reading = readSlot(store, logId, asked++);
      // Settled later, in order; an early failure must not count as unhandled meanwhile.
      reading.catch(() => {});
      ahead.push({ askedAtMs: clock.monotonic(), reading });
    }
    const [first] = ahead.splice(0, 1);
    return { askedAtMs: first?.askedAtMs ?? 0, object: (await first?.reading) ?? null };
  };
}

/** When an object was stored, by the store's clock, on the scale of this process's own; now, where its clock is behind. */
async function storedAtMs({ store, clock }: Components, logId: string, slot: number): Promise<number> {
  const { objects } = await store.list(paths.logObject(logId, slot), { limit: 1 });
  const ageMs = Math.max(0, clock.now() - (objects[0]?.modifiedAtMs ?? 0));
  return clock.monotonic() - ageMs;
}

function tooFarBehind(): ApiError {
  const sentence = 'what is stored of this namespace is too far behind what was written; ask again';
  return new ApiError('unavailable', sentence, { retryAfter: 1 });
}
