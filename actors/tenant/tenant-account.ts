import { ApiError } from '../../protocol/errors.ts';
import type { TenantStanding } from '../../protocol/messages.ts';
import type { UsageNote } from '../../protocol/stored-tenant.ts';
import { noRoomSentence, usedUp, usedUpSentence } from '../../src/accounts/allowance.ts';
import type { Plan } from '../../src/accounts/plans.ts';
import { periodOf } from '../../src/accounts/usage.ts';
import { must } from '../../src/base/assert.ts';
import type { ActorComponents } from '../actor/components.ts';
import type { TenantLedger } from './tenant-ledger.ts';
import type { TenantLife } from './tenant-life.ts';
import type { TenantLog } from './tenant-log.ts';
import { isDeleting } from './tenant-state.ts';
import { usedNow } from './tenant-usage.ts';
import type { UsageOfTenant } from './usage-answers.ts';

/** The tenant's plan, and what it has used of it. */
type Components = Pick<ActorComponents, 'clock' | 'plans'>;

interface AccountParts {
  readonly log: TenantLog;
  readonly ledger: TenantLedger;
  readonly life: TenantLife;
}

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
    const { tenant, usage } = this.#parts.log.state;
    if (tenant === null) return null;
    this.#parts.ledger.countStored();
    const nowMs = this.#components.clock.now();
    return { ...tenant, month: periodOf(nowMs).month, used: usedNow(usage, nowMs) };
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
    const { plan, tenant, usage, nowMs } = this.usage();
    const used = usedNow(usage, nowMs);
    const up = usedUp(plan, tenant, used, 'hosted-tokens');
    // The one that makes it full still fits.
    const withThese = { ...used, hostedTokens: used.hostedTokens + Math.max(0, tokens - 1) };
    const past = up ?? usedUp(plan, tenant, withThese, 'hosted-tokens');
    if (past === null) return;
    const resets = periodOf(nowMs).end;
    const sentence =
      up === null
        ? noRoomSentence(past, plan, { resets, left: past.included - used.hostedTokens, needed: tokens })
        : usedUpSentence(past, plan, resets);
    throw new ApiError(past.unverified ? 'email_unverified' : 'payment_required', sentence);
  }
}
