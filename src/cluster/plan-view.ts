/**
 * How the cluster view may change, as pure functions: each answers the view that follows, or null where the change has been made
 * already, by whomever, or must not be made. Who loses the race of the compare-and-set asks again with what it finds.
 *
 * | change | who makes it |
 * |---|---|
 * | enter | a process that starts; the logs of its own server's earlier processes are sealed before |
 * | activate | a process that has entered beside others, once others have flushed what it will own |
 * | leave | a process that is asked to stop beside others |
 * | remove | anybody who has seen the seal of a member's log: its evictor, or who finishes what that one began; a leaver itself |
 * | forget | anybody, of logs whose records are all in manifests |
 *
 * Members are removed by the log that was sealed, never by their server: a server that has started again writes another log.
 */

import type { SealedLog } from '../../protocol/stored-log.ts';
import type { ClusterMember, ClusterView } from './view.ts';

export type PlannedView = Omit<ClusterView, 'nonce'>;

export interface Entrance {
  readonly newcomer: Omit<ClusterMember, 'state'>;
  /** Members whose logs are sealed, and who go with the same change. */
  readonly sealed: readonly SealedLog[];
  /** Logs of the view whose records are all in manifests. */
  readonly done: readonly string[];
}

/** Answers null while an earlier process of the same server is a member whose log is not sealed. */
export function planEntrance(view: ClusterView, { newcomer, sealed, done }: Entrance): PlannedView | null {
  const gone = new Set(sealed.map(({ logId }) => logId));
  const stay = view.members.filter(({ logId }) => !gone.has(logId));
  if (stay.some(({ serverId }) => serverId === newcomer.serverId)) return null;
  // Beside one that leaves it has to be running before it takes over: if that one has died, nobody else removes it.
  const isAlone = !stay.some(({ state }) => state !== 'joining');
  const { logId, serverId, address, protocol } = newcomer;
  const member: ClusterMember = { logId, serverId, address, state: isAlone ? 'active' : 'joining', protocol };
  const known = new Set(view.members.map(({ logId }) => logId));
  const removed = [
    ...view.removed.filter(({ logId }) => !done.includes(logId)),
    ...sealed.filter(({ logId }) => known.has(logId)),
  ];
  return following(view, [...stay, member], removed);
}

/** From the view that follows on, it owns its part. */
export function planActivation(view: ClusterView, logId: string): PlannedView | null {
  return withState(view, logId, { from: ['joining'], to: 'active' });
}

/** From the view that follows on, it owns nothing; the others wait for its barrier. The last that is active has nobody to leave to. */
export function planLeave(view: ClusterView, logId: string): PlannedView | null {
  const hasHeir = view.members.some((member) => member.state === 'active' && member.logId !== logId);
  return hasHeir ? withState(view, logId, { from: ['joining', 'active'], to: 'leaving' }) : null;
}

export function planRemoval(view: ClusterView, sealed: SealedLog): PlannedView | null {
  const members = view.members.filter(({ logId }) => logId !== sealed.logId);
  if (members.length === view.members.length) return null;
  return following(view, members, [...view.removed, sealed]);
}

export function planForgetting(view: ClusterView, done: readonly string[]): PlannedView | null {
  const removed = view.removed.filter(({ logId }) => !done.includes(logId));
  return removed.length === view.removed.length ? null : following(view, view.members, removed);
}

/** Who owns something, each by its log. */
export function activeLogs(view: Pick<ClusterView, 'members'>): readonly string[] {
  return view.members.filter(({ state }) => state === 'active').map(({ logId }) => logId);
}

function withState(
  view: ClusterView,
  logId: string,
  { from, to }: { readonly from: readonly ClusterMember['state'][]; readonly to: ClusterMember['state'] },
): PlannedView | null {
  const member = view.members.find((each) => each.logId === logId);
  if (member === undefined || !from.includes(member.state)) return null;
  const members = view.members.map((each) => (each === member ? { ...each, state: to } : each));
  return following(view, members, view.removed);
}

function following(
  view: ClusterView,
  members: ClusterView['members'],
  removed: ClusterView['removed'],
): PlannedView {
  const [before, now] = [activeLogs(view), activeLogs({ members })];
  const isSame = before.length === now.length && before.every((logId) => now.includes(logId));
  return {
    version: view.version + 1,
    placement: view.placement + (isSame ? 0 : 1),
    members,
    removed,
  };
}
