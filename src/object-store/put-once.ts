import { BytePipe, PipeClosed } from '../base/byte-pipe.ts';
import type { Clock } from '../base/clock.ts';
import type { ObjectStore } from './object-store.ts';
import { type Patience, patiently } from './patiently.ts';

/** Tries of one upload, with pauses that double: about 15 seconds in all before it is given up. */
export const putTriesMax = 7;
const firstPauseMs = 250;
const patience: Patience = { triesMax: putTriesMax, pauseMs: (tries) => firstPauseMs * 2 ** (tries - 1) };
const putTimeoutMs = 60_000;
/** What a stream's maker may be ahead of its upload: the store's own parts come on top of it. */
const aheadBytesMax = 4 * 1024 * 1024;

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
  await patiently(clock, patience, () => store.putIfAbsent(key, bytes, { timeoutMs: putTimeoutMs }));
}

/** Takes an object's bytes in order; the array is the sink's to keep. A promise holds the maker up. */
export type ByteSink = (chunk: Uint8Array) => void | Promise<void>;

/**
 * As `putOnce`, for an object that is made while it is stored and need not fit into memory. `make` is called once a try
 * and gives the same bytes each time; the answer is what it resolved to.
 */
export async function streamOnce<T>(
  store: ObjectStore,
  clock: Clock,
  key: string,
  make: (sink: ByteSink) => Promise<T>,
): Promise<T> {
  return patiently(clock, patience, () => streamTry(store, key, make));
}

async function streamTry<T>(
  store: ObjectStore,
  key: string,
  make: (sink: ByteSink) => Promise<T>,
): Promise<T> {
  const pipe = new BytePipe(aheadBytesMax);
  const storing = store.putStream(key, pipe, { timeoutMs: putTimeoutMs }).finally(() => pipe.close());
  const making = make((chunk) => pipe.write(chunk)).then(
    (value) => {
      pipe.end();
      return value;
    },
    (error: unknown) => {
      pipe.end(error);
      throw error;
    },
  );
  const [stored, made] = await Promise.allSettled([storing, making]);
  if (made.status === 'rejected' && !(made.reason instanceof PipeClosed)) throw made.reason;
  if (stored.status === 'rejected') throw stored.reason;
  // Refused before all was made: the object is there, and what it is is found out without storing it.
  return made.status === 'fulfilled' ? made.value : make(() => {});
}
