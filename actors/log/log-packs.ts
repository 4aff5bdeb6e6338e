/**
 * Packs: copies of small slots of a log that lie beside each other, in one object, so that a replay reads one where there were
 * `logPackSlots`. Reading an object takes a millisecond or two of processor time with S3's client, and a log has four a second.
 *
 * 1. Slots 1 to 32 are one pack, 33 to 64 the next. It is named by its last slot and has its objects' bytes one after another, each with its own checksum.
 * 2. It is written by the log's own process, once that knows all of its slots to be stored. A replay reads it only if they all lie at or under the replay's
 *    end: a seal, a barrier, or the last slot that this process stored. Slots there never change, so a pack that arrives late misleads nobody.
 * 3. Nothing rests on it: where it is missing, damaged or can't be had, the slots are read.
 * 4. It goes with its last slot, and one that is on its way then is waited for, for a second. One that arrives later still is found by the hourly listing.
 */
import { limits } from '../../protocol/limits.ts';
import { describeError } from '../../src/base/log.ts';
import { settledWithin } from '../../src/base/settled-within.ts';
import type { ObjectStore } from '../../src/object-store/object-store.ts';
import { paths } from '../../src/object-store/paths.ts';
import { decodeLogObject, type LogObject, splitLogObjects } from '../../src/stored/log-object.ts';
import type { LogComponents } from './log-components.ts';
import { maySucceedLater } from './may-succeed-later.ts';

/** The last slot of the pack to which a slot belongs. */
export function lastOfPack(slot: number): number {
  return Math.ceil(slot / limits.logPackSlots) * limits.logPackSlots;
}

/** How long who deletes slots waits for a pack: what comes later still is found by a listing. */
const settledMsMax = 1_000;

/** Writes the packs of the own log: one at a time, and none where the one before is still on its way. */
export class LogPacks {
  readonly #components: LogComponents;
  readonly #logId: string;
  /** The objects of the pack that is being filled; none where they are too large together. */
  #objects: Uint8Array[] = [];
  #bytes = 0;
  #storing: Promise<void> | null = null;

  constructor(components: LogComponents, logId: string) {
    this.#components = components;
    this.#logId = logId;
  }

  /** Resolves once none is on its way, or a second later. */
  async settled(): Promise<void> {
    if (this.#storing !== null) await settledWithin(this.#components.clock, this.#storing, settledMsMax);
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
    if (objects.length < limits.logPackSlots || this.#storing !== null) return;
    this.#storing = this.#store(slot, objects).finally(() => {
      this.#storing = null;
    });
  }

  async #store(lastSlot: number, objects: readonly Uint8Array[]): Promise<void> {
    const { store, logger } = this.#components;
    const key = paths.logPack(this.#logId, lastSlot);
    try {
      await store.putIfAbsent(key, objects, { timeoutMs: limits.logPackTimeoutMs });
    } catch (error) {
      if (!maySucceedLater(error)) throw error;
      logger.debug('a pack of log slots was not stored', { object: key, error: describeError(error) });
    }
  }
}

/** The objects of a pack, from its first slot on; null where there is none, it is damaged, or it can't be had. */
export async function readPack(
  store: Pick<ObjectStore, 'get'>,
  logId: string,
  lastSlot: number,
): Promise<readonly LogObject[] | null> {
  const key = paths.logPack(logId, lastSlot);
  try {
    const found = await store.get(key, { timeoutMs: limits.logPackTimeoutMs });
    if (found === null) return null;
    const objects = splitLogObjects(found.bytes, key).map((bytes) => decodeLogObject(bytes, key));
    const firstSlot = lastSlot - limits.logPackSlots + 1;
    const isWhole = objects.every((object, at) => object.logId === logId && object.slot === firstSlot + at);
    return isWhole && objects.length === limits.logPackSlots ? objects : null;
  } catch (error) {
    if (!maySucceedLater(error)) throw error;
    return null;
  }
}
