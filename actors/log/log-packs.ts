/**
 * Packs: copies of small slots of a log that lie beside each other, in one object, so that a replay reads one where there were
 * `logPackSlots`. Reading an object takes a millisecond or two of processor time with S3's client, and a log has four a second.
 *
 * 1. Slots 1 to 32 are one pack, 33 to 64 the next. It is named by its last slot and has its objects' bytes one after another, each with its own checksum.
 * 2. It is written by the log's own process, once all of its slots are known to be stored by it. A slot never changes, so neither does a pack, whenever
 *    it arrives, be it above a seal.
 * 3. Nothing rests on it: where it is missing or damaged, the slots are read.
 * 4. It goes with its last slot. One that arrives after that is found by a listing.
 */
import { limits } from '../../protocol/limits.ts';
import { DataError } from '../../src/base/assert.ts';
import { describeError } from '../../src/base/log.ts';
import { type ObjectStore, StoreError } from '../../src/object-store/object-store.ts';
import { paths } from '../../src/object-store/paths.ts';
import { decodeLogObject, type LogObject, splitLogObjects } from '../../src/stored/log-object.ts';
import type { LogComponents } from './log-components.ts';

/** The last slot of the pack to which a slot belongs. */
export function lastOfPack(slot: number): number {
  return Math.ceil(slot / limits.logPackSlots) * limits.logPackSlots;
}

/** Writes the packs of the own log: one at a time, and none where the one before is still on its way. */
export class LogPacks {
  readonly #components: LogComponents;
  readonly #logId: string;
  /** The objects of the pack that is being filled; none of it where they are too large. */
  #objects: Uint8Array[] = [];
  #bytes = 0;
  #isStoring = false;

  constructor(components: LogComponents, logId: string) {
    this.#components = components;
    this.#logId = logId;
  }

  /** The slot was stored, as this object. Slots come in their order, from the first one on. */
  stored(slot: number, object: Uint8Array): void {
    this.#bytes += object.byteLength;
    if (this.#bytes > limits.logPackBytesMax) this.#objects = [];
    else this.#objects.push(object);
    if (slot !== lastOfPack(slot)) return;
    const objects = this.#objects;
    this.#objects = [];
    this.#bytes = 0;
    if (objects.length === limits.logPackSlots) void this.#store(slot, objects);
  }

  async #store(lastSlot: number, objects: readonly Uint8Array[]): Promise<void> {
    if (this.#isStoring) return;
    this.#isStoring = true;
    const { store, logger } = this.#components;
    const key = paths.logPack(this.#logId, lastSlot);
    try {
      await store.putIfAbsent(key, objects);
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      logger.debug('a pack of log slots was not stored', { object: key, error: describeError(error) });
    } finally {
      this.#isStoring = false;
    }
  }
}

/** The objects of a pack, from its first slot on; null where there is none, or it is damaged. Throws `StoreError`. */
export async function readPack(
  store: Pick<ObjectStore, 'get'>,
  logId: string,
  lastSlot: number,
): Promise<readonly LogObject[] | null> {
  const key = paths.logPack(logId, lastSlot);
  const found = await store.get(key);
  if (found === null) return null;
  try {
    const objects = splitLogObjects(found.bytes, key).map((bytes) => decodeLogObject(bytes, key));
    const firstSlot = lastSlot - limits.logPackSlots + 1;
    const isWhole = objects.every((object, at) => object.logId === logId && object.slot === firstSlot + at);
    return isWhole && objects.length === limits.logPackSlots ? objects : null;
  } catch (error) {
    if (!(error instanceof DataError)) throw error;
    return null;
  }
}
