import type { BillingStanding, TenantRecord } from '../../protocol/stored-tenant.ts';
import { dayMs, hourMs, type Period, periodBetween, periodOf } from './usage.ts';

/**
 * The period that a tenant's usage, allowances and bill are of. Always whole UTC days, so that usage by day, our bill and the
 * payment provider's invoice are of the same time:
 *
 * - with the free plan it is the calendar month; what was used before a subscription ended does not count;
 * - with a subscription it is a month from its anchor, which is a midnight, as the provider counts months: of an anchor on the
 *   31st they begin on the last day where a month has no such day;
 * - from a checkout until the anchor it is what is left until then, and nothing is billed.
 *
 * Pure; times are milliseconds since 1970.
 */
export interface BillingPeriod extends Period {
  /** Whether it costs anything. */
  readonly billed: boolean;
}

export function billingPeriodOf(
  { plan, billing }: Pick<TenantRecord, 'plan'> & { readonly billing?: BillingStanding | undefined },
  nowMs: number,
): BillingPeriod {
  if (plan === 'pro' && billing !== undefined && billing.anchorAt !== null)
    return subscribedPeriod(billing.anchorAt, nowMs);
  const month = periodOf(nowMs);
  const free = Math.max(month.startMs, midnightFrom(billing?.endedAt ?? 0));
  // In the hours between an end within a day and the midnight after it the period is that day.
  const startMs = Math.min(free, midnightBefore(nowMs));
  return { ...periodBetween(startMs, month.endMs, month.hours), billed: true };
}

/** The period of a subscription that a moment is in. */
export function subscribedPeriod(anchorMs: number, nowMs: number): BillingPeriod {
  if (nowMs < anchorMs) return { ...periodBetween(midnightBefore(nowMs), anchorMs), billed: false };
  let count = monthsBetween(anchorMs, nowMs);
  if (monthsAfter(anchorMs, count) > nowMs) count--;
  const [startMs, endMs] = [monthsAfter(anchorMs, count), monthsAfter(anchorMs, count + 1)];
  return { ...periodBetween(startMs, endMs, (endMs - startMs) / hourMs), billed: true };
}

/** The same day so many months later; the last day of a month that has no such day. */
export function monthsAfter(atMs: number, count: number): number {
  const at = new Date(atMs);
  const [year, month] = [at.getUTCFullYear(), at.getUTCMonth() + count];
  const lastDay = new Date(Date.UTC(year, month + 1, 0)).getUTCDate();
  return Date.UTC(year, month, Math.min(at.getUTCDate(), lastDay));
}

/** How many months the calendar has gone on. */
function monthsBetween(fromMs: number, toMs: number): number {
  const [from, to] = [new Date(fromMs), new Date(toMs)];
  return (to.getUTCFullYear() - from.getUTCFullYear()) * 12 + to.getUTCMonth() - from.getUTCMonth();
}

/** The midnight, UTC, at or before a moment. */
export function midnightBefore(atMs: number): number {
  return Math.floor(atMs / dayMs) * dayMs;
}

/** The midnight, UTC, at or after a moment. */
export function midnightFrom(atMs: number): number {
  return Math.ceil(atMs / dayMs) * dayMs;
}
