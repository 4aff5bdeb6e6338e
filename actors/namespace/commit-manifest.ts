import { randomHex } from '../../src/base/random.ts';
import { paths } from '../../src/object-store/paths.ts';
import type { ActorComponents } from '../actor/components.ts';
import { decodeManifest, encodeManifest, type Manifest, type ManifestSegment } from '../storage/manifest.ts';
import { cacheManifest } from '../storage/manifest-cache.ts';
import { checkManifest } from '../storage/manifest-invariants.ts';
import { commit } from '../storage/manifest-store.ts';
import type { Pin } from '../storage/object-ref.ts';
import type { OpenSegment } from '../storage/snapshot.ts';
import type { NamespaceState } from './namespace-state.ts';
import { retiredTombstones, storeTombstones } from './tombstone-objects.ts';

export const manifestCodec = { encode: encodeManifest, decode: decodeManifest };

/**
 * The one way in which a namespace's manifest changes: the current one with some parts replaced, the next version, this
 * process as its owner, checked, by compare-and-set. Sets of deleted rows that are too large for it are stored before. Callers see to it that no two run at once.
 */
export async function commitManifest(
  components: ActorComponents,
  state: NamespaceState,
  changes: Partial<
    Pick<
      Manifest,
      'applied' | 'counters' | 'segments' | 'tail' | 'retired' | 'temporalKeys' | 'pins' | 'parent'
    >
  > & {
    /** Makes the pin of somebody who begins with the segments of this manifest. */
    readonly pinOf?: (segments: readonly ManifestSegment[]) => Pin;
  },
): Promise<void> {
  const { log, random, clock, ownership } = components;
  const { pinOf, ...parts } = changes;
  const current = state.committed;
  const { namespaceId } = state.identity;
  const before = current?.value ?? firstManifest(state);
  const stored = await storeTombstones(
    components,
    namespaceId,
    changes.segments ?? before.segments,
    before.segments,
  );
  const segments = withDeletionTimes(stored, before.segments, clock.now());
  const retired = [
    ...(changes.retired ?? before.retired),
    ...retiredTombstones(before.segments, segments, clock.now()),
  ];
  const next: Manifest = {
    ...before,
    ...parts,
    ...(pinOf === undefined ? {} : { pins: [...(before.pins ?? []), pinOf(segments)] }),
    segments,
    retired,
    version: (current?.value.version ?? 0) + 1,
    nonce: randomHex(random, 16),
    owner: { logId: log.logId, view: ownership.placement },
  };
  checkManifest(next, current?.value ?? null);
  const key = paths.namespaceManifest(namespaceId);
  state.committed = await commit(components, manifestCodec, { key, next, current });
  if (changes.tail !== undefined) state.sharedTailBytes = 0;
  cacheManifest(components, state.committed);
}

/** Notes in each segment since when it has tombstones; what the manifest before says of that stays. Pure. */
function withDeletionTimes(
  segments: readonly ManifestSegment[],
  before: readonly ManifestSegment[],
  nowMs: number,
): ManifestSegment[] {
  const known = new Map(before.map(({ id, deletedAtMs }) => [id, deletedAtMs]));
  return segments.map((segment) => ({
    ...segment,
    deletedAtMs: segment.tombstones.count === 0 ? null : (known.get(segment.id) ?? nowMs),
  }));
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
    temporalKeys: [...state.temporalKeys],
  };
}

/** An open segment with the tombstones of this moment; `commitManifest` stores what needs an object of its own, and adds times. */
export function segmentInManifest(segment: OpenSegment): ManifestSegment {
  const { reader, ...rest } = segment;
  return { ...rest, toc: reader.toc, tombstonesObject: null, deletedAtMs: null };
}
