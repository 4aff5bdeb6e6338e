import type { Billing, Usage } from '../../protocol/account.ts';
import type { DayUsage, TenantRecord } from '../../protocol/stored-tenant.ts';
import { billOf } from '../../src/accounts/billing.ts';
import { type BillingPeriod, billingPeriodOf } from '../../src/accounts/billing-period.ts';
import type { Plan } from '../../src/accounts/plans.ts';
import { daysUntil, gbMonths, noUsage, type Period, sumUsage, usageOf } from '../../src/accounts/usage.ts';
import type { UsageState } from './tenant-usage.ts';

/** What a tenant is told of its usage. Pure. */
export interface UsageOfTenant {
  readonly tenant: TenantRecord;
  readonly plan: Plan;
  /** What is stored was counted until now. */
  readonly usage: UsageState;
  readonly storedBytes: number;
  readonly nowMs: number;
}

export function usageAnswer(of: UsageOfTenant, withDays: boolean): Usage {
  const { plan, usage, nowMs } = of;
  const period = billingPeriodOf(of.tenant, nowMs);
  const counters = usageOf(usage.days, period);
  return {
    period_start: period.start,
    month: period.month,
    ...shown({ ...counters, storedBytes: of.storedBytes }, period),
    plan,
    bill: billOf(plan, counters, period),
    ...(withDays ? { days: dayAnswers(of, period) } : {}),
  };
}

function dayAnswers({ plan, usage, nowMs }: UsageOfTenant, period: BillingPeriod) {
  let soFar = noUsage;
  return daysUntil(usage.days, period, nowMs).map(({ day, usage: ofDay }) => {
    soFar = sumUsage(soFar, ofDay);
    return { day, ...shown(ofDay, period), bill_so_far: billOf(plan, soFar, period).total };
  });
}

/** Makes the answer about a tenant's plan and bill. `configured`: whether this server has a payment provider. */
export function billingAnswer(of: UsageOfTenant, configured: boolean): Billing {
  const { billing } = of.tenant;
  const period = billingPeriodOf(of.tenant, of.nowMs);
  const { bill, period_start, month, plan, days, ...usage } = usageAnswer(of, false);
  return {
    tenant_id: of.tenant.id,
    plan: of.tenant.plan,
    configured,
    subscribed: billing?.status === 'active' || billing?.status === 'past_due',
    status: billing?.status ?? 'none',
    cancel_at_period_end: billing?.cancelAtPeriodEnd ?? false,
    period_start: period.start,
    period_end: period.end,
    usage,
    bill,
  };
}

function shown(usage: DayUsage, period: Period) {
  return {
    queries: usage.queries,
    writes: usage.writes,
    write_bytes: usage.writeBytes,
    docs_written: usage.docsWritten,
    store_gets: usage.storeGets,
    store_bytes: usage.storeBytes,
    out_bytes: usage.outBytes,
    mcp_queries: usage.mcpQueries,
    mcp_writes: usage.mcpWrites,
    embed_tokens: usage.embedTokens,
    stored_bytes: usage.storedBytes,
    // Sums of fractions have more digits than they mean.
    cpu_ms: Math.round(usage.cpuMs * 1_000) / 1_000,
    gb_months: Math.round(gbMonths(usage, period) * 1e9) / 1e9,
  };
}
