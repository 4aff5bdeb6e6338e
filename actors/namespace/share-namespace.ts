/**
 * A namespace begins as another one is: without copying a document, in a time that does not depend on how many there are.
 *
 * 1. What the parent has in memory is flushed until the rest fits a manifest's tail. That takes as long as a memtable takes.
 * 2. In one step the parent's segments with their tombstones, its memtable and its counters are taken down: one version. A manifest with
 *    them is committed that has the pin of the new namespace too.
 * 3. The new namespace's manifest is stored, of the same parts. Its name is its tenant's to make, afterwards.
 *
 * After a crash before 3 there is a pin for somebody who does not exist, which the sweep finds; before the name there is a manifest
 * that no name leads to, whose deletion takes the pin out (drop.ts).
 */
import { ApiError } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import type { SharedNamespace, ShareRequest } from '../../protocol/messages.ts';
import { must } from '../../src/base/assert.ts';
import { randomHex } from '../../src/base/random.ts';
import { paths } from '../../src/object-store/paths.ts';
import type { ActorComponents } from '../actor/components.ts';
import type { Manifest, NamespaceIdentity } from '../storage/manifest.ts';
import { type Committed, commit } from '../storage/manifest-store.ts';
import { needsParent, objectsOfSegment, segmentsOfChild, withoutPin } from '../storage/shared-objects.ts';
import { commitManifest, manifestCodec } from './commit-manifest.ts';
import { commitPresent, flushNamespace, tailFits } from './flush.ts';
import type { NamespaceState } from './namespace-state.ts';

/** Hears of the new namespace's manifest once it is stored, before anybody can know its name: that is made when it has resolved. */
export type OnStored = (child: Committed<Manifest>) => Promise<void>;

/** Each flush takes what came during the one before it, which is less. */
const smallerFlushesMax = 2;
const flushesMax = 8;
/** The sweep takes the pin of somebody who does not exist after a day for garbage: who comes so late begins again. */
const holderLateMs = 60 * 60 * 1_000;

/**
 * Answers what the new namespace begins with; null where `version` is another one than the present. Called in turn with every other
 * commit, by the owner of the manifest.
 */
export async function shareNamespace(
  components: ActorComponents,
  state: NamespaceState,
  { holder, version }: ShareRequest,
  onStored: OnStored,
): Promise<SharedNamespace | null> {
  refuseTooManyPins(state);
  const isPresent = () => version === null || version === state.counters.version;
  if (!isPresent()) return null;
  for (let flushes = 0; hasToFlush(components, state, flushes); flushes++) {
    if (flushes === flushesMax) throw tooBusy();
    await flushNamespace(components, state);
    if (!isPresent()) return null;
  }
  const { name, namespaceId } = holder;
  await commitPresent(components, state, (segments) => ({
    name,
    namespaceId,
    atMs: components.clock.now(),
    objects: segments.flatMap(objectsOfSegment),
  }));
  const parent = must(state.committed, 'a manifest with a pin').value;
  const { tenantId } = state.identity;
  const pinnedAt = components.clock.now();
  const child = await storeChild(components, { tenantId, ...holder }, parent);
  if (components.clock.now() - pinnedAt > holderLateMs) throw tooBusy();
  await onStored(child);
  const { version: at, docsWritten, bytesWritten } = parent.counters;
  return { version: at, docsWritten, bytesWritten, storedBytes: child.size };
}

/** Takes the pin of a holder out. What nobody holds any more goes with the next collection. */
export async function releasePin(
  components: ActorComponents,
  state: NamespaceState,
  holderId: string,
): Promise<void> {
  const pins = state.committed?.value.pins ?? [];
  const left = withoutPin(pins, holderId);
  if (left.length < pins.length) await commitManifest(components, state, { pins: left });
}

/**
 * Has the parent take this namespace's pin out, once its manifest names nothing that lies in the folder of another. Called in turn with
 * every other commit.
 */
export async function leaveParent(components: ActorComponents, state: NamespaceState): Promise<void> {
  const manifest = state.committed?.value;
  const parent = manifest?.parent ?? null;
  if (manifest === undefined || parent === null || needsParent(manifest)) return;
  const { tenantId, namespaceId } = state.identity;
  await components.directory.release(tenantId, parent.name, parent.namespaceId, namespaceId);
  await commitManifest(components, state, { parent: null });
}

/**
 * Whether memory must be flushed first: a tail has no frozen memtables, and one that is too large is taken only where flushes don't make
 * it smaller.
 */
function hasToFlush(
  { limits: flow }: ActorComponents,
  { frozen, memtable }: NamespaceState,
  flushes: number,
): boolean {
  if (frozen.length > 0) return true;
  return flushes < smallerFlushesMax && !tailFits(memtable, flow.manifestTailBytesMax);
}

function storeChild(
  components: ActorComponents,
  identity: NamespaceIdentity,
  parent: Manifest,
): Promise<Committed<Manifest>> {
  const next = childOf(parent, identity, randomHex(components.random, 16));
  const key = paths.namespaceManifest(identity.namespaceId);
  return commit(components, manifestCodec, { key, next, current: null });
}

/** The first manifest of a namespace that begins as its parent is. Pure. */
export function childOf(parent: Manifest, identity: NamespaceIdentity, nonce: string): Manifest {
  const { tail, counters, temporalKeys, owner } = parent;
  const segments = segmentsOfChild(parent);
  const child = {
    ...identity,
    version: 1,
    nonce,
    state: 'live' as const,
    owner,
    applied: new Map(),
    segments,
  };
  const { name, namespaceId } = parent;
  return { ...child, tail, retired: [], counters, temporalKeys, parent: { name, namespaceId } };
}

function refuseTooManyPins({ committed, identity }: NamespaceState): void {
  if ((committed?.value.pins ?? []).length < limits.pinsMax) return;
  throw new ApiError(
    'conflict',
    `"${identity.name}" has ${limits.pinsMax} branches and links that stay at a version, which is the most: delete some`,
  );
}

function tooBusy(): ApiError {
  const sentence = 'writes arrive faster than this namespace is stored; nothing was made';
  return new ApiError('unavailable', sentence, { retryAfter: 1 });
}
