import { paths } from '../../src/object-store/paths.ts';
import type { ActorComponents } from '../actor/components.ts';
import type { Manifest, RetiredObject } from '../storage/manifest.ts';
import { Deposed, loadCommitted } from '../storage/manifest-store.ts';
import { keyOfObject } from '../storage/object-ref.ts';
import { pinnedKeys } from '../storage/shared-objects.ts';
import { commitManifest, manifestCodec } from './commit-manifest.ts';
import type { NamespaceState } from './namespace-state.ts';

/**
 * Deletes segments that a compaction replaced, and sets of deleted rows that grew, once no read can still need them.
 *
 * The manifest is read again right before: a deposed owner must delete nothing, because its successor may have begun
 * from a manifest that still names the object. Objects go first, then their names: a crash between the two deletes
 * them once more, which is harmless.
 */
export async function collectRetired(components: ActorComponents, state: NamespaceState): Promise<void> {
  const current = state.committed;
  if (current === null) return;
  const { due, kept } = planRetirement(
    current.value,
    components.clock.now() - components.limits.retiredGraceMs,
  );
  if (due.length === 0) return;
  const { namespaceId } = state.identity;
  const key = paths.namespaceManifest(namespaceId);
  for (const object of due) {
    // An object of another namespace is that one's to delete; here it was only read.
    if (object.home !== undefined) continue;
    const found = await loadCommitted(components.store, key, manifestCodec);
    if (found?.value.nonce !== current.value.nonce)
      throw new Deposed(`${key} was changed by another process`);
    const gone = keyOfObject(namespaceId, object);
    await components.store.delete(gone);
    // It was kept there for whoever held it.
    await components.warmCache?.forgetObject(gone);
  }
  await commitManifest(components, state, { retired: kept });
}

/** Says which retired objects go, because they were replaced by `untilMs` and nobody holds them, and which stay on the list. Pure. */
export function planRetirement(
  manifest: Pick<Manifest, 'namespaceId' | 'retired' | 'pins'>,
  untilMs: number,
): { readonly due: Manifest['retired']; readonly kept: Manifest['retired'] } {
  const { namespaceId, retired } = manifest;
  if (!retired.some(({ atMs }) => atMs <= untilMs)) return { due: [], kept: retired };
  const pinned = pinnedKeys(manifest);
  const isDue = (object: RetiredObject) =>
    object.atMs <= untilMs && !pinned.has(keyOfObject(namespaceId, object));
  return { due: retired.filter(isDue), kept: retired.filter((entry) => !isDue(entry)) };
}
