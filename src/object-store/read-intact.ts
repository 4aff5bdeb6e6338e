import { DataError } from '../base/assert.ts';
import type { ObjectStore, StoredObject } from './object-store.ts';

/**
 * An object, decoded; null where there is none. Bytes that do not decode are read once more, since a transfer may have
 * changed them; what is then damaged still is damaged in the store. Throws `StoreError` and `DataError`.
 */
export async function readIntact<T>(
  store: Pick<ObjectStore, 'get'>,
  key: string,
  decode: (object: StoredObject) => T,
): Promise<T | null> {
  const found = await store.get(key);
  if (found === null) return null;
  try {
    return decode(found);
  } catch (error) {
    if (!(error instanceof DataError)) throw error;
  }
  const again = await store.get(key);
  return again === null ? null : decode(again);
}
