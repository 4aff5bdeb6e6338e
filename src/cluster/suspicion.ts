/**
 * Who is suspected to have died. A suspicion decides only how soon a member is evicted, never whether that is safe: whoever is
 * suspected wrongly meets the seal of its log and comes back as a new member. So what is kept here is peace:
 *
 * 1. A lease tells by changing, and by nothing else: no clock of another machine is believed, nor the wall clock of this one.
 * 2. Who could not renew its own lease all the time suspects nobody: it is the store that is away, or this machine that slept.
 * 3. A connection that was refused says sooner that a process has ended than its lease does, where the lease agrees. Where the server's next
 *    process answers already, it has two seconds more: it takes the log over itself, which is faster than joining after an eviction.
 * 4. One eviction in a while, and never more than half of the members within a minute, unless leases have stood still for that minute. A server
 *    whose process had ended and that came back is not missing: if it dies again, it is evicted again.
 */

import { limits } from '../../protocol/limits.ts';
import type { ClusterMember } from './view.ts';

interface SeenLease {
  /** Null where there is none. */
  readonly etag: string | null;
  readonly sinceMs: number;
}

/** A process, by its log, and the server that it belongs to. */
export type Suspect = Pick<ClusterMember, 'logId' | 'serverId'>;

/** A process that can't be connected to any more. */
interface Refusal {
  readonly sinceMs: number;
  /** Whether the next process of its server answers. */
  readonly comesBack: boolean;
}

/** An eviction that was made from here. */
interface Eviction extends Suspect {
  /** By the monotonic clock, in milliseconds. */
  readonly atMs: number;
  /** Whether its host refused connections to it: then the process had surely ended, and no living one was hurt. */
  readonly hadEnded: boolean;
}

/** Members as they look from here. All times are of this machine's monotonic clock, in milliseconds. */
export class Suspicion {
  readonly #leases = new Map<string, SeenLease>();
  readonly #refusals = new Map<string, Refusal>();
  readonly #evicted: Eviction[] = [];
  #renewedAtMs: number;
  #steadySinceMs: number;

  constructor(nowMs: number) {
    this.#renewedAtMs = nowMs;
    this.#steadySinceMs = nowMs;
  }

  /** The own lease was renewed, or was tried to be. One that comes late counts as none: this process stood still. */
  ownLease(isRenewed: boolean, nowMs: number): void {
    const isLate = nowMs - this.#renewedAtMs > limits.leaseLateMsMax;
    if (!isRenewed || isLate) this.#steadySinceMs = nowMs;
    if (isRenewed) this.#renewedAtMs = nowMs;
  }

  /** A member's lease was read. */
  lease(logId: string, etag: string | null, nowMs: number): void {
    const seen = this.#leases.get(logId);
    if (seen === undefined || seen.etag !== etag) this.#leases.set(logId, { etag, sinceMs: nowMs });
  }

  /** A member that once answered refuses connections, since `nowMs` where it is new. `comesBack`: the next process of its server answers already. */
  refused(logId: string, nowMs: number, comesBack = false): void {
    const sinceMs = this.#refusals.get(logId)?.sinceMs ?? nowMs;
    this.#refusals.set(logId, { sinceMs, comesBack });
  }

  /** A member has answered. */
  answered(logId: string): void {
    this.#refusals.delete(logId);
  }

  /** Whether a member refuses connections: then it is worth looking more often. */
  get refusesAny(): boolean {
    return this.#refusals.size > 0;
  }

  /** A member was evicted from here. */
  evicted({ logId, serverId }: Suspect, nowMs: number): void {
    this.#evicted.push({ logId, serverId, atMs: nowMs, hadEnded: this.#refusals.has(logId) });
    this.#leases.delete(logId);
    this.#refusals.delete(logId);
  }

  /** Forgets what is known of logs that are no members any more; `logIds` are those of the other members. */
  members(logIds: readonly string[]): void {
    for (const known of [this.#leases, this.#refusals])
      for (const logId of known.keys()) if (!logIds.includes(logId)) known.delete(logId);
  }

  /** For how long the member's lease has stood still, as far as is known; 0 where it was never read. */
  stillMs(logId: string, nowMs: number): number {
    const seen = this.#leases.get(logId);
    return seen === undefined ? 0 : nowMs - seen.sinceMs;
  }

  /** Whom to evict now: the one whose lease has stood still for longest, or nobody. `others` are all other members. */
  whom(others: readonly Suspect[], nowMs: number): Suspect | null {
    if (nowMs - this.#steadySinceMs < limits.suspectAfterMs || this.#isLate(nowMs)) return null;
    const last = this.#evicted.at(-1);
    if (last !== undefined && nowMs - last.atMs < limits.evictionEveryMs) return null;
    const stillest = others
      .filter(({ logId }) => this.#isSuspected(logId, nowMs))
      .toSorted((a, b) => this.stillMs(b.logId, nowMs) - this.stillMs(a.logId, nowMs))[0];
    if (stillest === undefined) return null;
    const isLongDead = this.stillMs(stillest.logId, nowMs) >= limits.evictionWindowMs;
    return isLongDead || this.#leavesHalf(stillest, others, nowMs) ? stillest : null;
  }

  #isLate(nowMs: number): boolean {
    return nowMs - this.#renewedAtMs > limits.leaseLateMsMax;
  }

  #isSuspected(logId: string, nowMs: number): boolean {
    const stillMs = this.stillMs(logId, nowMs);
    if (stillMs >= limits.suspectAfterMs) return true;
    const refusal = this.#refusals.get(logId);
    if (refusal === undefined) return false;
    const afterMs = refusal.comesBack ? limits.suspectReturningAfterMs : limits.suspectRefusedAfterMs;
    return Math.min(stillMs, nowMs - refusal.sinceMs) >= afterMs;
  }

  /**
   * Whether, after one more eviction, at least half of the members are left: of those of now and of those that were evicted from here within
   * `evictionWindowMs`. One that was evicted on the word of its lease alone counts as missing though it came back: who suspects
   * the living goes on suspecting them.
   */
  #leavesHalf(suspect: Suspect, others: readonly Suspect[], nowMs: number): boolean {
    while ((this.#evicted[0]?.atMs ?? nowMs) < nowMs - limits.evictionWindowMs) this.#evicted.shift();
    // Where the view was not changed after a seal, it still names who was evicted.
    const isEvicted = (logId: string) => this.#evicted.some((each) => each.logId === logId);
    const present = new Set(others.filter(({ logId }) => !isEvicted(logId)).map(({ serverId }) => serverId));
    const ended = this.#evicted.filter(({ serverId, hadEnded }) => hadEnded && !present.has(serverId));
    const doubted = this.#evicted.filter(({ hadEnded }) => !hadEnded);
    const missing = new Set(ended.map(({ serverId }) => serverId)).size + doubted.length;
    const members = 1 + present.size;
    const left = present.has(suspect.serverId) ? members - 1 : members;
    return 2 * left >= members + missing;
  }
}
