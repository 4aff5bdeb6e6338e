/** How many namespaces each server owns, as tenants' manifests show it: for a person, since no server ever needs to know. */
import { limits } from '../../protocol/limits.ts';
import { placementKey } from '../../protocol/placement.ts';
import { rendezvousPick } from '../base/rendezvous-hash.ts';
import { sideBySide } from '../base/side-by-side.ts';
import { listAll } from '../object-store/list-all.ts';
import type { ObjectStore } from '../object-store/object-store.ts';
import { paths, tenantOfManifestKey } from '../object-store/paths.ts';
import { readIntact } from '../object-store/read-intact.ts';
import { namesInManifest } from '../stored/tenant-manifest.ts';

/**
 * Counts by the ids of `servers`, which own everything together; null where there are more tenants than are read for this. Names that were made
 * since their tenant's last flush are not counted.
 */
export async function countOwned(
  store: ObjectStore,
  servers: readonly string[],
  tenantsMax: number = limits.describedTenantsMax,
): Promise<ReadonlyMap<string, number> | null> {
  const counts = new Map(servers.map((server) => [server, 0]));
  if (servers.length === 0) return counts;
  const tenants: { readonly key: string; readonly tenantId: number }[] = [];
  for await (const { key } of listAll(store, paths.tenants)) {
    const tenantId = tenantOfManifestKey(key);
    if (tenantId === null) continue;
    if (tenants.length >= tenantsMax) return null;
    tenants.push({ key, tenantId });
  }
  await sideBySide(tenants, limits.describedTenantsAtOnce, async ({ key, tenantId }) => {
    // One that was removed meanwhile has none.
    const names = await readIntact(store, key, ({ bytes }) => namesInManifest(bytes, key));
    for (const name of names ?? []) {
      const owner = servers[rendezvousPick(placementKey(tenantId, name), servers)] ?? '';
      counts.set(owner, (counts.get(owner) ?? 0) + 1);
    }
  });
  return counts;
}
