/**
 * What meters are to be told, decided before anything is sent. Pure.
 *
 * 1. Usage is known by UTC day, and periods are whole UTC days. What has been used in a period until now, in whole units, less what
 *    was planned of it before, is what the last hour that has ended is told of. So a period's events add up to its units exactly,
 *    whatever fell into which hour, and none is rounded away: a part of a unit waits until it is whole.
 * 2. Where several hours were missed, each day of them has one: its last hour, or the last that has ended.
 * 3. An hour is settled some minutes after its end, when every front and namespace has told what it counted; the last one of a period
 *    later, since nothing can be added to it in the next. The provider's invoice is a draft for an hour by default, and takes it.
 */
import { limits } from '../../protocol/limits.ts';
import type { MeteredUsage } from '../../protocol/messages.ts';
import { type MeteredPart, meteredParts, type Units, unitsOf } from '../accounts/billing.ts';
import { midnightBefore, midnightFrom, subscribedPeriod } from '../accounts/billing-period.ts';
import { dayMs, hourMs, type UsageDays, usageOf } from '../accounts/usage.ts';
import type { KnownSubscription, MeteredHour, Told } from './billing-record.ts';

export interface Planning {
  readonly told: Told | null;
  readonly subscription: Pick<KnownSubscription, 'anchorAt' | 'endedAt'>;
  readonly metered: MeteredUsage;
  /** The tenant is about to end: what was used of the running hour is told too. */
  readonly isLast: boolean;
}

const nothing: Units = { storage: 0, writes: 0, queries: 0, embedding: 0, reads: 0 };

/** Answers `told` as it was where there is nothing more to tell. */
export function planMetered({ told, subscription, metered, isLast }: Planning): Told | null {
  const anchorAt = midnightFrom(subscription.anchorAt);
  const endsAt = subscription.endedAt === null ? Number.POSITIVE_INFINITY : subscription.endedAt;
  // What of the running hour is used after its event falls into the next one.
  const hourEnd = Math.ceil(metered.untilMs / hourMs) * hourMs;
  const settled = isLast ? hourEnd : settledUntil(metered.untilMs, anchorAt);
  const until = Math.min(settled, endsAt);
  // Another subscription than before begins with nothing.
  let next: Told = told !== null && told.until >= anchorAt ? told : startAt(anchorAt, told);
  if (until <= next.until) return told;
  const days: UsageDays = new Map(metered.days.map(([day, usage]) => [day, { ...usage, storedBytes: 0 }]));
  for (let from = next.until; from < until; from = next.until) {
    const to = Math.min(midnightBefore(from) + dayMs, until);
    next = withStretch(next, { to, anchorAt, days, nowMs: metered.untilMs });
  }
  return next;
}

/** The end of the last hour that has settled. */
function settledUntil(nowMs: number, anchorAt: number): number {
  const hour = Math.floor((nowMs - limits.meteredSettleMs) / hourMs) * hourMs;
  const isEndOfPeriod = hour > anchorAt && subscribedPeriod(anchorAt, hour).startMs === hour;
  return isEndOfPeriod && nowMs < hour + limits.meteredSettlePeriodMs ? hour - hourMs : hour;
}

function startAt(anchorAt: number, told: Told | null): Told {
  return { periodAt: anchorAt, planned: nothing, until: anchorAt, hours: told?.hours ?? [] };
}

/** Plans what was used until a moment, of the day that it ends. */
function withStretch(
  told: Told,
  stretch: {
    readonly to: number;
    readonly anchorAt: number;
    readonly days: UsageDays;
    readonly nowMs: number;
  },
): Told {
  const { to, anchorAt, days, nowMs } = stretch;
  const period = subscribedPeriod(anchorAt, to - 1);
  const before = told.periodAt === period.startMs ? told.planned : nothing;
  const end = new Date(midnightFrom(to)).toISOString().slice(0, 10);
  const used = unitsOf(usageOf(days, { ...period, end: end < period.end ? end : period.end }), period);
  const planned = { ...before };
  const units: Partial<Record<MeteredPart, number>> = {};
  for (const part of meteredParts) {
    if (used[part] <= before[part]) continue;
    units[part] = used[part] - before[part];
    planned[part] = used[part];
  }
  const hour: MeteredHour = {
    hourAt: Math.floor((to - 1) / hourMs) * hourMs,
    eventsAt: Math.floor(Math.min(to - 1, nowMs) / 1_000) * 1_000,
    units,
    firstSentAt: null,
  };
  const hours = Object.keys(units).length === 0 ? told.hours : [...told.hours, hour];
  return { periodAt: period.startMs, planned, until: to, hours };
}
