import type { Clock } from '../../src/base/clock.ts';

/** How long a deletion is answered later for its objects to be gone with it. */
export const dropWaitMs = 5_000;
/** Pauses double: about four minutes of a store's trouble. */
const dropTriesMax = 10;
const dropPauseMs = 250;

/** Drops what a deletion has left behind, again while the store does not answer. Never rejects: at last the flush does it. */
export async function keepDropping(
  clock: Clock,
  work: {
    readonly drop: () => Promise<void>;
    readonly onFailure: (error: unknown) => void;
    readonly isOver: () => boolean;
  },
): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await work.drop();
    } catch (error) {
      work.onFailure(error);
    }
    if (tries === dropTriesMax || work.isOver()) return;
    await clock.sleep(dropPauseMs * 2 ** (tries - 1));
  }
}
