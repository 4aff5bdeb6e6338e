import type { ListedObject, ObjectStore, Upload } from './object-store.ts';

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

/** Every upload under the prefix that has not ended, in the same way. */
export async function* listAllUploads(store: ObjectStore, prefix: string): AsyncGenerator<Upload> {
  for (let after: Upload | undefined; ; ) {
    const page = await store.listUploads(prefix, {
      limit: pageSize,
      ...(after === undefined ? {} : { after }),
    });
    yield* page.uploads;
    after = page.uploads.at(-1) ?? after;
    if (!page.more) return;
  }
}
