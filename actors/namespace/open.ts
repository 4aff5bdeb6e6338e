import type { EmbedConfig, VectorConfig } from '../../protocol/namespace.ts';
import { assert, DataError } from '../../src/base/assert.ts';
import { toShared } from '../../src/base/garbage.ts';
import { paths } from '../../src/object-store/paths.ts';
import { isImport } from '../../src/stored/import-mark.ts';
import { type ActorComponents, isGoneLog, refuseNewerOwner } from '../actor/components.ts';
import { parentBlocks } from '../actor/parent-blocks.ts';
import type { ReplayedRecord } from '../log/replay.ts';
import type { ReadTally } from '../storage/block-fetch.ts';
import {
  isApplied,
  type Manifest,
  type ManifestSegment,
  type NamespaceIdentity,
} from '../storage/manifest.ts';
import { type CachedManifest, cachedManifest, cacheManifest } from '../storage/manifest-cache.ts';
import { ActorClosed, type Committed, loadCommitted } from '../storage/manifest-store.ts';
import { homeField } from '../storage/object-ref.ts';
import { SegmentReader } from '../storage/segment-reader.ts';
import type { OpenSegment } from '../storage/snapshot.ts';
import { decodeImport, replayImport } from './commit-import.ts';
import { manifestCodec } from './commit-manifest.ts';
import { loadBatch } from './loaded-batch.ts';
import { adoptManifest, NamespaceState } from './namespace-state.ts';
import { SegmentLookUp } from './segment-look-up.ts';
import { loadTombstones } from './tombstone-objects.ts';
import { applyDurable, stampFromWire } from './write-pipeline.ts';

/**
 * A namespace from its durable state: the manifest, then the records of the log that it does not contain, in order.
 * A name that was just made has neither.
 */
export async function openNamespace(
  components: ActorComponents,
  identity: NamespaceIdentity,
  options: {
    readonly isNew: boolean;
    /** Whether the namespace began with a manifest, as branches do: without one it is damaged then. */
    readonly hasManifest: boolean;
    readonly vector: VectorConfig | null;
    readonly embed: EmbedConfig | null;
    readonly replayed: readonly ReplayedRecord[];
    /** What the tenant's ledger says was written to it; may lag behind. */
    readonly documentsKnown: number;
    /** Whether the manifest must come from the store, whatever the local disk says. */
    readonly again: boolean;
    /** The manifest's version when this thread put the namespace away. */
    readonly putAwayVersion: number | null;
    readonly tally: ReadTally;
  },
): Promise<NamespaceState> {
  const state = new NamespaceState(identity, options.vector, options.embed);
  const committed = options.isNew ? null : await loadManifest(components, identity.namespaceId, options);
  if (committed !== null) {
    refuseNewerOwner(components, committed.value.owner);
    // Whoever looked the name up before it was deleted looks it up again.
    if (committed.value.state !== 'live') throw new ActorClosed(`"${identity.name}" was deleted meanwhile`);
    const value = await loadTombstones(components, committed.value, options.tally);
    adoptManifest(
      state,
      { ...committed, value },
      (segment) => openSegment(components, value, segment),
      toShared,
      (logId) => isGoneLog(components, value.owner, logId),
    );
  }
  const mayLack = !options.hasManifest && beginsWith(options.replayed, options.documentsKnown);
  if (committed === null && !mayLack) {
    throw new DataError(paths.namespaceManifest(identity.namespaceId), 0, 'the manifest is missing');
  }
  for (const record of options.replayed) await replay(components, state, record);
  return state;
}

/** Whether a namespace without a manifest is one that never had any: the log still holds all that was written to it. */
function beginsWith(replayed: readonly ReplayedRecord[], documentsKnown: number): boolean {
  const [first] = replayed;
  return first === undefined ? documentsKnown === 0 : first.head.version === 1;
}

/** Reads the manifest from the local disk where the copy there is surely current, else from the store. */
async function loadManifest(
  components: ActorComponents,
  namespaceId: string,
  options: {
    readonly again: boolean;
    readonly putAwayVersion: number | null;
    readonly tally: ReadTally;
  },
): Promise<Committed<Manifest> | null> {
  const { tally } = options;
  const local = options.again ? null : cachedManifest(components.warmCache, namespaceId);
  if (local !== null && isCurrent(components, local, options.putAwayVersion)) return local;
  const key = paths.namespaceManifest(namespaceId);
  tally.storeGets++;
  const committed = await loadCommitted(components.store, key, manifestCodec);
  if (committed === null) return null;
  tally.storeBytes += committed.size;
  cacheManifest(components, committed);
  return committed;
}

/**
 * Only the owner changes a manifest: the last one that this thread committed is current, and so is the last one of a
 * thread that ended in order, in a process whose log this one sealed. The version is compared because a disk may bring
 * back an older copy: of a thread that died before its cache was written, or of a folder that somebody put there.
 */
function isCurrent(
  { log, orderlyEnd }: ActorComponents,
  { value, threadLife }: CachedManifest,
  putAwayVersion: number | null,
): boolean {
  const { logId } = value.owner;
  if (logId === log.logId) return value.version === putAwayVersion;
  return orderlyEnd?.logId === logId && orderlyEnd.threadLife === threadLife;
}

function openSegment(
  components: ActorComponents,
  { tenantId, namespaceId, parent }: Pick<Manifest, 'tenantId' | 'namespaceId' | 'parent'>,
  segment: ManifestSegment,
): OpenSegment {
  const { id, size, tombstones, graphs, home, graphsHome } = segment;
  const key = paths.namespaceSegment(home ?? namespaceId, id);
  const { owner } = components.shares.of(tenantId);
  const parentName = home === undefined ? undefined : parent?.name;
  const near = parentName === undefined ? null : parentBlocks(components, { tenantId, parentName });
  const reader = new SegmentReader(key, segment.toc, components.fetcher, owner, near);
  return {
    id,
    size,
    reader,
    tombstones,
    graphs,
    ...homeField(home),
    ...(graphsHome === undefined ? {} : { graphsHome }),
  };
}

async function replay(
  components: ActorComponents,
  state: NamespaceState,
  record: ReplayedRecord,
): Promise<void> {
  const { head, position, payload, damage } = record;
  if (state.committed !== null && isApplied(state.committed.value, position)) return;
  if (damage !== undefined) throw damage;
  const { namespaceId } = state.identity;
  assert(
    head.version === state.counters.version + 1,
    () => `namespace ${namespaceId}: version ${head.version} follows ${state.counters.version} in the log`,
  );
  const stamp = stampFromWire(head.version, head.detail);
  if (isImport(head.detail)) {
    const segment = decodeImport(payload);
    return replayImport(components, state, { segment, stamp, position, payloadBytes: payload.byteLength });
  }
  const batch = loadBatch(payload);
  await applyDurable(components, state, {
    batch,
    stamp,
    position,
    lookUp: new SegmentLookUp(batch, components.clock),
  });
}
