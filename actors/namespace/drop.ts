import { deleteAll } from '../../src/object-store/delete-all.ts';
import { listAll } from '../../src/object-store/list-all.ts';
import { paths } from '../../src/object-store/paths.ts';
import type { ActorComponents } from '../actor/components.ts';
import type { ReplayedRecord } from '../log/replay.ts';
import type { NamespaceIdentity } from '../storage/manifest.ts';
import { loadCommitted } from '../storage/manifest-store.ts';
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

/**
 * Deletes everything of a namespace that no name leads to any more: what this thread has of it on the local disk, and everything
 * in its folder of the store, what its manifest never came to name too.
 */
export async function eraseNamespace(
  { store, warmCache }: Pick<ActorComponents, 'store' | 'warmCache'>,
  namespaceId: string,
): Promise<void> {
  await warmCache?.forgetNamespace(namespaceId);
  // The manifest goes first: segments without a manifest are orphans, a manifest without segments is damage.
  await store.delete(paths.namespaceManifest(namespaceId));
  const keys: string[] = [];
  for await (const { key } of listAll(store, paths.namespaceFolder(namespaceId))) keys.push(key);
  await deleteAll(store, keys);
}
