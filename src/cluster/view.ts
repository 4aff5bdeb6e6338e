/**
 * The cluster view: which logs are open and which were sealed. One object, changed by compare-and-set
 * (change-view.ts) in the ways of plan-view.ts; a single server is a view of one member.
 */
import type { Owners, Standing } from '../../protocol/placement.ts';
import { sealedLogSchema } from '../../protocol/stored-log.ts';
import { storedCheck } from '../../protocol/stored-schema.ts';
import { z } from '../../protocol/validate.ts';
import { formats, peerVersions } from '../../protocol/version.ts';
import { DataError } from '../base/assert.ts';
import { decodeRecord, encodeRecord } from '../base/record.ts';
import type { ObjectStore } from '../object-store/object-store.ts';
import { paths } from '../object-store/paths.ts';
import { readIntact } from '../object-store/read-intact.ts';

const viewSchema = z.strictObject({
  /** Rises by one with each change. */
  version: z.int().min(0),
  /** Rises by one with each change of the active members, and so of who owns what; what stands in the headers of logs. */
  placement: z.int().min(0),
  /** New for each change: tells one's own change whose answer was lost. */
  nonce: z.string(),
  /** The processes that write, each to a log of its own. */
  members: z
    .array(
      z.strictObject({
        logId: z.string(),
        /** What places data: the same in each process of one server. */
        serverId: z.string(),
        address: z.string(),
        /** `joining` owns nothing yet, `leaving` nothing any more. */
        state: z.enum(['joining', 'active', 'leaving']),
        /** Which versions of the protocol between servers it speaks. */
        protocol: z.strictObject({ least: z.int().min(1), greatest: z.int().min(1) }),
      }),
    )
    .readonly(),
  /** Sealed logs whose records are not all in manifests yet, each with the slot of its seal. */
  removed: z.array(sealedLogSchema).readonly(),
});
export type ClusterView = Readonly<z.output<typeof viewSchema>>;
export type ClusterMember = ClusterView['members'][number];

/** Version 1 knew one member, which was active, and no placement: each of its changes was one of the owners. */
const firstViewSchema = z.strictObject({
  version: z.int().min(0),
  nonce: z.string(),
  members: z.array(
    z.strictObject({
      logId: z.string(),
      serverId: z.string(),
      address: z.string(),
      state: z.literal('active'),
    }),
  ),
  removed: z.array(sealedLogSchema),
});
const checkNow = storedCheck(viewSchema);
const checkFirst = storedCheck(firstViewSchema);
const firstProtocol = { least: 1, greatest: 1 } as const;

const viewFormat = {
  magic: 'TBVW',
  versions: [formats.clusterView.version, 1],
  check: (value: unknown, version: number): ClusterView => {
    if (version !== 1) return checkNow(value);
    const { members, ...first } = checkFirst(value);
    return {
      ...first,
      placement: first.version,
      members: members.map((member) => ({ ...member, protocol: firstProtocol })),
    };
  },
} as const;

/** What this build speaks to other servers. */
export const ownProtocol: ClusterMember['protocol'] = {
  least: peerVersions.least,
  greatest: peerVersions.greatest,
};

/** The address of a member that has no peer port, and so can't be beside others: where its clients find it. */
export function addressAlone(host: string, port: number): string {
  return `${aloneMark}${host}:${port}`;
}

export function isAlone({ address }: Pick<ClusterMember, 'address'>): boolean {
  return address.startsWith(aloneMark);
}

const aloneMark = 'http://';

/** The view before any server has ever started. */
export const emptyView: ClusterView = { version: 0, placement: 0, nonce: '', members: [], removed: [] };

/** Who owns what in a view, as the server knows it that has this id. */
export function ownersOf({ placement, members }: ClusterView, self: string): Owners {
  const active = members.filter(({ state }) => state === 'active');
  return { placement, servers: active.map(({ serverId }) => serverId), self };
}

/** Who owns what once a server, which has this id, has left. */
export function ownersWithout(view: ClusterView, self: string): Owners {
  const members = view.members.filter(({ serverId }) => serverId !== self);
  return ownersOf({ ...view, members }, self);
}

/** Who owns what once the process of this log, which is joining, is active, as the server knows it that has this id. */
export function ownersWith(view: ClusterView, logId: string, self: string): Owners {
  const members = view.members.map((member) =>
    member.logId === logId ? { ...member, state: 'active' as const } : member,
  );
  return ownersOf({ ...view, members }, self);
}

/** What the threads of a member have to know of a view; null where the log is no member of it (any more). */
export function standingOf(view: ClusterView, logId: string): Standing | null {
  const self = view.members.find((member) => member.logId === logId);
  if (self === undefined) return null;
  // Who is joining has never owned anything: nobody waits for its log.
  const others = view.members.filter((member) => member !== self && member.state !== 'joining');
  return {
    version: view.version,
    owners: ownersOf(view, self.serverId),
    others: others.map((member) => member.logId),
    removed: view.removed,
    logs: [...view.members, ...view.removed].map((each) => each.logId),
  };
}

export interface LoadedView {
  readonly view: ClusterView;
  /** Null where there is no object yet. */
  readonly etag: string | null;
}

/** The view as it is now; an empty one where no server has ever started. */
export async function readView(store: ObjectStore): Promise<ClusterView> {
  return (await loadView(store)).view;
}

/** Reads the view. One that is gone would be taken for that of the first start, and nobody would replay the logs. */
export async function loadView(store: ObjectStore): Promise<LoadedView> {
  const found = await readIntact(store, paths.view, ({ bytes, etag }) => ({ view: decodeView(bytes), etag }));
  if (found !== null) return found;
  const { objects } = await store.list(paths.logs, { limit: 1 });
  if (objects.length > 0) throw new DataError(paths.view, 0, 'there are logs and no view that names them');
  return { view: emptyView, etag: null };
}

export function decodeView(bytes: Uint8Array): ClusterView {
  return decodeRecord(bytes, paths.view, viewFormat);
}

export function encodeView(view: ClusterView): Uint8Array {
  return encodeRecord(viewFormat, view);
}
