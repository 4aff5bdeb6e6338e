import { join } from 'node:path';
import { decodeManifest, type Manifest } from '../../actors/storage/manifest.ts';
import { objectsOfManifest } from '../../actors/storage/shared-objects.ts';
import { systemClock } from '../../src/base/clock.ts';
import { systemRandom } from '../../src/base/random.ts';
import { FsObjectStore } from '../../src/object-store/fs-object-store.ts';
import { listAll } from '../../src/object-store/list-all.ts';
import { namespaceOfKey, paths } from '../../src/object-store/paths.ts';

/** The objects of namespaces as they lie in the folder of a server that has stopped, held against what manifests name. */
export interface StoredObjects {
  readonly namespaces: number;
  readonly objects: number;
  /** Keys that no manifest names: nobody would ever read or delete them before they are a day old. */
  readonly orphans: readonly string[];
  /** Keys that a manifest names and that are not there. */
  readonly missing: readonly string[];
  /** Replaced and waiting for their deletion. */
  readonly retired: number;
  readonly logObjects: number;
}

export async function readStoredObjects(dataFolder: string): Promise<StoredObjects> {
  const store = await FsObjectStore.open(join(dataFolder, 'objects'), systemClock, systemRandom);
  const keys: string[] = [];
  for await (const { key } of listAll(store, paths.namespaces)) keys.push(key);
  const manifests: Manifest[] = [];
  for (const id of new Set(keys.flatMap((key) => namespaceOfKey(key) ?? []))) {
    const key = paths.namespaceManifest(id);
    const stored = await store.get(key);
    if (stored !== null) manifests.push(decodeManifest(stored.bytes, key));
  }
  let logObjects = 0;
  for await (const _ of listAll(store, paths.logs)) logObjects++;
  return { ...compareObjects(keys, manifests), logObjects };
}

type NamedObjects = Pick<Manifest, 'namespaceId' | 'segments' | 'retired'>;

/** What lies there against what should. Pure. */
export function compareObjects(
  keys: readonly string[],
  manifests: readonly NamedObjects[],
): Omit<StoredObjects, 'logObjects'> {
  const named = new Set(manifests.flatMap((manifest) => objectsOfManifest(manifest)));
  const there = new Set(keys);
  const retired = manifests.reduce((sum, manifest) => sum + manifest.retired.length, 0);
  return {
    namespaces: manifests.length,
    objects: keys.length,
    orphans: keys.filter((key) => !named.has(key)),
    missing: [...named].filter((key) => !there.has(key)),
    retired,
  };
}
