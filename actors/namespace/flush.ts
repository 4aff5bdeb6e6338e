/**
 * From memory into the manifest.
 *
 * Small: what the memtable holds becomes the manifest's tail, by one compare-and-set; the memtable stays as it is.
 * Large: 1. the memtable is frozen and a new one takes writes; 2. a compute thread makes a segment of its live rows and
 * stores it; 3. a manifest that names the segment is committed; 4. the segment takes the frozen memtable's place in one
 * step, rows that were replaced meanwhile being tombstones in it; 5. the log hears how far the manifest reaches.
 *
 * Tombstones of writes that are not in the manifest yet may be in it already: those writes are durable and are replayed
 * before anything is read. The log hears last: a crash before costs a replay of what the segment has, the other order
 * would lose it.
 */
import { assert } from '../../src/base/assert.ts';
import { randomHex } from '../../src/base/random.ts';
import { paths } from '../../src/object-store/paths.ts';
import type { ActorComponents } from '../actor/components.ts';
import type { BuildSegmentTask } from '../compute/lanes.ts';
import { documentEntryLength } from '../storage/document-batch.ts';
import type { ManifestSegment, ManifestTail } from '../storage/manifest.ts';
import type { Memtable } from '../storage/memtable.ts';
import type { Pin } from '../storage/object-ref.ts';
import type { OpenSegment } from '../storage/snapshot.ts';
import { noTombstones, withDeleted } from '../storage/tombstones.ts';
import { searchableMemtable } from '../text/searchable-memtable.ts';
import { commitManifest, segmentInManifest } from './commit-manifest.ts';
import type { FrozenMemtable, NamespaceState, Reach } from './namespace-state.ts';
import { keepFresh, openBuilt } from './open-built.ts';

export function reachOf(state: NamespaceState): Reach {
  return { applied: new Map(state.applied), counters: state.counters, appliedBytes: state.appliedBytes };
}

/** Flushes once. The caller sees to it that no two run at once. */
export async function flushNamespace(components: ActorComponents, state: NamespaceState): Promise<void> {
  if (state.frozen.length === 0 && tailFits(state.memtable, components.limits.manifestTailBytesMax)) {
    await commitReach(components, state, reachOf(state), { segment: null, tail: tailOf(state.memtable) });
    return;
  }
  if (state.frozen.length === 0) freeze(state);
  const frozen = state.frozen[0];
  if (frozen === undefined) return;
  await flushFrozen(components, state, frozen);
}

/** Makes segments of all that is in memory, however little it is. Called in turn with every other commit, and with no write under way. */
export async function flushEverything(components: ActorComponents, state: NamespaceState): Promise<void> {
  if (state.memtable.rowCount > 0 || state.unflushedBytes > 0) freeze(state);
  for (let oldest = state.frozen[0]; oldest !== undefined; oldest = state.frozen[0])
    await flushFrozen(components, state, oldest);
}

/** What was applied without going through a memtable is in the manifest: nothing is in memory. */
export function commitReached(components: ActorComponents, state: NamespaceState): Promise<void> {
  return commitReach(components, state, reachOf(state), { segment: null, tail: null });
}

/**
 * Commits all that was applied by now, of one moment: segments with their tombstones, the memtable as the tail, counters; and the pin of
 * somebody who begins with them. No memtable may be frozen.
 */
export function commitPresent(
  components: ActorComponents,
  state: NamespaceState,
  pinOf: (segments: readonly ManifestSegment[]) => Pin,
): Promise<void> {
  assert(state.frozen.length === 0, () => 'a frozen memtable is in no tail');
  return commitReach(components, state, reachOf(state), {
    segment: null,
    tail: tailOf(state.memtable),
    pinOf,
  });
}

/** Freezes the memtable: a new one takes writes from here on. */
export function freeze(state: NamespaceState): void {
  state.memtable.freeze();
  state.frozen = [...state.frozen, { memtable: state.memtable, reach: reachOf(state) }];
  state.memtable = searchableMemtable();
  state.generation++;
}

async function flushFrozen(
  components: ActorComponents,
  state: NamespaceState,
  frozen: FrozenMemtable,
): Promise<void> {
  const { memtable, reach } = frozen;
  const { namespaceId } = state.identity;
  const rows = liveRows(memtable);
  if (rows.length === 0) {
    await commitReach(components, state, reach, { segment: null, tail: null });
    thaw(state, frozen);
    return;
  }
  const segmentId = randomHex(components.random, 16);
  const key = paths.namespaceSegment(namespaceId, segmentId);
  const built = await components.lanes.buildSegment(
    buildTask(key, memtable, { rows, temporalKeys: [...state.temporalKeys] }),
    components.shares.claim(state.identity.tenantId),
  );
  assert(
    built.toc.rowCount === rows.length,
    () => `a segment of ${built.toc.rowCount} rows was built of ${rows.length}`,
  );
  const reader = openBuilt(components, state, key, built);
  const segmentNow = (): OpenSegment => ({
    id: segmentId,
    size: built.size,
    reader,
    tombstones: withDeleted(noTombstones, supersededSince(memtable, rows)),
    graphs: null,
  });
  await commitReach(components, state, reach, { segment: segmentInManifest(segmentNow()), tail: null });
  state.segments = [...state.segments, segmentNow()];
  keepFresh(reader, built);
  thaw(state, frozen);
}

/** Forgets a frozen memtable, whose rows a manifest has. Asserts that it was the oldest: a manifest has all rows before its own. */
function thaw(state: NamespaceState, frozen: FrozenMemtable): void {
  assert(state.frozen[0] === frozen, () => 'a memtable was flushed before an older one');
  state.frozen = state.frozen.slice(1);
  state.generation++;
}

function liveRows(memtable: Memtable): number[] {
  const rows: number[] = [];
  for (let row = 0; row < memtable.rowCount; row++) if (memtable.isLive(row)) rows.push(row);
  return rows;
}

/** Rows of the built segment whose documents were replaced or deleted after the build began. */
function* supersededSince(memtable: Memtable, rows: readonly number[]): Generator<number> {
  for (let i = 0; i < rows.length; i++) if (!memtable.isLive(rows[i] ?? 0)) yield i;
}

function buildTask(
  key: string,
  memtable: Memtable,
  { rows, temporalKeys }: { readonly rows: readonly number[]; readonly temporalKeys: readonly string[] },
): BuildSegmentTask {
  const numbers = new Map<Buffer, number>();
  const buffers: Uint8Array[] = [];
  const bufferOf = new Uint32Array(rows.length);
  const offsets = new Uint32Array(rows.length);
  const sequences = new Float64Array(rows.length);
  const writtenAt = new Float64Array(rows.length);
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i] ?? 0;
    const buffer = memtable.bufferOf(row);
    let number = numbers.get(buffer);
    if (number === undefined) {
      number = buffers.push(buffer) - 1;
      numbers.set(buffer, number);
    }
    bufferOf[i] = number;
    offsets[i] = memtable.offsetOf(row);
    sequences[i] = memtable.sequenceOf(row);
    writtenAt[i] = memtable.writtenAtOf(row);
  }
  return { task: 'build-segment', key, buffers, bufferOf, offsets, sequences, writtenAt, temporalKeys };
}

/** Whether the living rows of the memtable are few enough bytes for a manifest. */
export function tailFits(memtable: Memtable, bytesMax: number): boolean {
  // Cheap answers first: most memtables are either small or far too large.
  if (memtable.documentBytes <= bytesMax) return true;
  let bytes = 0;
  for (let row = 0; row < memtable.rowCount && bytes <= bytesMax; row++) {
    if (memtable.isLive(row)) bytes += documentEntryLength(memtable.bufferOf(row), memtable.offsetOf(row));
  }
  return bytes <= bytesMax;
}

function tailOf(memtable: Memtable): ManifestTail | null {
  const rows = liveRows(memtable);
  if (rows.length === 0) return null;
  const entries = rows.map((row) => {
    const buffer = memtable.bufferOf(row);
    const offset = memtable.offsetOf(row);
    return buffer.subarray(offset, offset + documentEntryLength(buffer, offset));
  });
  return {
    sequences: rows.map((row) => memtable.sequenceOf(row)),
    writtenAt: rows.map((row) => memtable.writtenAtOf(row)),
    entries: Buffer.concat(entries),
  };
}

interface Addition {
  readonly segment: ManifestSegment | null;
  readonly tail: ManifestTail | null;
  readonly pinOf?: (segments: readonly ManifestSegment[]) => Pin;
}

async function commitReach(
  components: ActorComponents,
  state: NamespaceState,
  reach: Reach,
  addition: Addition,
): Promise<void> {
  assert(
    reach.appliedBytes >= state.flushedBytes && reach.counters.version <= state.counters.version,
    () => `a manifest reaches to version ${reach.counters.version}, of ${state.counters.version}`,
  );
  const { log } = components;
  await commitManifest(components, state, {
    applied: reach.applied,
    counters: reach.counters,
    temporalKeys: [...state.temporalKeys],
    segments: [
      ...state.segments.map(segmentInManifest),
      ...(addition.segment === null ? [] : [addition.segment]),
    ],
    tail: addition.tail,
    ...(addition.pinOf === undefined ? {} : { pinOf: addition.pinOf }),
  });
  state.flushedBytes = reach.appliedBytes;
  for (const [logId, { slot, index }] of reach.applied) log.flushed(state.identity, { logId, slot, index });
}

/** Makes this process the owner: the next commit of an earlier owner then fails. Nothing else changes. */
export async function takeOwnership(components: ActorComponents, state: NamespaceState): Promise<void> {
  if (state.importReach !== null) {
    // Before anything else is committed: whoever replays the log must not meet the import twice.
    await commitReach(components, state, state.importReach, { segment: null, tail: null });
    state.importReach = null;
    return;
  }
  const current = state.committed;
  if (current === null || current.value.owner.logId === components.log.logId) return;
  await commitManifest(components, state, {});
}
