import type { ObjectStoreSettings } from './object-store/open-object-store.ts';
import { type BucketSettings, readSettings, type Settings } from './settings.ts';
import type { Env } from './settings-values.ts';

/**
 * Where a command finds the store that it reads by itself, from the environment of a server. How servers reach each other is no
 * matter of it: a shell that has started several has their cluster key and the port of none. Throws `SettingsError`.
 */
export function readStoreSettings(env: Env): ObjectStoreSettings {
  const isOfPeers = (name: string) => /^TIDEBASE_(PEER|CLUSTER)_/.test(name);
  const own = Object.entries(env).filter(([name]) => !isOfPeers(name));
  return storeSettingsOf(readSettings(Object.fromEntries(own)));
}

/** Where the settings say that everything durable lies. */
export function storeSettingsOf(settings: Pick<Settings, 's3' | 'objectsDir'>): ObjectStoreSettings {
  if (settings.s3 === null) return { kind: 'fs', folder: settings.objectsDir };
  return bucketStoreSettings(settings.s3);
}

export function bucketStoreSettings(bucket: BucketSettings): ObjectStoreSettings {
  const { endpoint, credentials, ...s3 } = bucket;
  return { kind: 's3', ...s3, endpoint: endpoint ?? undefined, ...credentials };
}
