import type { Clock } from '../base/clock.ts';
import { type ObjectStore, StoreError } from './object-store.ts';

/** Tries of one upload, with pauses that double: about 15 seconds in all before it is given up. */
export const putTriesMax = 7;
const firstPauseMs = 250;
const putTimeoutMs = 60_000;

/**
 * Stores an immutable object under a random name that belongs to this upload alone, so "refused" means that an earlier
 * try got through. Throws the last StoreError where it was given up: then nothing may refer to the name.
 */
export async function putOnce(
  store: ObjectStore,
  clock: Clock,
  key: string,
  bytes: readonly Uint8Array[],
): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await store.putIfAbsent(key, bytes, { timeoutMs: putTimeoutMs });
      return;
    } catch (error) {
      if (!(error instanceof StoreError) || tries === putTriesMax) throw error;
      await clock.sleep(firstPauseMs * 2 ** (tries - 1));
    }
  }
}
