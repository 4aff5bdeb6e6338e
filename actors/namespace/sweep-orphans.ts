/**
 * Finds objects of namespaces that no manifest names, and manifests that no name leads to: what uploads leave behind
 * that were never committed, and duplicates of requests that arrive after their object was deleted.
 *
 * 1. Everything under `ns/` is listed. What is younger than a day may belong to work that is still under way.
 * 2. A namespace is looked at if something in it became a day old since the round before, so that an idle namespace
 *    costs its share of a listing and nothing else.
 * 3. Looking at it: its manifest is read, and its tenant asked whether the name still leads to it. If not, everything
 *    goes; the answer counts only if this process's log was not sealed when it was given, because what an overtaken
 *    process knows may be old.
 * 4. Otherwise objects that the manifest does not name go, the manifest being read again right before each, and the
 *    owner is asked to collect what it retired, if that is due.
 * 5. Where a manifest says that a segment has held deleted documents for too long, the owner is asked to rewrite it. Only what
 *    was changed since shortly before the last sweep is looked at for that: of everything else that sweep knew.
 * 6. Uploads that began a day ago are aborted.
 */
import { listAll, listAllUploads } from '../../src/object-store/list-all.ts';
import type { ListedObject } from '../../src/object-store/object-store.ts';
import { namespaceOfKey, paths } from '../../src/object-store/paths.ts';
import type { ActorComponents } from '../actor/components.ts';
import type { Manifest } from '../storage/manifest.ts';
import { loadCommitted } from '../storage/manifest-store.ts';
import { needsParent, objectsOfManifest } from '../storage/shared-objects.ts';
import { planRetirement } from './collect-garbage.ts';
import { manifestCodec } from './commit-manifest.ts';
import { eraseNamespace } from './drop.ts';
import { overdueIn } from './overdue-segments.ts';

export interface Sweep {
  /** What was last modified after this and at or before `untilMs` is looked at; milliseconds since 1970. */
  readonly afterMs: number;
  readonly untilMs: number;
  /** And namespaces whose manifest was changed after this, and may have become overdue since the sweep before. */
  readonly changedAfterMs: number;
}

export interface ListedNamespace {
  readonly namespaceId: string;
  readonly objects: readonly ListedObject[];
}

/**
 * Resolves when all was looked at, with how many namespaces there are; rejects at the first failure, what is left being
 * found by the next try.
 */
export async function sweepOrphans(components: ActorComponents, sweep: Sweep): Promise<number> {
  let namespaces = 0;
  const failures: unknown[] = [];
  for await (const listed of listNamespaces(components)) {
    namespaces++;
    if (needsLook(listed, sweep)) await sweepNamespace(components, listed, sweep);
    // One that can't be rewritten must not keep the others.
    else if (wasChanged(listed, sweep))
      await tidyNamespace(components, listed.namespaceId).catch((error: unknown) => failures.push(error));
    await components.clock.yieldTurn();
  }
  await abortOldUploads(components, sweep);
  if (failures.length > 0) throw failures[0];
  return namespaces;
}

/** Pure. */
function wasChanged({ namespaceId, objects }: ListedNamespace, { changedAfterMs }: Sweep): boolean {
  const key = paths.namespaceManifest(namespaceId);
  return objects.some((object) => object.key === key && object.modifiedAtMs > changedAfterMs);
}

async function tidyNamespace(components: ActorComponents, namespaceId: string): Promise<void> {
  const manifest = await readManifest(components, namespaceId);
  if (manifest !== null) await askOwner(components, manifest);
}

/** The owner collects what it retired, where that is due, and rewrites what is overdue. */
async function askOwner({ clock, limits, directory }: ActorComponents, manifest: Manifest): Promise<void> {
  const { tenantId, name, namespaceId, parent = null } = manifest;
  const now = clock.now();
  const isDue = planRetirement(manifest, now - limits.retiredGraceMs).due.length > 0;
  const mayLeave = parent !== null && !needsParent(manifest);
  if (isDue || mayLeave || overdueIn(manifest, now - limits.deletedRowsKeptMs).size > 0)
    await directory.collect(tenantId, name, namespaceId);
}

/** Uploads of a process that was killed, and of one that has hung for a day. */
async function abortOldUploads({ store, logger }: ActorComponents, { untilMs }: Sweep): Promise<void> {
  for await (const upload of listAllUploads(store, paths.namespaces)) {
    if (upload.startedAtMs > untilMs) continue;
    logger.info('an upload that never ended is aborted', { object: upload.key });
    await store.abortUpload(upload);
  }
}

/** Whether something in it came to the age of orphans in this sweep. Pure. */
export function needsLook({ objects }: ListedNamespace, { afterMs, untilMs }: Sweep): boolean {
  return objects.some(({ modifiedAtMs }) => modifiedAtMs > afterMs && modifiedAtMs <= untilMs);
}

/** Old enough objects that the manifest does not name. Pure. */
export function planOrphans(
  { namespaceId, objects }: ListedNamespace,
  manifest: Pick<Manifest, 'namespaceId' | 'segments' | 'retired'> | null,
  { untilMs }: Sweep,
): string[] {
  const named = new Set(objectsOfManifest(manifest ?? { namespaceId, segments: [], retired: [] }));
  return objects
    .filter(({ key, modifiedAtMs }) => modifiedAtMs <= untilMs && !named.has(key))
    .map(({ key }) => key);
}

/** A folder's keys follow each other in a listing. */
async function* listNamespaces({ store }: ActorComponents): AsyncGenerator<ListedNamespace> {
  let namespaceId: string | null = null;
  let objects: ListedObject[] = [];
  for await (const object of listAll(store, paths.namespaces)) {
    const id = namespaceOfKey(object.key);
    if (id !== namespaceId) {
      if (namespaceId !== null) yield { namespaceId, objects };
      namespaceId = id;
      objects = [];
    }
    objects.push(object);
  }
  if (namespaceId !== null) yield { namespaceId, objects };
}

async function sweepNamespace(
  components: ActorComponents,
  listed: ListedNamespace,
  sweep: Sweep,
): Promise<void> {
  const { store, logger } = components;
  const { namespaceId } = listed;
  const manifest = await readManifest(components, namespaceId);
  if (manifest !== null && (await isNameless(components, manifest))) {
    logger.info('a namespace that no name leads to is deleted', { namespaceId });
    await eraseNamespace(components, namespaceId);
    await releaseForgotten(components, manifest, sweep);
    return;
  }
  for (const key of planOrphans(listed, manifest, sweep)) {
    const now = await readManifest(components, namespaceId);
    if (!planOrphans(listed, now, sweep).includes(key)) continue;
    logger.info('an object that no manifest names is deleted', { object: key });
    await store.delete(key);
  }
  if (manifest === null) return;
  await releaseForgotten(components, manifest, sweep);
  await askOwner(components, manifest);
}

/**
 * Takes old pins out that nobody has: whose maker was killed before the holder's manifest was stored, and those of a manifest that a late
 * duplicate of a request brought back, whose holders have let go since.
 */
async function releaseForgotten(
  components: ActorComponents,
  { tenantId, name, namespaceId, pins = [] }: Manifest,
  { untilMs }: Sweep,
): Promise<void> {
  const { directory, logger } = components;
  const isYoung = ({ atMs }: { readonly atMs: number }) => atMs > untilMs;
  const areAllOld = pins.some(isYoung) && (await wasUnchanged(components, namespaceId, untilMs));
  for (const pin of pins) {
    if (isYoung(pin) && !areAllOld) continue;
    const holder = await readManifest(components, pin.namespaceId);
    if (holder?.parent?.namespaceId === namespaceId) continue;
    logger.info('a pin that nobody has is taken out', { namespaceId, holder: pin.namespaceId });
    await directory.release(tenantId, name, namespaceId, pin.namespaceId);
  }
}

/**
 * Whether the manifest, which was read before this, is as it was at `untilMs`, by the store's clock. A pin bears the time of its maker,
 * whose clock may have been ahead; what is looked at once, a day after it came, would then never be old enough.
 */
async function wasUnchanged(
  { store }: ActorComponents,
  namespaceId: string,
  untilMs: number,
): Promise<boolean> {
  const key = paths.namespaceManifest(namespaceId);
  for await (const object of listAll(store, key))
    if (object.key === key) return object.modifiedAtMs <= untilMs;
  return false;
}

async function readManifest({ store }: ActorComponents, namespaceId: string): Promise<Manifest | null> {
  return (await loadCommitted(store, paths.namespaceManifest(namespaceId), manifestCodec))?.value ?? null;
}

async function isNameless({ directory, log }: ActorComponents, manifest: Manifest): Promise<boolean> {
  const resolved = await directory.resolve(manifest.tenantId, manifest.name, null);
  if (resolved?.namespaceId === manifest.namespaceId) return false;
  return log.confirmOpen();
}
