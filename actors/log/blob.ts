import { describeError } from '../../src/base/log.ts';
import { StoreError } from '../../src/object-store/object-store.ts';
import { paths } from '../../src/object-store/paths.ts';
import type { LogComponents } from './group-commit.ts';

/** A blob that is not stored after this many tries is given up: nothing refers to it, so nothing was written. */
const blobTriesMax = 6;
const retryDelayMs = 250;
const blobTimeoutMs = 30_000;

/**
 * Stores a write body that is too large for the log itself. Its name is random and belongs to this upload alone, so
 * "refused" means that an earlier try got through. Answers false when it was given up.
 */
export async function uploadBlob(
  components: LogComponents,
  blob: { readonly logId: string; readonly id: string; readonly bytes: Uint8Array },
): Promise<boolean> {
  const key = paths.logBlob(blob.logId, blob.id);
  for (let tries = 0; tries < blobTriesMax; tries++) {
    try {
      await components.store.putIfAbsent(key, [blob.bytes], { timeoutMs: blobTimeoutMs });
      return true;
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      components.logger.error('a blob was not stored yet', { key, error: describeError(error) });
      await components.clock.sleep(retryDelayMs * 2 ** tries);
    }
  }
  return false;
}
