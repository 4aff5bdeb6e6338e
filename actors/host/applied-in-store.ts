import { paths } from '../../src/object-store/paths.ts';
import type { ActorComponents } from '../actor/components.ts';
import type { LogTarget } from '../log/unflushed.ts';
import { manifestCodec } from '../namespace/commit-manifest.ts';
import type { LogWatermark } from '../storage/manifest.ts';
import { loadCommitted } from '../storage/manifest-store.ts';
import { tenantManifestCodec } from '../tenant/tenant-state.ts';

/** For what nobody will ever ask for again. */
const everything: LogWatermark = { slot: Number.MAX_SAFE_INTEGER, index: 0 };

/**
 * The last record of a log that the target's manifest has, as the store has it now; null where it has none. Of a namespace whose name leads elsewhere,
 * and that has no manifest any more, nothing will ever be asked for.
 */
export async function appliedInStore(
  components: Pick<ActorComponents, 'store' | 'directory'>,
  { tenantId, namespace, namespaceId }: LogTarget,
  logId: string,
): Promise<LogWatermark | null> {
  const { store, directory } = components;
  if (namespace === '') {
    const committed = await loadCommitted(store, paths.tenantManifest(tenantId), tenantManifestCodec);
    return committed?.value.applied.get(logId) ?? null;
  }
  const committed = await loadCommitted(store, paths.namespaceManifest(namespaceId), manifestCodec);
  // A remnant takes no record any more.
  if (committed?.value.state === 'deleted') return everything;
  if (committed !== null) return committed.value.applied.get(logId) ?? null;
  const resolved = await directory.resolve(tenantId, namespace, null);
  return resolved?.namespaceId === namespaceId ? null : everything;
}
