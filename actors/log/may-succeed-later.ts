import { DataError } from '../../src/base/assert.ts';
import { StoreError } from '../../src/object-store/object-store.ts';

/** Whether a failed read of a log may succeed later: the store was in trouble, or bytes were damaged, which mostly happens on their way. */
export function maySucceedLater(error: unknown): boolean {
  return error instanceof StoreError || error instanceof DataError;
}
