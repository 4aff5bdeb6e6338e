/**
 * Tombstone sets that are too large for the manifest: each is an immutable object, stored before a manifest names it and
 * retired when the next one names another.
 */
import { DataError } from '../../src/base/assert.ts';
import { randomHex } from '../../src/base/random.ts';
import { paths } from '../../src/object-store/paths.ts';
import { putOnce } from '../../src/object-store/put-once.ts';
import type { ActorComponents } from '../actor/components.ts';
import { MissingObjectError, type ReadTally } from '../storage/block-fetch.ts';
import type { Manifest, ManifestSegment, RetiredObject } from '../storage/manifest.ts';
import { keyOfObject } from '../storage/object-ref.ts';
import {
  decodeTombstonesObject,
  encodeTombstones,
  encodeTombstonesObject,
  type Tombstones,
  tombstonesInlineBytesMax,
} from '../storage/tombstones.ts';

/** The segments as the next manifest holds them: their large sets are stored. `current`: those of the one before. */
export function storeTombstones(
  components: ActorComponents,
  namespaceId: string,
  segments: readonly ManifestSegment[],
  current: readonly ManifestSegment[],
): Promise<ManifestSegment[]> {
  const stored = new Map(current.map((segment) => [segment.id, segment]));
  return Promise.all(
    segments.map(async (segment) => {
      const before = stored.get(segment.id);
      // Rows only ever join a segment's set: one of the same size is the same.
      if (before?.tombstones.count === segment.tombstones.count)
        return { ...segment, tombstonesObject: before.tombstonesObject };
      return { ...segment, tombstonesObject: await storeSet(components, namespaceId, segment.tombstones) };
    }),
  );
}

async function storeSet(
  { store, clock, random }: ActorComponents,
  namespaceId: string,
  tombstones: Tombstones,
): Promise<ManifestSegment['tombstonesObject']> {
  const bytes = encodeTombstones(tombstones);
  if (bytes.length <= tombstonesInlineBytesMax) return null;
  const id = randomHex(random, 16);
  const key = paths.namespaceTombstones(namespaceId, id);
  const object = encodeTombstonesObject(bytes, key);
  await putOnce(store, clock, key, [object]);
  return { id, size: object.length };
}

/** Sets that `before` named and `after` does not. */
export function retiredTombstones(
  before: readonly ManifestSegment[],
  after: readonly ManifestSegment[],
  atMs: number,
): RetiredObject[] {
  const kept = new Set(after.map(({ tombstonesObject }) => tombstonesObject?.id));
  return before.flatMap(({ tombstonesObject }) =>
    tombstonesObject === null || kept.has(tombstonesObject.id)
      ? []
      : [{ kind: 'deletes' as const, ...tombstonesObject, atMs }],
  );
}

/** The manifest with the sets that it only names, all read at once: from the local disk where they are there. */
export async function loadTombstones(
  components: ActorComponents,
  manifest: Manifest,
  tally: ReadTally,
): Promise<Manifest> {
  if (manifest.segments.every(({ tombstonesObject }) => tombstonesObject === null)) return manifest;
  const segments = await Promise.all(
    manifest.segments.map(async (segment) => {
      if (segment.tombstonesObject === null) return segment;
      const key = keyOfObject(manifest.namespaceId, { kind: 'deletes', ...segment.tombstonesObject });
      const tombstones = readLocal(components, key) ?? (await readStored(components, key, tally));
      if (tombstones.count !== segment.tombstones.count)
        throw new DataError(key, 0, `${tombstones.count} rows where the manifest counts others`);
      return { ...segment, tombstones };
    }),
  );
  return { ...manifest, segments };
}

function readLocal({ warmCache }: ActorComponents, key: string): Tombstones | null {
  const found = warmCache?.get(key);
  if (!found) return null;
  try {
    return decodeTombstonesObject(found, key);
  } catch (error) {
    if (!(error instanceof DataError)) throw error;
    warmCache?.remove(key);
    return null;
  }
}

async function readStored(
  { store, warmCache }: ActorComponents,
  key: string,
  tally: ReadTally,
): Promise<Tombstones> {
  tally.storeGets++;
  const object = await store.get(key);
  if (object === null) throw new MissingObjectError(key);
  tally.storeBytes += object.size;
  const tombstones = decodeTombstonesObject(object.bytes, key);
  warmCache?.put(key, object.bytes);
  return tombstones;
}
