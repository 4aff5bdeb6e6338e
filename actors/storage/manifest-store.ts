/**
 * Commits by compare-and-set, with the outcome always found out: an unknown PUT is sent again with the same bytes
 * until the object itself says whose bytes it holds.
 */
import type { Clock } from '../../src/base/clock.ts';
import { type ObjectStore, StoreError } from '../../src/object-store/object-store.ts';
import { readIntact } from '../../src/object-store/read-intact.ts';

export interface Versioned {
  readonly version: number;
  readonly nonce: string;
}

export interface Committed<T> {
  readonly value: T;
  readonly etag: string;
  /** How long the object is, in bytes. */
  readonly size: number;
}

/** Another process changed the object: this one is no longer the owner and must close. */
export class Deposed extends Error {
  override name = 'Deposed';
}

/**
 * The actor closed before it took the work: nothing was written, or only under an id that nobody finds. Whoever asked opens it again
 * and asks that one.
 */
export class ActorClosed extends Error {
  override name = 'ActorClosed';
}

export interface RecordCodec<T> {
  /** `place` is the object's key. */
  encode(value: T, place: string): Uint8Array;
  decode(bytes: Uint8Array, place: string): T;
}

const retryDelayMsMin = 20;
const retryDelayMsMax = 1_000;

export async function loadCommitted<T>(
  store: ObjectStore,
  key: string,
  codec: RecordCodec<T>,
): Promise<Committed<T> | null> {
  return readIntact(store, key, ({ bytes, etag, size }) => ({ value: codec.decode(bytes, key), etag, size }));
}

/** Makes `next` the successor of `current`. Throws Deposed where another writer was faster; never gives up otherwise. */
export async function commit<T extends Versioned>(
  components: { readonly store: ObjectStore; readonly clock: Clock },
  codec: RecordCodec<T>,
  change: { readonly key: string; readonly next: T; readonly current: Committed<T> | null },
): Promise<Committed<T>> {
  const { store, clock } = components;
  const { key, next, current } = change;
  const bytes = codec.encode(next, key);
  for (let delayMs = retryDelayMsMin; ; delayMs = Math.min(delayMs * 2, retryDelayMsMax)) {
    try {
      const put =
        current === null
          ? await store.putIfAbsent(key, [bytes])
          : await store.putIfMatch(key, [bytes], current.etag);
      if (put.kind === 'stored') return { value: next, etag: put.etag, size: bytes.byteLength };
      const found = await loadCommitted(store, key, codec);
      if (found?.value.nonce === next.nonce) return { ...found, value: next };
      throw new Deposed(`${key} was changed by another process`);
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      await clock.sleep(delayMs);
    }
  }
}
