import type { Clock } from '../base/clock.ts';
import type { ObjectStore } from './object-store.ts';
import { type Patience, patiently } from './patiently.ts';

const firstPauseMs = 50;
const pauseMsMax = 2_000;
/** With the pauses between them about ten seconds of a store's trouble. */
export const readPatience: Patience = {
  triesMax: 9,
  pauseMs: (tries) => Math.min(firstPauseMs * 2 ** (tries - 1), pauseMsMax),
};

/** GETs that are tried again where they fail: for what a start reads in thousands and cannot do without. */
export function patientGet(store: Pick<ObjectStore, 'get'>, clock: Clock): Pick<ObjectStore, 'get'> {
  return { get: (key, options) => patiently(clock, readPatience, () => store.get(key, options)) };
}
