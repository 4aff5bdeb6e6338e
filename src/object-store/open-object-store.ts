import { unreachable } from '../base/assert.ts';
import type { Clock } from '../base/clock.ts';
import type { Random } from '../base/random.ts';
import { CountingObjectStore } from './counting-object-store.ts';
import { FsObjectStore } from './fs-object-store.ts';
import type { ObjectStore } from './object-store.ts';
import type { S3Settings } from './s3-object-store.ts';
import { countFailuresInto, countInto, countStreamedInto, type SharedCounters } from './store-counters.ts';

/** A plain record: it crosses threads, each of which opens its own store. */
export type ObjectStoreSettings = (
  | { readonly kind: 'fs'; readonly folder: string }
  | ({ readonly kind: 's3' } & S3Settings)
) & {
  /** Where this process counts its calls; nobody counts them where it is absent. */
  readonly counters?: SharedCounters | undefined;
};

export async function openObjectStore(
  settings: ObjectStoreSettings,
  clock: Clock,
  random: Random,
): Promise<ObjectStore> {
  const store = await openUncounted(settings, clock, random);
  const { counters } = settings;
  if (counters === undefined) return store;
  return new CountingObjectStore(
    store,
    countInto(counters),
    countStreamedInto(counters),
    countFailuresInto(counters),
  );
}

async function openUncounted(
  settings: ObjectStoreSettings,
  clock: Clock,
  random: Random,
): Promise<ObjectStore> {
  switch (settings.kind) {
    case 'fs':
      return FsObjectStore.open(settings.folder, clock, random);
    case 's3': {
      // The SDK takes long to load, and most servers at home never need it.
      const { S3ObjectStore } = await import('./s3-object-store.ts');
      return new S3ObjectStore(settings, clock);
    }
    default:
      return unreachable(settings);
  }
}
