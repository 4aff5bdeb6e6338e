import { limits } from '../../protocol/limits.ts';
import type { Standing } from '../../protocol/placement.ts';
import type { LogControl, LogIdentity } from '../../protocol/worker-tasks.ts';
import { must } from '../base/assert.ts';
import type { Clock } from '../base/clock.ts';
import { type Random, randomHex } from '../base/random.ts';
import { paths } from '../object-store/paths.ts';
import { sharedVersion } from '../peers/hello.ts';
import { changeView, type ViewComponents } from './change-view.ts';
import { type PlannedView, planEntrance } from './plan-view.ts';
import { Suspicion } from './suspicion.ts';
import { type ClusterMember, type ClusterView, isAlone, ownProtocol, standingOf } from './view.ts';

export interface JoinComponents extends ViewComponents {
  readonly log: Pick<LogControl, 'seal' | 'doneAmong'>;
  /** Whether it joins beside other servers that live, instead of refusing to. */
  readonly besideOthers?: boolean;
}

export interface Joined {
  readonly identity: LogIdentity;
  readonly view: ClusterView;
  /** What the view of this start means for this process. */
  readonly standing: Standing;
  /** Logs of this server's own earlier processes that this start sealed; none where another server may have owned their data since. */
  readonly predecessors: readonly string[];
  /** Whether an earlier process of this server owned its part until this start sealed its log: nobody else has answered for that part since. */
  readonly returns: boolean;
}

/** This process can't be a member beside those that live. The message says what an operator can do about it. */
export class CannotJoin extends Error {
  override name = 'CannotJoin';
}

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
  const { clock, random } = components;
  let predecessors: readonly string[] = [];
  let returns = false;
  let logId = '';
  const joined = await changeView(components, (view) => {
    // Another one each time: a change whose outcome was not known may still come to be, and is then sealed like any other.
    logId = newLogId(clock, random);
    const isAlone = view.members.every((member) => member.serverId === serverId);
    predecessors = isAlone ? view.members.map((member) => member.logId) : [];
    returns = view.members.some((member) => member.serverId === serverId && member.state === 'active');
    return planJoin(components, view, { logId, serverId, address, protocol: ownProtocol });
  });
  const view = must(joined, 'a view that names this process');
  return {
    identity: { logId, placement: view.placement },
    view,
    standing: must(standingOf(view, logId), 'a view that names this process'),
    predecessors,
    returns,
  };
}

/** Seals the logs of members that have ended, and answers the view without them: those of this server, and without others beside it all. */
async function planJoin(
  components: JoinComponents,
  view: ClusterView,
  newcomer: Omit<ClusterMember, 'state'>,
): Promise<PlannedView | null> {
  const { log, besideOthers = false } = components;
  const others = view.members.filter(({ serverId }) => serverId !== newcomer.serverId);
  // Nobody can be beside a server that is alone: it hears of no view.
  const inTheWay = besideOthers ? others.filter(isAlone) : others;
  await waitForOthers(components, inTheWay, besideOthers);
  const stay = others.filter((member) => !inTheWay.includes(member));
  refuseOtherVersions(stay);
  const ended = view.members.filter((member) => !stay.includes(member));
  const sealed = await Promise.all(
    ended.map(async ({ logId }) => ({
      logId,
      sealSeq: await log.seal(logId, view.placement + 1),
    })),
  );
  const done = await log.doneAmong(view.removed.map(({ logId }) => logId));
  return planEntrance(view, { newcomer, sealed, done });
}

/** Throws where a member speaks no version of what servers say to each other that this one speaks. */
function refuseOtherVersions(members: readonly ClusterMember[]): void {
  const apart = members.find(({ protocol }) => sharedVersion(ownProtocol, protocol) === null);
  if (apart === undefined) return;
  const { address, protocol } = apart;
  throw new CannotJoin(
    `the server at ${address} speaks versions ${protocol.least} to ${protocol.greatest} of the peer protocol, and this one ` +
      `${ownProtocol.least} to ${ownProtocol.greatest}: update the older one first`,
  );
}

/** Waits out the leases of other servers, all at once. Throws while one of them lives. */
async function waitForOthers(
  { store, clock }: Pick<JoinComponents, 'store' | 'clock'>,
  others: readonly ClusterMember[],
  besideOthers: boolean,
): Promise<void> {
  const suspicion = new Suspicion(clock.monotonic());
  const look = () =>
    Promise.all(
      others.map(async ({ logId }) => {
        const etag = (await store.get(paths.lease(logId)))?.etag ?? null;
        suspicion.lease(logId, etag, clock.monotonic());
        return etag !== null;
      }),
    );
  const hadLease = await look();
  if (!hadLease.includes(true)) return;
  await clock.sleep(limits.suspectAfterMs);
  const lookedAgainMs = clock.monotonic();
  const hasLease = await look();
  const living = others.find(
    ({ logId }, at) => hasLease[at] === true && suspicion.stillMs(logId, lookedAgainMs) <= 0,
  );
  if (living === undefined) return;
  throw new CannotJoin(
    besideOthers
      ? `another server (${living.address}) is running alone on this object store: stop it, and start it again with TIDEBASE_PEER_PORT`
      : `another server (${living.address}) is running on this object store: stop it first, or give this one a bucket or folder of its own`,
  );
}

/** Time, so that logs sort by age, and 80 random bits, so that no two processes ever share one. */
function newLogId(clock: Clock, random: Random): string {
  return clock.now().toString(36).padStart(10, '0') + randomHex(random, 10);
}
