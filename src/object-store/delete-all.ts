import type { ObjectStore } from './object-store.ts';

/** So many side by side: a thousand deletes must not take minutes, nor all of a store's connections. */
const deletesInFlightMax = 8;

/** Deletes all of them, or rejects after those under way have ended; which of them are left is not known then. */
export async function deleteAll(store: ObjectStore, keys: readonly string[]): Promise<void> {
  let next = 0;
  const deleteSome = async () => {
    for (let key = keys[next++]; key !== undefined; key = keys[next++]) await store.delete(key);
  };
  const ended = await Promise.allSettled(Array.from({ length: deletesInFlightMax }, deleteSome));
  for (const end of ended) if (end.status === 'rejected') throw end.reason;
}
