import { ApiError } from '../../protocol/errors.ts';
import type { TenantStanding, Used } from '../../protocol/messages.ts';
import type { UsageNote } from '../../protocol/stored-tenant.ts';
import { noRoomSentence, nothingUsed, usedUp, usedUpSentence } from '../../src/accounts/allowance.ts';
import { billingPeriodOf, midnightFrom } from '../../src/accounts/billing-period.ts';
import type { Plan } from '../../src/accounts/plans.ts';
import type { Period } from '../../src/accounts/usage.ts';
import { must } from '../../src/base/assert.ts';
import type { ActorComponents } from '../actor/components.ts';
import type { TenantLedger } from './tenant-ledger.ts';
import type { TenantLife } from './tenant-life.ts';
import type { TenantLog } from './tenant-log.ts';
import { isDeleting } from './tenant-state.ts';
import { usedIn } from './tenant-usage.ts';
import type { UsageOfTenant } from './usage-answers.ts';

type Components = Pick<ActorComponents, 'clock' | 'plans' | 'hasPayments'>;

interface AccountParts {
  readonly log: TenantLog;
  readonly ledger: TenantLedger;
  readonly life: TenantLife;
}

/** The tenant's plan, and what it has used of it. */
export class TenantAccount {
  readonly #components: Components;
  readonly #parts: AccountParts;

  constructor(components: Components, parts: AccountParts) {
    this.#components = components;
    this.#parts = parts;
  }

  get plan(): Plan {
    return this.#components.plans[this.#parts.log.state.tenant?.plan ?? 'free'];
  }

  /** Whether this server has a payment provider. */
  get canSubscribe(): boolean {
    return this.#components.hasPayments;
  }

  /** Takes what fronts have counted. It is durable when this resolves. */
  async noteUsage(notes: readonly UsageNote[]): Promise<void> {
    const { log, life } = this.#parts;
    // What a tenant used before it was deleted is asked for by nobody.
    if (log.state.tenant === null || isDeleting(log.state)) return;
    // Told again, it is one of these two.
    if (life.isLeaving) throw new ApiError('unavailable', 'the tenant is being deleted', { retryAfter: 1 });
    await log.confirmed(log.append({ kind: 'usage-noted', notes }));
  }

  /** The tenant and what it has used of this period; null where there is none. */
  standing(): TenantStanding | null {
    const { tenant } = this.#parts.log.state;
    if (tenant === null) return null;
    this.#parts.ledger.countStored();
    const nowMs = this.#components.clock.now();
    const period = billingPeriodOf(tenant, nowMs);
    const { startMs, endMs } = period;
    return { ...tenant, period: { startMs, endMs }, used: this.#used(period, nowMs) };
  }

  /** What counts against the plan's allowances: on the day that a subscription ended nothing does, for most of it was paid. */
  #used(period: Period, nowMs: number): Used {
    const { tenant, usage } = this.#parts.log.state;
    const endedAt = tenant?.plan === 'free' ? (tenant.billing?.endedAt ?? 0) : 0;
    return nowMs < midnightFrom(endedAt) ? nothingUsed : usedIn(usage, period);
  }

  usage(): UsageOfTenant {
    const { log, ledger } = this.#parts;
    const tenant = must(log.state.tenant, 'the tenant of a credential');
    ledger.countStored();
    return {
      tenant,
      plan: this.plan,
      usage: log.state.usage,
      storedBytes: ledger.storedBytes,
      nowMs: this.#components.clock.now(),
    };
  }

  /** Throws 402 where the allowance of the hosted embedding model has no room for so many tokens. */
  admitHosted(tokens: number): void {
    const { plan, tenant, nowMs } = this.usage();
    const period = billingPeriodOf(tenant, nowMs);
    const used = this.#used(period, nowMs);
    const up = usedUp(plan, tenant, used, 'hosted-tokens');
    // The one that makes it full still fits.
    const withThese = { ...used, hostedTokens: used.hostedTokens + Math.max(0, tokens - 1) };
    const past = up ?? usedUp(plan, tenant, withThese, 'hosted-tokens');
    if (past === null) return;
    const resets = period.end;
    const sentence =
      up === null
        ? noRoomSentence(past, plan, { resets, left: past.included - used.hostedTokens, needed: tokens })
        : usedUpSentence(past, plan, resets);
    throw new ApiError(past.unverified ? 'email_unverified' : 'payment_required', sentence);
  }
}
