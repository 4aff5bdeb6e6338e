import type { Clock } from '../base/clock.ts';
import { type ObjectStore, StoreError } from './object-store.ts';

/** With the pauses between them about ten seconds of a store's trouble. */
const triesMax = 9;
const firstPauseMs = 50;
const pauseMsMax = 2_000;

/** GETs that are tried again where they fail: for what a start reads in thousands and cannot do without. */
export function patientGet(store: Pick<ObjectStore, 'get'>, clock: Clock): Pick<ObjectStore, 'get'> {
  return {
    async get(key, options) {
      for (let tries = 1; ; tries++) {
        try {
          return await store.get(key, options);
        } catch (error) {
          if (!(error instanceof StoreError) || tries === triesMax) throw error;
          await clock.sleep(Math.min(firstPauseMs * 2 ** (tries - 1), pauseMsMax));
        }
      }
    },
  };
}
