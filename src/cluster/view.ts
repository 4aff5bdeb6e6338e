import { type SealedLog, sealedLogSchema } from '../../protocol/stored-log.ts';
import { storedCheck } from '../../protocol/stored-schema.ts';
import { z } from '../../protocol/validate.ts';
import { formats } from '../../protocol/version.ts';
import type { LogControl, LogIdentity } from '../../protocol/worker-tasks.ts';
import { DataError } from '../base/assert.ts';
import type { Clock } from '../base/clock.ts';
import { type Random, randomHex } from '../base/random.ts';
import { decodeRecord, encodeRecord } from '../base/record.ts';
import { type ObjectStore, StoreError } from '../object-store/object-store.ts';
import { paths } from '../object-store/paths.ts';
import { readIntact } from '../object-store/read-intact.ts';

/**
 * The cluster view: which logs are open and which were sealed. One object, changed by compare-and-set; a single server
 * is a view of one member. Every restart is a change of the view, with the new process as the successor of the old.
 */
const viewSchema = z.strictObject({
  /** Rises by one with each change. */
  version: z.int().min(0),
  /** New for each change: tells one's own change whose answer was lost. */
  nonce: z.string(),
  /** The processes that write, each to a log of its own. */
  members: z
    .array(
      z.strictObject({
        logId: z.string(),
        serverId: z.string(),
        address: z.string(),
        state: z.literal('active'),
      }),
    )
    .readonly(),
  /** Sealed logs whose records are not all in manifests yet, each with the slot of its seal. */
  removed: z.array(sealedLogSchema).readonly(),
});
export type ClusterView = Readonly<z.output<typeof viewSchema>>;

const viewFormat = {
  magic: 'TBVW',
  versions: [formats.clusterView.version],
  check: storedCheck(viewSchema),
} as const;

export interface JoinComponents {
  readonly store: ObjectStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Pick<LogControl, 'seal' | 'doneAmong'>;
}

export interface Joined {
  readonly identity: LogIdentity;
  /** Logs to replay. */
  readonly sealedLogs: readonly SealedLog[];
  /** Logs of this server's own earlier processes that this start sealed. */
  readonly predecessors: readonly string[];
}

/** A change of the view that others kept overtaking this often is given up: something is wrong with this store. */
const attemptsMax = 20;
/** Changes of one start whose outcome was not known; a store that goes on so is left to the next start. */
const unknownMax = 5;
/** After a change whose outcome is not known; a store that is throttled wants rest. */
const unknownPauseMs = 200;
/** Another member whose lease has not changed for this long has died; see rule 6 of the commit protocol. */
const suspectAfterMs = 10_000;

/**
 * Makes this process a member with a log of its own.
 *
 * 1. The log of this server's previous process, which the view still names, is sealed: from here on nothing more gets
 *    into it, however long that process was paused.
 * 2. Then the view is changed: the old log is removed, with the slot of its seal, and the new one is a member. A crash
 *    between the two leaves a sealed log in the view, which the next start seals again.
 */
export async function joinCluster(
  components: JoinComponents,
  serverId: string,
  address: string,
): Promise<Joined> {
  const { store, clock, random, log } = components;
  let unknown = 0;
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    // Another one each time: a change whose outcome was not known may still come to be, and is then sealed like any other.
    const logId = newLogId(clock, random);
    const found = await loadView(store);
    const current = found?.view ?? emptyView;
    await waitForOthers(components, current, serverId);
    const version = current.version + 1;
    const ended = await Promise.all(
      current.members.map(async (member) => ({
        logId: member.logId,
        sealSeq: await log.seal(member.logId, version),
      })),
    );
    const done = new Set(await log.doneAmong(current.removed.map((removed) => removed.logId)));
    const sealedLogs = [...current.removed.filter((removed) => !done.has(removed.logId)), ...ended];
    const next: ClusterView = {
      version,
      nonce: randomHex(random, 16),
      members: [{ logId, serverId, address, state: 'active' }],
      removed: sealedLogs,
    };
    const change = { next, etag: found?.etag ?? null };
    const onUnknown = (error: StoreError) => {
      if (++unknown === unknownMax) throw error;
    };
    if (await replaceView(components, change, onUnknown)) {
      const predecessors = current.members.filter((m) => m.serverId === serverId).map((m) => m.logId);
      return { identity: { logId, viewVersion: version }, sealedLogs, predecessors };
    }
  }
  throw new Error('the cluster view could not be changed: other processes kept changing it');
}

/** The view as it is now; an empty one where no server has ever started. */
export async function readView(store: ObjectStore): Promise<ClusterView> {
  return (await loadView(store))?.view ?? emptyView;
}

/** Null before the first process. A view that is gone would be taken for that, and nobody would replay the logs. */
async function loadView(store: ObjectStore): Promise<{ view: ClusterView; etag: string } | null> {
  const found = await readIntact(store, paths.view, ({ bytes, etag }) => ({ view: decodeView(bytes), etag }));
  if (found !== null) return found;
  const { objects } = await store.list(paths.logs, { limit: 1 });
  if (objects.length > 0) throw new DataError(paths.view, 0, 'there are logs and no view that names them');
  return null;
}

const emptyView: ClusterView = { version: 0, nonce: '', members: [], removed: [] };

/** Several servers on one store come later: until then a living one is not pushed aside. */
async function waitForOthers(components: JoinComponents, view: ClusterView, serverId: string): Promise<void> {
  const others = view.members.filter((member) => member.serverId !== serverId);
  for (const { logId, address } of others) {
    const before = await components.store.get(paths.lease(logId));
    if (before === null) continue;
    await components.clock.sleep(suspectAfterMs);
    const after = await components.store.get(paths.lease(logId));
    if (after !== null && after.etag !== before.etag) {
      throw new Error(
        `another server (${address}) is running on this object store. Stop it first, or give this one a bucket or folder of its own.`,
      );
    }
  }
}

/** True where the view is now `next`; also where that is learned only from the object itself. */
async function replaceView(
  { store, clock }: Pick<JoinComponents, 'store' | 'clock'>,
  { next, etag }: { readonly next: ClusterView; readonly etag: string | null },
  onUnknown: (error: StoreError) => void,
): Promise<boolean> {
  const bytes = [encodeRecord(viewFormat, next)];
  try {
    const put =
      etag === null
        ? await store.putIfAbsent(paths.view, bytes)
        : await store.putIfMatch(paths.view, bytes, etag);
    if (put.kind === 'stored') return true;
  } catch (error) {
    if (!(error instanceof StoreError) || error.outcome === 'not-applied') throw error;
    onUnknown(error);
    await clock.sleep(unknownPauseMs);
  }
  const found = await store.get(paths.view);
  return found !== null && decodeView(found.bytes).nonce === next.nonce;
}

export function decodeView(bytes: Uint8Array): ClusterView {
  return decodeRecord(bytes, paths.view, viewFormat);
}

/** Time, so that logs sort by age, and 80 random bits, so that no two processes ever share one. */
function newLogId(clock: Clock, random: Random): string {
  return clock.now().toString(36).padStart(10, '0') + randomHex(random, 10);
}
