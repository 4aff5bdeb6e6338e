import { decodeManifest } from '../../actors/storage/manifest.ts';
import { keyOfObject } from '../../actors/storage/object-ref.ts';
import { objectsOfManifest } from '../../actors/storage/shared-objects.ts';
import { tenantManifestCodec } from '../../actors/tenant/tenant-state.ts';
import { type ClusterView, decodeView } from '../../src/cluster/view.ts';
import { logSlotOfKey, paths } from '../../src/object-store/paths.ts';
import { decodeFloor } from '../../src/stored/log-floor.ts';
import { decodeLogObject } from '../../src/stored/log-object.ts';

/** What the function below needs of a store. */
export interface Objects {
  readonly keys: readonly string[];
  find(key: string): { readonly bytes: Uint8Array } | undefined;
}

/**
 * Keys that nothing accounts for. What does: the view names members and sealed logs; a member has a lease and, above its
 * floor, records and their blobs; every log keeps its seal, its barriers and its floor, and one that the view still names the marker
 * that it is done with; tenants name their namespaces, whose manifests name segments; people and claims stand for themselves.
 */
export function unaccountedObjects(objects: Objects): string[] {
  const accounted = new Set<string>([paths.view, paths.swept, ...keysOfNamespaces(objects)]);
  const view = viewOf(objects);
  for (const { logId } of view.members) accounted.add(paths.lease(logId));
  for (const { logId } of view.removed) accounted.add(paths.logDone(logId));
  for (const key of objects.keys) accountFor(accounted, objects, view, key);
  return objects.keys.filter((key) => !accounted.has(key));
}

function accountFor(accounted: Set<string>, objects: Objects, view: ClusterView, key: string): void {
  if (/^(account|usage)\//.test(key) || /^log\/\w+\/floor$/.test(key)) accounted.add(key);
  else if (logSlotOfKey(key) !== null) accountForSlot(accounted, objects, view, key);
}

/**
 * What the tenants' names lead to: their manifests, the objects that these name, and what a parent's pin lists for them. What a manifest
 * only has yet to delete has had its time.
 */
function keysOfNamespaces(objects: Objects): Set<string> {
  const accounted = new Set<string>();
  const visit = (namespaceId: string, holderId: string | null): void => {
    const key = paths.namespaceManifest(namespaceId);
    accounted.add(key);
    if (objects.find(key) === undefined) return;
    const manifest = decodeManifest(bytesOf(objects, key), key);
    const pin = manifest.pins?.find((each) => each.namespaceId === holderId);
    const named = holderId === null ? objectsOfManifest({ ...manifest, retired: [] }) : [];
    for (const each of named) accounted.add(each);
    for (const object of pin?.objects ?? []) accounted.add(keyOfObject(namespaceId, object));
    if (manifest.parent !== undefined && manifest.parent !== null)
      visit(manifest.parent.namespaceId, namespaceId);
  };
  for (const key of objects.keys.filter((each) => /^tenant\/.*\/manifest$/.test(each))) {
    accounted.add(key);
    const { state } = tenantManifestCodec.decode(bytesOf(objects, key), key);
    for (const { namespaceId } of state.names.values()) visit(namespaceId, null);
  }
  return accounted;
}

function accountForSlot(accounted: Set<string>, objects: Objects, view: ClusterView, key: string): void {
  const { kind, logId, slot, records } = decodeLogObject(bytesOf(objects, key), key);
  const isMember = view.members.some((member) => member.logId === logId);
  if (kind === 'group' && !(isMember && slot > floorOf(objects, logId))) return;
  accounted.add(key);
  for (const { head } of records) if (head.blob !== null) accounted.add(paths.logBlob(logId, head.blob.id));
}

function floorOf(objects: Objects, logId: string): number {
  const key = paths.logFloor(logId);
  if (objects.find(key) === undefined) return 0;
  return decodeFloor(bytesOf(objects, key), logId).floor;
}

function viewOf(objects: Objects): ClusterView {
  return decodeView(bytesOf(objects, paths.view));
}

function bytesOf(objects: Objects, key: string): Uint8Array {
  return objects.find(key)?.bytes ?? new Uint8Array();
}
