/** The cluster as its object store shows it: for a person who wants to know who is there, and how far each is with its log. */
import { unpackMessage } from '../base/msgpack.ts';
import { listAll } from '../object-store/list-all.ts';
import type { ObjectStore } from '../object-store/object-store.ts';
import { paths } from '../object-store/paths.ts';
import { readFloor } from '../stored/log-floor.ts';
import { countOwned } from './count-owned.ts';
import { type ClusterMember, ownersOf, readView } from './view.ts';

export interface DescribedLog {
  readonly logId: string;
  /** Objects that whoever takes over from this log has to read, and their bytes. */
  readonly objects: number;
  readonly bytes: number;
}

export interface DescribedMember extends ClusterMember {
  readonly log: DescribedLog;
  /** Namespaces that it owns, of those in their tenants' manifests; null where there are too many tenants to count them. */
  readonly namespaces: number | null;
  /** When the lease was renewed last, by the clock of its server, in milliseconds since 1970; null where there is none. */
  readonly renewedAtMs: number | null;
}

export interface DescribedCluster {
  readonly version: number;
  readonly placement: number;
  readonly members: readonly DescribedMember[];
  /** Logs of servers that have gone whose records are not all in manifests yet. */
  readonly removed: readonly DescribedLog[];
}

export async function describeCluster(store: ObjectStore): Promise<DescribedCluster> {
  const view = await readView(store);
  const owned = await countOwned(store, ownersOf(view, '').servers);
  return {
    version: view.version,
    placement: view.placement,
    members: await Promise.all(
      view.members.map(async (member) => ({
        ...member,
        log: await describeLog(store, member.logId),
        // Who joins owns nothing yet, who leaves nothing any more.
        namespaces: owned === null ? null : (owned.get(member.serverId) ?? 0),
        renewedAtMs: await renewedAt(store, member.logId),
      })),
    ),
    removed: await Promise.all(view.removed.map(({ logId }) => describeLog(store, logId))),
  };
}

async function describeLog(store: ObjectStore, logId: string): Promise<DescribedLog> {
  const folder = paths.logFolder(logId);
  const needed = paths.logObject(logId, (await readFloor(store, logId)) + 1);
  const last = paths.logObject(logId, Number.MAX_SAFE_INTEGER);
  let [objects, bytes] = [0, 0];
  for await (const { key, size } of listAll(store, folder)) {
    if (key < needed || key > last) continue;
    objects++;
    bytes += size;
  }
  return { logId, objects, bytes };
}

async function renewedAt(store: ObjectStore, logId: string): Promise<number | null> {
  const lease = await store.get(paths.lease(logId));
  if (lease === null) return null;
  const { at } = unpackMessage(lease.bytes) as { readonly at?: unknown };
  return typeof at === 'number' ? at : null;
}
