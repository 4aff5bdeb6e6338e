import { randomHex } from '../../src/base/random.ts';
import { deleteAll } from '../../src/object-store/delete-all.ts';
import { listAll } from '../../src/object-store/list-all.ts';
import { paths } from '../../src/object-store/paths.ts';
import type { ActorComponents } from '../actor/components.ts';
import type { ReplayedRecord } from '../log/replay.ts';
import type { Manifest, NamespaceIdentity } from '../storage/manifest.ts';
import { checkManifest } from '../storage/manifest-invariants.ts';
import { type Committed, commit, loadCommitted } from '../storage/manifest-store.ts';
import { keyOfObject } from '../storage/object-ref.ts';
import {
  buried,
  heldBytes,
  needsParent,
  objectsNamedBy,
  objectsOfManifest,
  withoutPin,
} from '../storage/shared-objects.ts';
import { manifestCodec } from './commit-manifest.ts';
import { lastWords } from './last-words.ts';

/**
 * Deletes what a namespace without a name owns, without opening it: its manifest may be gone already, and then records
 * that are still in the log follow upon nothing. `records`: those; nobody needs them once the tenant has metered them.
 */
export async function dropObjects(
  components: ActorComponents,
  identity: Omit<NamespaceIdentity, 'createdAt'>,
  records: readonly ReplayedRecord[],
): Promise<void> {
  const { store, log, directory } = components;
  const { tenantId, namespaceId, name } = identity;
  const committed = await loadCommitted(store, paths.namespaceManifest(namespaceId), manifestCodec);
  const words = lastWords(identity, committed?.value ?? null, records);
  if (words !== null) await directory.report(tenantId, name, words);
  await eraseNamespace(components, namespaceId);
  for (const [logId, { slot, index }] of committed?.value.applied ?? [])
    log.flushed(identity, { logId, slot, index });
  for (const { position } of records) log.flushed(identity, position);
}

type EraseComponents = Pick<ActorComponents, 'store' | 'warmCache' | 'clock' | 'random' | 'directory'>;

/**
 * Deletes everything of a namespace that no name leads to any more: what this thread has of it on the local disk, and everything
 * in its folder of the store, what its manifest never came to name too. What others hold of it stays until they let it go, and
 * with it its manifest, as a remnant. Done again it goes on where it ended.
 */
export async function eraseNamespace(components: EraseComponents, namespaceId: string): Promise<void> {
  const { store, warmCache } = components;
  const key = paths.namespaceManifest(namespaceId);
  const found = await loadCommitted(store, key, manifestCodec);
  const remnant = found === null ? null : await bury(components, found);
  if (remnant !== null) {
    await components.directory.reportHeld(remnant.tenantId, namespaceId, heldBytes(remnant));
    return deleteAllBut(components, remnant);
  }
  // Before the remnant goes, which is what makes it be told again.
  if (found?.value.state === 'deleted')
    await components.directory.reportHeld(found.value.tenantId, namespaceId, 0);
  await warmCache?.forgetNamespace(namespaceId);
  // The manifest goes first: segments without a manifest are orphans, a manifest without segments is damage.
  await store.delete(key);
  await deleteAll(store, await keysIn(store, namespaceId));
}

/**
 * Takes the pin of a holder out of a namespace whose name is gone, and deletes what it held alone. Rejects with `Deposed` where another
 * one takes a pin out at the same moment.
 */
export async function releaseBuried(
  components: EraseComponents,
  namespaceId: string,
  holderId: string,
): Promise<void> {
  const key = paths.namespaceManifest(namespaceId);
  const found = await loadCommitted(components.store, key, manifestCodec);
  if (found === null) return;
  const pins = withoutPin(found.value.pins ?? [], holderId);
  if (pins.length === (found.value.pins ?? []).length) return;
  await succeed(components, found, { pins });
  // One that still lives is being deleted: whoever does that has begun, or begins again.
  if (found.value.state === 'deleted') await eraseNamespace(components, namespaceId);
}

/**
 * Commits a remnant with the pins where others still hold something of the namespace, and answers it; null where nobody does. Has the
 * parent take this namespace's pin out once nothing of others is needed.
 */
async function bury(components: EraseComponents, found: Committed<Manifest>): Promise<Manifest | null> {
  const { value } = found;
  const left = buried(value, components.clock.now());
  const isDone = value.state === 'deleted' && left?.retired.length === value.retired.length;
  const next = left === null ? null : { ...value, ...left };
  const parent = value.parent ?? null;
  if (parent !== null && (next === null || !needsParent(next))) {
    await forgetShared(components, value);
    await components.directory.release(value.tenantId, parent.name, parent.namespaceId, value.namespaceId);
    if (next !== null) return succeed(components, found, { ...left, parent: null });
  }
  if (next === null) return null;
  return isDone ? value : succeed(components, found, left ?? {});
}

async function succeed(
  components: EraseComponents,
  current: Committed<Manifest>,
  changes: Partial<Manifest>,
): Promise<Manifest> {
  const { value } = current;
  const nonce = randomHex(components.random, 16);
  const next = { ...value, ...changes, version: value.version + 1, nonce };
  checkManifest(next, value);
  const key = paths.namespaceManifest(value.namespaceId);
  return (await commit(components, manifestCodec, { key, next, current })).value;
}

async function deleteAllBut({ store, warmCache }: EraseComponents, remnant: Manifest): Promise<void> {
  const kept = new Set(objectsOfManifest(remnant));
  const gone = (await keysIn(store, remnant.namespaceId)).filter((key) => !kept.has(key));
  for (const key of gone) await warmCache?.forgetObject(key);
  await deleteAll(store, gone);
}

/** Takes objects in the folders of other namespaces off the local disk: whoever reads them too fetches them again. */
async function forgetShared({ warmCache }: EraseComponents, manifest: Manifest): Promise<void> {
  for (const object of objectsNamedBy(manifest))
    if (object.home !== undefined) await warmCache?.removeObject(keyOfObject(manifest.namespaceId, object));
}

async function keysIn(store: EraseComponents['store'], namespaceId: string): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of listAll(store, paths.namespaceFolder(namespaceId))) keys.push(key);
  return keys;
}
