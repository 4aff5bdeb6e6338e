import type { Clock } from '../base/clock.ts';
import { type ObjectStore, StoreError } from './object-store.ts';

/** Sends of one claim before its failure is reported; with the pauses between them about 1.5 s of a store's trouble. */
export const claimAttemptsMax = 5;
const firstPauseMs = 100;

/**
 * Creates an object that only one caller may create, through unknown outcomes: always the same bytes, until the store
 * has said which bytes are there. `bytes` must tell this caller from every other one (a nonce) unless equal bytes mean
 * the same thing whoever wrote them; finding them stored is success.
 *
 * Throws `StoreError`; its outcome is `'unknown'` where any of the sends may have been applied.
 */
export async function claim(
  store: ObjectStore,
  clock: Clock,
  key: string,
  bytes: Uint8Array,
): Promise<'won' | 'taken'> {
  let mayBeStored = false;
  for (let attempt = 1; ; attempt++) {
    try {
      const put = await store.putIfAbsent(key, [bytes]);
      if (put.kind === 'stored') return 'won';
      const stored = await store.get(key);
      if (stored !== null) return Buffer.compare(stored.bytes, bytes) === 0 ? 'won' : 'taken';
      // Refused, and gone since: whoever held the claim gave it up.
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      mayBeStored ||= error.outcome === 'unknown';
      if (attempt >= claimAttemptsMax) throw claimFailure(error, mayBeStored);
    }
    if (attempt >= claimAttemptsMax) return 'taken';
    await clock.sleep(firstPauseMs * 2 ** (attempt - 1));
  }
}

function claimFailure(last: StoreError, mayBeStored: boolean): StoreError {
  if (!mayBeStored || last.outcome === 'unknown') return last;
  return new StoreError(last.operation, last.key, 'unknown', last.reason, { cause: last });
}
