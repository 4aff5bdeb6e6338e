import { paths } from '../../src/object-store/paths.ts';
import type { ActorComponents } from '../actor/components.ts';
import { keyOfRetired, type Manifest } from '../storage/manifest.ts';
import { Deposed, loadCommitted } from '../storage/manifest-store.ts';
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
    current.value.retired,
    components.clock.now() - components.limits.retiredGraceMs,
  );
  if (due.length === 0) return;
  const { namespaceId } = state.identity;
  const key = paths.namespaceManifest(namespaceId);
  for (const object of due) {
    const found = await loadCommitted(components.store, key, manifestCodec);
    if (found?.value.nonce !== current.value.nonce)
      throw new Deposed(`${key} was changed by another process`);
    await components.store.delete(keyOfRetired(namespaceId, object));
  }
  await commitManifest(components, state, { retired: kept });
}

/** Which were replaced by `untilMs`, and what stays on the list. Pure. */
export function planRetirement(
  retired: Manifest['retired'],
  untilMs: number,
): { readonly due: Manifest['retired']; readonly kept: Manifest['retired'] } {
  const isDue = ({ atMs }: Manifest['retired'][number]) => atMs <= untilMs;
  return { due: retired.filter(isDue), kept: retired.filter((entry) => !isDue(entry)) };
}
