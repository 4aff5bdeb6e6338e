import { ApiError } from '../../protocol/errors.ts';
import type { Clock } from '../base/clock.ts';
import { type Random, randomHex } from '../base/random.ts';
import { decodeRecord, encodeRecord, type RecordFormat } from '../base/record.ts';
import { type ObjectStore, StoreError } from '../object-store/object-store.ts';
import { readIntact } from '../object-store/read-intact.ts';

/** One object of the store that several may change: each change is a compare-and-set. */
export interface StoredRecord<T extends { readonly nonce: string }> {
  readonly path: string;
  readonly format: RecordFormat<T>;
  /** What counts as stored where nothing is: then the first change makes the object. Null: there is nothing to change. */
  readonly absent: T | null;
  /** What an error calls it, such as "the account". */
  readonly name: string;
}

export interface RecordStore {
  readonly objectStore: ObjectStore;
  readonly clock: Clock;
  readonly random: Random;
}

const nonceBytes = 16;
/** Tries of one compare-and-set; such records are touched rarely, so more than a few losses mean something is wrong. */
export const updateAttemptsMax = 8;
/** Pauses double from the first to the longest: two seconds in all. */
const firstPauseMs = 20;
const longestPauseMs = 640;

/** A new one for every stored version: it tells one's own write after an unknown outcome, and no two etags are equal. */
export function newNonce(random: Random): string {
  return randomHex(random, nonceBytes);
}

/** The stored value with its etag; where nothing is stored, `absent` with null. Throws `StoreError` and `DataError`. */
export async function readRecord<T extends { readonly nonce: string }>(
  store: Pick<ObjectStore, 'get'>,
  { path, format, absent }: StoredRecord<T>,
): Promise<{ readonly value: T; readonly etag: string | null } | null> {
  const stored = await readIntact(store, path, ({ bytes, etag }) => ({
    value: decodeRecord(bytes, path, format),
    etag,
  }));
  return stored ?? (absent === null ? null : { value: absent, etag: null });
}

/**
 * Replaces a record by what `change` makes of it; `change` may be called several times and may throw to give up, and
 * returns the same object where there is nothing to write. Answers the stored value, or null where there is none.
 * Throws `StoreError` where surely nothing was stored, 503 `write_unknown` where nobody knows, and 503 `unavailable` when
 * others changed the record at every try.
 */
export async function updateRecord<T extends { readonly nonce: string }>(
  { objectStore, clock, random }: RecordStore,
  record: StoredRecord<T>,
  change: (value: T) => T | Promise<T>,
): Promise<T | null> {
  const triedNonces = new Set<string>();
  let failure: StoreError | null = null;
  /** The failure of a put that may have been applied, and overwritten since, so that its nonce is not seen any more. */
  let unknown: StoreError | null = null;
  for (let attempt = 0; attempt <= updateAttemptsMax; attempt++) {
    if (attempt > 0) await clock.sleep(pauseMs(attempt, random));
    try {
      const stored = await readRecord(objectStore, record);
      if (stored === null) return null;
      // An earlier try whose outcome was unknown, or which the store applied and then refused, has won.
      if (triedNonces.has(stored.value.nonce)) return stored.value;
      // After the last try only whether that one has won.
      if (attempt === updateAttemptsMax) break;
      const changed = await change(stored.value);
      if (changed === stored.value) return changed;
      const next = { ...changed, nonce: newNonce(random) };
      triedNonces.add(next.nonce);
      const bytes = [encodeRecord(record.format, next, record.path)];
      const put =
        stored.etag === null
          ? await objectStore.putIfAbsent(record.path, bytes)
          : await objectStore.putIfMatch(record.path, bytes, stored.etag);
      if (put.kind === 'stored') return next;
      failure = null;
    } catch (error) {
      // What `change` refuses after a lost put may be refused because of it.
      if (!(error instanceof StoreError)) throw unknown === null ? error : changeUnknown(record.name, error);
      failure = error;
      if (error.outcome === 'unknown') unknown = error;
    }
  }
  if (unknown !== null) throw changeUnknown(record.name, unknown);
  if (failure !== null) throw failure;
  const sentence = `${record.name} is being changed elsewhere; nothing was done: try again`;
  throw new ApiError('unavailable', sentence, { retryAfter: 1 });
}

/** By chance between half and the whole of it: who lost together would meet again. */
function pauseMs(attempt: number, random: Random): number {
  const wholeMs = Math.min(firstPauseMs * 2 ** (attempt - 1), longestPauseMs);
  return (wholeMs * (1 + (random.bytes(1)[0] ?? 0) / 256)) / 2;
}

function changeUnknown(name: string, cause: unknown): ApiError {
  const sentence = `object storage failed; ${name} may have been changed: look before you try again`;
  return new ApiError('write_unknown', sentence, { cause, retryAfter: 1 });
}
