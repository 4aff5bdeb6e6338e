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

/**
 * Reads slots in their order, several at a time: packs where there are any and all of their slots are at or under the range's end, else slot by slot.
 * Packs are read from `packStore`, each once.
 */
export async function* readSlots(
  store: Pick<ObjectStore, 'get'>,
  range: SlotRange,
  packStore = store,
): AsyncGenerator<SlotReading> {
  const { logId, after, through } = range;
  const packs = new PacksAhead(packStore, range);
  const singles = new Map<number, Promise<LogObject | null>>();
  for (let slot = after + 1; slot <= through; slot++) {
    const packed = await packs.objectOf(slot);
    const last = Math.min(through, slot + limits.replayReadsInFlight - 1);
    for (let ahead = slot; ahead <= last; ahead++) {
      if (singles.has(ahead) || !packs.lacks(ahead)) continue;
      const reading = readSlot(store, logId, ahead);
      // Settled later, in order; an early failure must not count as unhandled meanwhile.
      reading.catch(() => {});
      singles.set(ahead, reading);
    }
    yield { slot, reading: packed === null ? must(singles.get(slot), 'a slot') : Promise.resolve(packed) };
    singles.delete(slot);
  }
}

/** The packs of a range of slots, read some before they are asked for. */
class PacksAhead {
  readonly #store: Pick<ObjectStore, 'get'>;
  readonly #range: SlotRange;
  /** By their last slots, as the two below. Readings that have ended are not kept. */
  readonly #readings = new Map<number, Promise<void>>();
  readonly #found = new Map<number, readonly LogObject[] | null>();

  constructor(store: Pick<ObjectStore, 'get'>, range: SlotRange) {
    this.#store = store;
    this.#range = range;
  }

  /** The slot's object where a pack has it, else null. Slots are asked for in their order. */
  async objectOf(slot: number): Promise<LogObject | null> {
    const last = lastOfPack(slot);
    this.#found.delete(last - limits.logPackSlots);
    for (let ahead = 0; ahead < limits.logPacksInFlight; ahead++)
      this.#read(last + ahead * limits.logPackSlots);
    await this.#readings.get(last);
    return this.#found.get(last)?.at(slot - last - 1) ?? null;
  }

  /** Whether it is known that no pack has the slot. */
  lacks(slot: number): boolean {
    const last = lastOfPack(slot);
    return !this.#isWorthReading(last) || this.#found.get(last) === null;
  }

  /** Whether the range has enough of the pack's slots, and none is above it: that one may not be there yet. */
  #isWorthReading(last: number): boolean {
    const { after, through } = this.#range;
    return last <= through && last - after >= packedSlotsMin;
  }

  #read(last: number): void {
    if (!this.#isWorthReading(last) || this.#readings.has(last) || this.#found.has(last)) return;
    const reading = readPack(this.#store, this.#range.logId, last).then((objects) => {
      this.#found.set(last, objects);
      this.#readings.delete(last);
    });
    // Awaited when its slots are asked for; a failure before that must not count as unhandled.
    reading.catch(() => {});
    this.#readings.set(last, reading);
  }
}

export async function readSlot(
  store: Pick<ObjectStore, 'get'>,
  logId: string,
  slot: number,
): Promise<LogObject | null> {
  const key = paths.logObject(logId, slot);
  return readIntact(store, key, ({ bytes }) => decodeLogObject(bytes, key));
}
