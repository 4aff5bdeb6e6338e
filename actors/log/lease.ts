import { limits } from '../../protocol/limits.ts';
import type { Clock } from '../../src/base/clock.ts';
import { describeError, type Logger } from '../../src/base/log.ts';
import { packMessage } from '../../src/base/msgpack.ts';
import { type ObjectStore, StoreError } from '../../src/object-store/object-store.ts';
import { paths } from '../../src/object-store/paths.ts';

/**
 * The heartbeat of a log's process: an object that changes every few seconds. It decides only how soon others suspect
 * this server, never whether anything is safe. The answer stops it.
 */
export function keepLease(store: ObjectStore, clock: Clock, logger: Logger, logId: string): () => void {
  let etag: string | null = null;
  let beat = 0;
  let stopped = false;
  let cancel = () => {};
  const renew = async () => {
    beat++;
    const bytes = [packMessage({ beat, at: clock.now() })];
    const key = paths.lease(logId);
    try {
      const put =
        etag === null ? await store.putIfAbsent(key, bytes) : await store.putIfMatch(key, bytes, etag);
      etag = put.kind === 'stored' ? put.etag : ((await store.get(key))?.etag ?? null);
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      logger.debug('the lease was not renewed', { error: describeError(error) });
    }
    if (!stopped) cancel = clock.after(limits.leaseRenewMs, () => void renew());
  };
  void renew();
  return () => {
    stopped = true;
    cancel();
  };
}
