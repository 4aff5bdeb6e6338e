import type { Clock } from '../base/clock.ts';
import { StoreError } from './object-store.ts';

/** How often something that may be repeated is tried, and what passes by itself. */
export interface Patience {
  readonly triesMax: number;
  /** The pause after so many tries, in milliseconds. */
  readonly pauseMs: (tries: number) => number;
  /** Whether an error is one that another try may not meet; a store's trouble where absent. */
  readonly passes?: (error: unknown) => boolean;
}

const isStoreTrouble = (error: unknown) => error instanceof StoreError;

/** The work's result; throws its last error where patience ends, and at once one that does not pass. */
export async function patiently<T>(clock: Clock, patience: Patience, work: () => Promise<T>): Promise<T> {
  const { triesMax, pauseMs, passes = isStoreTrouble } = patience;
  for (let tries = 1; ; tries++) {
    try {
      return await work();
    } catch (error) {
      if (!passes(error) || tries === triesMax) throw error;
      await clock.sleep(pauseMs(tries));
    }
  }
}
