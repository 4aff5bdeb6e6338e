import { randomHex } from '../../src/base/random.ts';
import { paths } from '../../src/object-store/paths.ts';
import type { ActorComponents } from '../components.ts';
import { decodeManifest, encodeManifest, type Manifest, type ManifestSegment } from '../storage/manifest.ts';
import { cacheManifest } from '../storage/manifest-cache.ts';
import { checkManifest } from '../storage/manifest-invariants.ts';
import { commit } from '../storage/manifest-store.ts';
import type { OpenSegment } from '../storage/snapshot.ts';
import type { NamespaceState } from './namespace-state.ts';

export const manifestCodec = { encode: encodeManifest, decode: decodeManifest };

/**
 * The one way in which a namespace's manifest changes: the current one with some parts replaced, the next version, this
 * process as its owner, checked, by compare-and-set. Callers see to it that no two run at once.
 */
export async function commitManifest(
  components: ActorComponents,
  state: NamespaceState,
  changes: Partial<Pick<Manifest, 'applied' | 'counters' | 'segments' | 'tail' | 'retired'>>,
): Promise<void> {
  const { log, random } = components;
  const current = state.committed;
  const next: Manifest = {
    ...(current?.value ?? firstManifest(state)),
    ...changes,
    version: (current?.value.version ?? 0) + 1,
    nonce: randomHex(random, 16),
    owner: { logId: log.logId, view: log.viewVersion },
  };
  checkManifest(next, current?.value ?? null);
  const key = paths.namespaceManifest(state.identity.namespaceId);
  state.committed = await commit(components, manifestCodec, { key, next, current });
  if (changes.tail !== undefined) state.sharedTailBytes = 0;
  cacheManifest(components.warmCache, state.committed);
}

function firstManifest(state: NamespaceState): Omit<Manifest, 'version' | 'nonce' | 'owner'> {
  return {
    ...state.identity,
    state: 'live',
    applied: new Map(),
    segments: [],
    tail: null,
    retired: [],
    counters: state.counters,
  };
}

/** An open segment as the manifest holds it, with the tombstones of this moment. */
export function segmentInManifest({ id, size, reader, tombstones }: OpenSegment): ManifestSegment {
  return { id, size, toc: reader.toc, tombstones };
}
