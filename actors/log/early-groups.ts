import { limits } from '../../protocol/limits.ts';
import type { Clock } from '../../src/base/clock.ts';
import { LruMap } from '../../src/base/lru.ts';

/** What may be taken, which grows with time up to a bound. */
interface Allowance {
  left: number;
  atMs: number;
}

/**
 * Counts the groups that are sent before their time: each is a PUT that nobody would have paid for otherwise, so one owner may
 * have some, and all together not many more. Who has used them up waits for the next group, as everybody else does.
 */
export class EarlyGroups {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #all: Allowance;
  readonly #owners = new LruMap<number, Allowance>(limits.earlyGroupOwnersMax);

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
    this.#all = { left: limits.earlyGroupsAtOnceMax, atMs: clock.monotonic() };
  }

  /** Whether this owner may have a group sent early. If so, it is counted. */
  take(owner: number): boolean {
    const nowMs = this.#clock.monotonic();
    const of = this.#owners.get(owner) ?? { left: limits.earlyGroupsOfOwnerAtOnceMax, atMs: nowMs };
    this.#owners.set(owner, of);
    grow(of, nowMs, limits.earlyGroupsOfOwnerPerSecond, limits.earlyGroupsOfOwnerAtOnceMax);
    grow(this.#all, nowMs, limits.earlyGroupsPerSecond, limits.earlyGroupsAtOnceMax);
    if (of.left < 1 || this.#all.left < 1) return false;
    of.left--;
    this.#all.left--;
    return true;
  }
}

function grow(allowance: Allowance, nowMs: number, perSecond: number, max: number): void {
  allowance.left = Math.min(max, allowance.left + ((nowMs - allowance.atMs) / 1_000) * perSecond);
  allowance.atMs = nowMs;
}
