import { limits } from '../../protocol/limits.ts';
import { DataError } from '../../src/base/assert.ts';
import type { Clock } from '../../src/base/clock.ts';
import { describeError, type Logger } from '../../src/base/log.ts';
import { packMessage } from '../../src/base/msgpack.ts';
import { type ObjectStore, StoreError } from '../../src/object-store/object-store.ts';
import { paths } from '../../src/object-store/paths.ts';

export interface LeaseComponents {
  readonly store: ObjectStore;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * The heartbeat of a log's process: an object that changes every few seconds. It decides only how soon others suspect
 * this server, never whether anything is safe. `onLate` is called after this process stood still for so long that
 * another may have taken its place. The answer stops it.
 */
export function keepLease(
  { store, clock, logger }: LeaseComponents,
  logId: string,
  { everyMs, onLate }: { readonly everyMs: number; readonly onLate: () => void },
): () => void {
  let etag: string | null = null;
  let beat = 0;
  let stopped = false;
  let cancel = () => {};
  const isLate = lateness(clock);
  const renew = async () => {
    beat++;
    if (isLate()) onLate();
    const bytes = [packMessage({ beat, at: clock.now() })];
    const key = paths.lease(logId);
    try {
      const put =
        etag === null ? await store.putIfAbsent(key, bytes) : await store.putIfMatch(key, bytes, etag);
      etag = put.kind === 'stored' ? put.etag : ((await store.get(key))?.etag ?? null);
    } catch (error) {
      // A damaged lease is what it is where the store does not answer: not renewed, which is all that a lease can be.
      if (!(error instanceof StoreError) && !(error instanceof DataError)) throw error;
      logger.debug('the lease was not renewed', { error: describeError(error) });
    }
    if (isLate()) onLate();
    if (!stopped) cancel = clock.after(everyMs, () => void renew());
  };
  void renew();
  return () => {
    stopped = true;
    cancel();
  };
}

/** Whether more time went by since the last call than a beat takes; by both clocks, because one stands still with the machine. */
function lateness(clock: Clock): () => boolean {
  let monotonicMs = clock.monotonic();
  let wallMs = clock.now();
  return () => {
    const passedMs = Math.max(clock.monotonic() - monotonicMs, clock.now() - wallMs);
    monotonicMs = clock.monotonic();
    wallMs = clock.now();
    return passedMs > limits.leaseLateMsMax;
  };
}
