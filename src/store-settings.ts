import type { ObjectStoreSettings } from './object-store/open-object-store.ts';
import type { BucketSettings, Settings } from './settings.ts';

/** Where the settings say that everything durable lies. */
export function storeSettingsOf(settings: Pick<Settings, 's3' | 'objectsDir'>): ObjectStoreSettings {
  if (settings.s3 === null) return { kind: 'fs', folder: settings.objectsDir };
  return bucketStoreSettings(settings.s3);
}

export function bucketStoreSettings(bucket: BucketSettings): ObjectStoreSettings {
  const { endpoint, credentials, ...s3 } = bucket;
  return { kind: 's3', ...s3, endpoint: endpoint ?? undefined, ...credentials };
}
