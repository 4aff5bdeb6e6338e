/**
 * Objects that namespaces share: whose folder they lie in, who holds them, and what may go. All pure.
 *
 * 1. A branch, or a link that stays at a version, begins with a manifest that names the objects of the namespace that it was made from, its
 *    *parent*. `home` says in whose folder an object lies.
 * 2. Before that manifest there is a *pin* in the parent's: it lists what the holder may read. What a pin lists stays, also when the parent
 *    has retired it, and when the parent is deleted: then its manifest is a remnant with nothing but pins.
 * 3. A holder that names no object of others any more, or is deleted, has its parent take the pin out.
 *
 * A parent holds for its branches what it got from its own parent. So each namespace has one pin at most at others, in its parent's
 * manifest, and whoever is deleted in between stays a remnant.
 */
import { paths } from '../../src/object-store/paths.ts';
import type { Manifest, ManifestSegment, RetiredObject } from './manifest.ts';
import { homeField, keyOfObject, type ObjectRef, type Pin } from './object-ref.ts';

/** Lists a segment's objects: the segment, its graphs, and its set of deleted rows where that is an object. */
export function objectsOfSegment(segment: ManifestSegment): ObjectRef[] {
  const { id, size, home, graphs, graphsHome, tombstonesObject: set } = segment;
  return [
    { kind: 'segment', id, size, ...homeField(home) },
    ...(graphs ?? []).map((graph) => ({
      kind: 'graph' as const,
      id: graph.id,
      size: graph.size,
      ...homeField(graphsHome),
    })),
    ...(set === null
      ? []
      : [{ kind: 'deletes' as const, id: set.id, size: set.size, ...homeField(set.home) }]),
  ];
}

type Named = Pick<Manifest, 'namespaceId' | 'segments' | 'retired'>;

/** Lists all objects that a manifest names, those too that wait to be deleted. */
export function objectsNamedBy({ segments, retired }: Named): ObjectRef[] {
  return [...segments.flatMap(objectsOfSegment), ...retired];
}

/** Answers the keys of the objects that others hold. */
export function pinnedKeys({
  namespaceId,
  pins = [],
}: Pick<Manifest, 'namespaceId' | 'pins'>): ReadonlySet<string> {
  return new Set(pins.flatMap(({ objects }) => objects.map((object) => keyOfObject(namespaceId, object))));
}

/** Whether each manifest that names them may be without its parent: it names nothing but its own. */
export function needsParent(manifest: Named): boolean {
  return objectsNamedBy(manifest).some(({ home }) => home !== undefined);
}

/** A manifest's segments as another namespace names them. */
export function segmentsOfChild({
  namespaceId,
  segments,
}: Pick<Manifest, 'namespaceId' | 'segments'>): ManifestSegment[] {
  return segments.map((segment) => {
    const { home = namespaceId, graphs, graphsHome = namespaceId, tombstonesObject: set } = segment;
    return {
      ...segment,
      home,
      ...(graphs === null ? {} : { graphsHome }),
      tombstonesObject: set === null ? null : { ...set, home: set.home ?? namespaceId },
    };
  });
}

/** What stays of a namespace whose name is gone: null where nobody holds anything of it. */
export function buried(
  manifest: Manifest,
  nowMs: number,
): Pick<Manifest, 'segments' | 'tail' | 'retired' | 'state'> | null {
  if ((manifest.pins ?? []).length === 0) return null;
  const pinned = pinnedKeys(manifest);
  const { namespaceId, segments, retired } = manifest;
  const held = new Map<string, RetiredObject>();
  for (const object of segments.flatMap(objectsOfSegment))
    held.set(keyOfObject(namespaceId, object), { ...object, atMs: nowMs });
  for (const object of retired) held.set(keyOfObject(namespaceId, object), object);
  const kept = [...held].filter(([key]) => pinned.has(key)).map(([, object]) => object);
  return { state: 'deleted', segments: [], tail: null, retired: kept };
}

export function withoutPin(pins: readonly Pin[], holderId: string): readonly Pin[] {
  return pins.filter(({ namespaceId }) => namespaceId !== holderId);
}

/** Bytes that lie in the namespace's own folder only because others hold them. */
export function heldBytes(manifest: Pick<Manifest, 'namespaceId' | 'pins' | 'retired'>): number {
  if ((manifest.pins ?? []).length === 0) return 0;
  const pinned = pinnedKeys(manifest);
  return manifest.retired
    .filter((object) => object.home === undefined && pinned.has(keyOfObject(manifest.namespaceId, object)))
    .reduce((sum, { size = 0 }) => sum + size, 0);
}

/** Keys of all objects in the namespace's folder that its manifest names, those that are only waiting to be deleted among them. */
export function objectsOfManifest(
  manifest: Pick<Manifest, 'namespaceId' | 'segments' | 'retired'>,
): string[] {
  const { namespaceId } = manifest;
  const own = objectsNamedBy(manifest).filter(({ home }) => home === undefined);
  return [paths.namespaceManifest(namespaceId), ...own.map((object) => keyOfObject(namespaceId, object))];
}
