import { ApiError } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import type { KeyStanding, TenantStanding, Used } from '../../protocol/messages.ts';
import { hasAllowances, type Need, nothingUsed, usedUp, usedUpSentence } from '../accounts/allowance.ts';
import type { Plans } from '../accounts/plans.ts';
import { type Period, periodBetween, periodOf } from '../accounts/usage.ts';
import type { Principal } from '../auth/principal.ts';
import type { Clock } from '../base/clock.ts';
import { LruMap } from '../base/lru.ts';

type Counts = { -readonly [Name in keyof Used]: number };

interface Account {
  /** What the plan's allowances are of. Caps of keys are of calendar months, whatever it is. */
  readonly period: Pick<Period, 'startMs' | 'end' | 'endMs'>;
  readonly used: Counts;
  month: Period;
  keys: Map<number, KeyCounts>;
}

interface KeyCounts {
  queries: number;
  writes: number;
  /** Let in and not answered: each may come to count. */
  running: { query: number; write: number };
}

const names = Object.keys(nothingUsed) as readonly (keyof Used)[];

/**
 * What tenants and keys have used of the running period, as one front thread knows it, so that a request past its
 * allowance or its key's cap is refused before an actor hears of it.
 *
 * Two counts of the same thing are kept as one, the larger: what this front has counted since it first heard of the
 * tenant, and what the tenant's actor tells, which is behind by what was not reported yet. So on one server a limit is
 * met exactly but for the requests that are under way, and with several within a second of their traffic.
 */
export class Allowances {
  readonly #plans: Plans;
  readonly #clock: Clock;
  readonly #accounts: LruMap<number, Account>;
  readonly #limited: Readonly<Record<keyof Plans, boolean>>;

  constructor(plans: Plans, clock: Clock) {
    this.#plans = plans;
    this.#clock = clock;
    this.#accounts = new LruMap(limits.keyCacheEntriesMax);
    this.#limited = { free: hasAllowances(plans.free), pro: hasAllowances(plans.pro), attempts: false };
  }

  /** What a tenant's actor says. */
  learn({ id, period, used }: TenantStanding): void {
    // Said in one period and heard in the next: it is not of this one.
    if (this.#clock.now() >= period.endMs) return;
    const { used: known } = this.#accountIn(id, period);
    for (const name of names) known[name] = Math.max(known[name], used[name]);
  }

  learnKey(tenantId: number, { id, month, usedQueries, usedWrites }: KeyStanding): void {
    if (month !== this.#account(tenantId).month.month) return;
    const known = this.#key(tenantId, id);
    known.queries = Math.max(known.queries, usedQueries);
    known.writes = Math.max(known.writes, usedWrites);
  }

  /** What an answer has used. */
  count({ tenantId, keyId, caps }: Principal, used: Partial<Used>): void {
    const known = this.#account(tenantId).used;
    for (const name in used) known[name as keyof Used] += used[name as keyof Used] ?? 0;
    if (keyId === null || (caps.queries === null && caps.writes === null)) return;
    const key = this.#key(tenantId, keyId);
    key.queries += used.queries ?? 0;
    key.writes += used.writes ?? 0;
  }

  /**
   * Lets a request in under its key's cap, or throws 429 `rate_limited`. Answers what ends it, once it is counted or was
   * refused; null where the key has no cap on such requests.
   */
  beginCapped({ tenantId, keyId, caps }: Principal, counts: 'query' | 'write'): (() => void) | null {
    const cap = counts === 'query' ? caps.queries : caps.writes;
    if (cap === null || keyId === null) return null;
    const { queries, writes, running } = this.#key(tenantId, keyId);
    if ((counts === 'query' ? queries : writes) + running[counts] < cap) {
      running[counts] += 1;
      return () => {
        running[counts] -= 1;
      };
    }
    const { end, endMs } = this.#account(tenantId).month;
    const what = counts === 'query' ? 'queries' : 'write requests';
    throw new ApiError(
      'rate_limited',
      `the key's cap of ${cap} ${what} a month is reached: wait until ${end}, or use another key`,
      {
        retryAfter: Math.max(1, Math.ceil((endMs - this.#clock.now()) / 1_000)),
      },
    );
  }

  /** 402 where the plan's allowance for what is needed is used up, else null. */
  refusal(principal: Principal, need: Need): ApiError | null {
    if (!this.#limited[principal.planName]) return null;
    const { used, period } = this.#account(principal.tenantId);
    const plan = this.#plans[principal.planName];
    const up = usedUp(plan, principal, used, need);
    if (up === null) return null;
    const code = up.unverified ? 'email_unverified' : 'payment_required';
    return new ApiError(code, usedUpSentence(up, plan, period.end));
  }

  #account(tenantId: number): Account {
    const known = this.#accounts.get(tenantId);
    const nowMs = this.#clock.now();
    if (known === undefined || nowMs >= known.period.endMs) return this.#begin(tenantId, periodOf(nowMs));
    if (nowMs >= known.month.endMs) {
      known.month = periodOf(nowMs);
      known.keys = new Map();
    }
    return known;
  }

  /** The account of a tenant whose period is known: another one, with the plan or the month, begins at nothing. */
  #accountIn(tenantId: number, { startMs, endMs }: TenantStanding['period']): Account {
    const known = this.#account(tenantId);
    if (known.period.startMs === startMs && known.period.endMs === endMs) return known;
    return this.#begin(tenantId, periodBetween(startMs, endMs));
  }

  #begin(tenantId: number, period: Account['period']): Account {
    const month = periodOf(this.#clock.now());
    const known = this.#accounts.get(tenantId);
    const keys = known?.month.month === month.month ? known.keys : new Map<number, KeyCounts>();
    const account: Account = { period, used: { ...nothingUsed }, month, keys };
    this.#accounts.set(tenantId, account);
    return account;
  }

  #key(tenantId: number, keyId: number): KeyCounts {
    const { keys } = this.#account(tenantId);
    let known = keys.get(keyId);
    if (known === undefined) {
      known = { queries: 0, writes: 0, running: { query: 0, write: 0 } };
      keys.set(keyId, known);
    }
    return known;
  }
}
