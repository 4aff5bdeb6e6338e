import type { ListedObject, ObjectStore } from './object-store.ts';

const pageSize = 1_000;

/** Every object under the prefix in byte order, one listing after the other. What changes meanwhile may be seen or not. */
export async function* listAll(store: ObjectStore, prefix: string): AsyncGenerator<ListedObject> {
  for (let after: string | undefined; ; ) {
    const page = await store.list(prefix, { limit: pageSize, ...(after === undefined ? {} : { after }) });
    yield* page.objects;
    after = page.objects.at(-1)?.key ?? after;
    if (!page.more) return;
  }
}
