import { deleteAll } from '../../src/object-store/delete-all.ts';
import type { ObjectStore } from '../../src/object-store/object-store.ts';
import { paths } from '../../src/object-store/paths.ts';

/** Namespaces of a deleted tenant that are dropped side by side: each is some requests to the store. */
const dropsInFlightMax = 8;

/** Drops all of them, or rejects after those under way have ended. False where `drop` was for stopping. */
export async function dropEach<Item>(
  items: readonly Item[],
  drop: (item: Item) => Promise<boolean>,
): Promise<boolean> {
  let next = 0;
  let goesOn = true;
  const dropSome = async () => {
    for (let item = items[next++]; item !== undefined && goesOn; item = items[next++])
      if (!(await drop(item))) goesOn = false;
  };
  const ended = await Promise.allSettled(Array.from({ length: dropsInFlightMax }, dropSome));
  for (const end of ended) if (end.status === 'rejected') throw end.reason;
  return goesOn;
}

/** Claims that are not there are as good as deleted. */
export function deleteKeyClaims(store: ObjectStore, digests: readonly string[]): Promise<void> {
  return deleteAll(
    store,
    digests.map((digest) => paths.keyClaim(digest)),
  );
}
