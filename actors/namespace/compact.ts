import { assert, must } from '../../src/base/assert.ts';
import { describeError } from '../../src/base/log.ts';
import { randomHex } from '../../src/base/random.ts';
import { paths } from '../../src/object-store/paths.ts';
import type { ActorComponents } from '../actor/components.ts';
import type { BuiltGraph, BuiltSegment } from '../compute/lanes.ts';
import type { CompactionChoice } from '../storage/compaction-policy.ts';
import { keyOfObject } from '../storage/object-ref.ts';
import type { SegmentReader } from '../storage/segment-reader.ts';
import { objectsOfSegment, pinnedKeys } from '../storage/shared-objects.ts';
import type { OpenSegment } from '../storage/snapshot.ts';
import {
  isDeleted,
  noTombstones,
  type Tombstones,
  tombstonesToWire,
  withDeleted,
} from '../storage/tombstones.ts';
import { paysForGraphs } from '../vector/plan-graphs.ts';
import { vectorsOf } from '../vector/vector-index-reader.ts';
import { chooseMerge } from './choose-merge.ts';
import { commitManifest, segmentInManifest } from './commit-manifest.ts';
import { buildGraphsOf, graphsOf, keepGraphs, removeFiles, type UpkeepStep } from './index-vectors.ts';
import type { NamespaceState } from './namespace-state.ts';
import { keepFresh, openBuilt } from './open-built.ts';
import { overdueSegments } from './overdue-segments.ts';

/**
 * One compaction: neighbouring segments become one.
 *
 * 1. The policy chooses; a compute thread merges, leaving out the rows that are tombstones now. Writes and flushes go on.
 * 2. In turn with other commits, a manifest that names the merged segment instead of its inputs is committed; the
 *    inputs are retired, not deleted: running reads and other servers may still need them.
 * 3. In one step the merged segment takes their place in memory. Rows that were replaced since step 1 are found again:
 *    a living row's place in the merged segment is the number of rows that lived before it.
 */
export async function compactOnce(
  components: ActorComponents,
  state: NamespaceState,
  { inTurn, isQuiet }: UpkeepStep,
): Promise<boolean> {
  const overdue = overdueSegments(components, state);
  const choice = chooseMerge(state.segments, { isQuiet, overdue });
  if (choice === null) return false;
  const inputs = state.segments.slice(choice.first, choice.last + 1);
  const { namespaceId } = state.identity;
  const id = randomHex(components.random, 16);
  const key = paths.namespaceSegment(namespaceId, id);
  const built = await components.lanes.mergeSegments(
    {
      task: 'merge-segments',
      key,
      inputs: inputs.map(({ reader, tombstones }) => ({
        key: reader.objectKey,
        toc: reader.toc,
        tombstones: tombstonesToWire(tombstones),
      })),
      temporalKeys: [...state.temporalKeys],
    },
    components.shares.claim(state.identity.tenantId),
  );
  assertMerged(inputs, built);
  const merged = built === null ? null : await withGraphs(components, state, { id, key, built, inputs });
  await inTurn(() => replaceSegments(components, state, { choice, inputs, merged })).finally(() =>
    removeFiles(merged?.graphs ?? []),
  );
  return true;
}

/** Asserts that a merge left out the rows that were tombstones when it began, and no others. */
function assertMerged(inputs: readonly OpenSegment[], built: BuiltSegment | null): void {
  const live = inputs.reduce((sum, { reader, tombstones }) => sum + reader.rowCount - tombstones.count, 0);
  const rows = built?.toc.rowCount ?? 0;
  assert(rows === live, () => `a segment of ${rows} rows was merged of ${live}`);
}

/**
 * What took the place of segments with graphs has its own, or searches would look at all of its vectors for a while. Where they
 * can't be built the segments are merged nevertheless: it gets them later.
 */
async function withGraphs(
  components: ActorComponents,
  state: NamespaceState,
  merge: {
    readonly id: string;
    readonly key: string;
    readonly built: BuiltSegment;
    readonly inputs: readonly OpenSegment[];
  },
): Promise<Merge['merged']> {
  const { id, key, built, inputs } = merge;
  const reader = openBuilt(components, state, key, built);
  const isIndexed = inputs.some(({ graphs }) => (graphs?.length ?? 0) > 0);
  const pays = isIndexed && paysForGraphs(vectorsOf(built.toc));
  const segment = { reader, tombstones: noTombstones };
  const graphs = pays
    ? await buildGraphsOf(components, state, segment).catch((error: unknown) => {
        const fields = { namespaceId: state.identity.namespaceId, error: describeError(error) };
        components.logger.error('segments are merged without graphs', fields);
        return null;
      })
    : null;
  return { id, built, reader, graphs };
}

interface Merge {
  readonly choice: CompactionChoice;
  /** The segments that are merged, as they were when the merge began. */
  readonly inputs: readonly OpenSegment[];
  readonly merged: {
    readonly id: string;
    readonly built: BuiltSegment;
    readonly reader: SegmentReader;
    /** The graphs of the merged segment; null where it gets them later, if any. */
    readonly graphs: readonly BuiltGraph[] | null;
  } | null;
}

async function replaceSegments(
  components: ActorComponents,
  state: NamespaceState,
  merge: Merge,
): Promise<void> {
  const { inputs, merged } = merge;
  const first = state.segments.findIndex((segment) => segment.id === inputs[0]?.id);
  const stillThere = inputs.every((input, i) => state.segments[first + i]?.id === input.id);
  assert(first >= 0 && stillThere, () => 'only compaction removes segments, and one runs at a time');
  const segmentNow = (): OpenSegment[] => {
    if (merged === null) return [];
    const tombstones = tombstonesSince(inputs, state.segments.slice(first, first + inputs.length));
    const { id, built, reader, graphs } = merged;
    return [{ id, size: built.size, reader, tombstones, graphs: graphs === null ? null : graphsOf(graphs) }];
  };
  const replaced = () => [
    ...state.segments.slice(0, first),
    ...segmentNow(),
    ...state.segments.slice(first + inputs.length),
  ];
  const atMs = components.clock.now();
  const current = must(state.committed, 'a committed manifest').value;
  const { namespaceId } = state.identity;
  const replacedObjects = inputs.map(segmentInManifest).flatMap(objectsOfSegment);
  await commitManifest(components, state, {
    segments: replaced().map(segmentInManifest),
    retired: [...current.retired, ...replacedObjects.map((object) => ({ ...object, atMs }))],
  });
  // Only now: a snapshot taken during the commit still reads the inputs, which are not deleted before long.
  state.segments = replaced();
  if (merged !== null) keepFresh(merged.reader, merged.built);
  state.generation++;
  // Reads that began before go on without the cache, which has better uses.
  for (const { reader } of inputs) reader.close();
  // The local disk must not keep what was deleted from them.
  const { warmCache } = components;
  const pinned = pinnedKeys(current);
  for (const object of replacedObjects) {
    const key = keyOfObject(namespaceId, object);
    // A branch or link that is read here too still needs what it holds; collectRetired forgets it when nobody holds it any more.
    if (pinned.has(key)) continue;
    // What another namespace reads too may come back for it.
    if (object.home !== undefined) await warmCache?.removeObject(key);
    else await warmCache?.forgetObject(key);
  }
  if (merged?.graphs) await keepGraphs(components, state, merged.graphs);
}

/** Tombstones of the merged segment: rows of the inputs that were alive when the merge began and are not any more. */
function tombstonesSince(before: readonly OpenSegment[], now: readonly OpenSegment[]): Tombstones {
  const rows: number[] = [];
  let base = 0;
  for (const [i, { reader, tombstones }] of before.entries()) {
    const current = must(now[i], 'an input').tombstones;
    if (current !== tombstones)
      addNewlyDeleted(rows, base, { rowCount: reader.rowCount, before: tombstones, current });
    base += reader.rowCount - tombstones.count;
  }
  return withDeleted(noTombstones, rows);
}

function addNewlyDeleted(
  rows: number[],
  base: number,
  segment: { readonly rowCount: number; readonly before: Tombstones; readonly current: Tombstones },
): void {
  let merged = base;
  for (let row = 0; row < segment.rowCount; row++) {
    if (isDeleted(segment.before, row)) continue;
    if (isDeleted(segment.current, row)) rows.push(merged);
    merged++;
  }
}
