import { paths } from '../../src/object-store/paths.ts';
import type { ActorComponents } from '../components.ts';
import type { LogPosition } from '../log/replay.ts';
import { type NamespaceIdentity, segmentIdsOf } from '../storage/manifest.ts';
import { loadCommitted } from '../storage/manifest-store.ts';
import { manifestCodec } from './commit-manifest.ts';

/**
 * Deletes what a namespace without a name owns, without opening it: its manifest may be gone already, and then records
 * that are still in the log follow upon nothing. `positions`: those records; nobody needs them any more.
 */
export async function dropObjects(
  components: ActorComponents,
  identity: Pick<NamespaceIdentity, 'tenantId' | 'namespaceId'>,
  positions: readonly LogPosition[],
): Promise<void> {
  const { store, log } = components;
  const { namespaceId } = identity;
  const key = paths.namespaceManifest(namespaceId);
  const committed = await loadCommitted(store, key, manifestCodec);
  // The manifest goes first: segments without a manifest are orphans, a manifest without segments is damage.
  if (committed !== null) await store.delete(key);
  for (const id of committed === null ? [] : segmentIdsOf(committed.value)) {
    await store.delete(paths.namespaceSegment(namespaceId, id));
  }
  for (const [logId, { seq, index }] of committed?.value.applied ?? [])
    log.flushed(identity, { logId, seq, index });
  for (const position of positions) log.flushed(identity, position);
}
