import { limits } from '../../protocol/limits.ts';
import { must } from '../../src/base/assert.ts';
import type { ObjectStore } from '../../src/object-store/object-store.ts';
import { paths } from '../../src/object-store/paths.ts';
import { readIntact } from '../../src/object-store/read-intact.ts';
import { decodeLogObject, type LogObject } from '../../src/stored/log-object.ts';
import { lastOfPack, readPack } from './log-packs.ts';

/** Slots of a log above `after`, up to and including `through`. */
export interface SlotRange {
  readonly logId: string;
  readonly after: number;
  readonly through: number;
}

/** A slot that is being read; null where it is empty. Who does not want it need not await it. */
export interface SlotReading {
  readonly slot: number;
  readonly reading: Promise<LogObject | null>;
}

/** Fewer slots than this, of those that a pack has, are read one by one. */
const packedSlotsMin = 4;

/** Reads slots in their order, several at a time: packs where there are any and all of their slots are in the range, else slot by slot. */
export async function* readSlots(
  store: Pick<ObjectStore, 'get'>,
  range: SlotRange,
): AsyncGenerator<SlotReading> {
  const { logId } = range;
  const parts = partsOf(range);
  const readings: Promise<readonly LogObject[] | null>[] = [];
  for (const [at, { after, through, isPacked }] of parts.entries()) {
    while (readings.length < Math.min(parts.length, at + limits.logPacksInFlight)) {
      const next = must(parts[readings.length], 'a part of the range');
      const reading = next.isPacked ? readPack(store, logId, next.through) : Promise.resolve(null);
      // Settled later, in order; an early failure must not count as unhandled meanwhile.
      reading.catch(() => {});
      readings.push(reading);
    }
    const objects = isPacked ? await readings[at] : null;
    readings[at] = Promise.resolve(null);
    const nextSlot = objects ? null : readAhead(store, { logId, after, through });
    for (let slot = after + 1; slot <= through; slot++) {
      const object = objects?.at(slot - through - 1);
      yield { slot, reading: object === undefined ? must(nextSlot, 'a slot')() : Promise.resolve(object) };
    }
  }
}

/** Slots of one pack, or some of them. */
interface Part extends Omit<SlotRange, 'logId'> {
  /** Whether the pack is worth reading, and has no slots above the range, which may not be there yet. */
  readonly isPacked: boolean;
}

function partsOf({ after, through }: SlotRange): Part[] {
  const parts: Part[] = [];
  for (let from = after; from < through; ) {
    const last = lastOfPack(from + 1);
    const isPacked = last <= through && last - from >= packedSlotsMin;
    parts.push({ after: from, through: Math.min(last, through), isPacked });
    from = last;
  }
  return parts;
}

/** Answers a function of which each call reads the next slot; some further ones are being read already. */
function readAhead(store: Pick<ObjectStore, 'get'>, range: SlotRange): () => Promise<LogObject | null> {
  const ahead: Promise<LogObject | null>[] = [];
  let asked = range.after;
  return () => {
    while (asked < range.through && ahead.length < limits.replayReadsInFlight) {
      const reading = readSlot(store, range.logId, ++asked);
      // Settled later, in order; an early failure must not count as unhandled meanwhile.
      reading.catch(() => {});
      ahead.push(reading);
    }
    return must(ahead.shift(), 'a slot that is being read');
  };
}

export async function readSlot(
  store: Pick<ObjectStore, 'get'>,
  logId: string,
  slot: number,
): Promise<LogObject | null> {
  const key = paths.logObject(logId, slot);
  return readIntact(store, key, ({ bytes }) => decodeLogObject(bytes, key));
}
