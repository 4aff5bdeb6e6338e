import { describeError } from '../../src/base/log.ts';
import { StoreError } from '../../src/object-store/object-store.ts';
import { paths } from '../../src/object-store/paths.ts';
import { putOnce } from '../../src/object-store/put-once.ts';
import type { LogComponents } from './log-components.ts';

/**
 * Stores a write body that is too large for the log itself. Answers false when it was given up: nothing refers to it, so
 * nothing was written.
 */
export async function uploadBlob(
  components: LogComponents,
  blob: { readonly logId: string; readonly id: string; readonly bytes: Uint8Array },
): Promise<boolean> {
  const key = paths.logBlob(blob.logId, blob.id);
  try {
    await putOnce(components.store, components.clock, key, [blob.bytes]);
    return true;
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    components.logger.error('a blob was not stored', { object: key, error: describeError(error) });
    return false;
  }
}
