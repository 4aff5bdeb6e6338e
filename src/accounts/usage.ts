/**
 * What is metered: counters of a tenant by UTC day, and their sums over a period of whole UTC days. Which period a tenant has is
 * billing-period.ts. All pure; times are milliseconds since 1970.
 */
import type { DayUsage, UsageCounters, UsageNote } from '../../protocol/stored-tenant.ts';

export type CounterName = keyof UsageCounters;

/** Days in their order, `YYYY-MM-DD` → counters; days without any are left out. */
export type UsageDays = Map<string, DayUsage>;

export interface Period {
  /** Its first day, and the first day after it. */
  readonly start: string;
  readonly end: string;
  readonly month: string;
  readonly startMs: number;
  readonly endMs: number;
  /** Hours of its whole month, also where it began within one: a gigabyte that is stored for as long is a GB-month. */
  readonly hours: number;
}

export const noUsage: UsageCounters = {
  queries: 0,
  writes: 0,
  writeBytes: 0,
  docsWritten: 0,
  storeGets: 0,
  storeBytes: 0,
  outBytes: 0,
  mcpQueries: 0,
  mcpWrites: 0,
  embedTokens: 0,
  hostedTokens: 0,
  cpuMs: 0,
  gbHours: 0,
};

const counterNames = Object.keys(noUsage) as readonly CounterName[];
export const hourMs = 3_600_000;
export const dayMs = 24 * hourMs;
const gigabyte = 1e9;

export function dayOf(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 10);
}

/** The period between two midnights. */
export function periodBetween(startMs: number, endMs: number, hours = (endMs - startMs) / hourMs): Period {
  const start = dayOf(startMs);
  return { start, end: dayOf(endMs), month: start.slice(0, 7), startMs, endMs, hours };
}

/** The calendar month, in UTC. */
export function periodOf(atMs: number): Period {
  const at = new Date(atMs);
  const startMs = Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), 1);
  return periodBetween(startMs, Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + 1, 1));
}

export function sumUsage(a: UsageCounters, b: UsageNote['counters']): UsageCounters {
  const sum: Record<CounterName, number> = { ...noUsage };
  for (const name of counterNames) sum[name] = a[name] + (b[name] ?? 0);
  return sum;
}

/** Adds to a day, which keeps what is stored at its end. */
export function addToDay(days: UsageDays, day: string, more: UsageNote['counters']): void {
  const known = days.get(day);
  days.set(day, { ...sumUsage(known ?? noUsage, more), storedBytes: known?.storedBytes ?? 0 });
}

/** `bytes` were stored from one moment to another: so much is added to each day between. */
export function addStored(days: UsageDays, fromMs: number, toMs: number, bytes: number): void {
  for (let at = fromMs; at < toMs; ) {
    const end = Math.min(toMs, (Math.floor(at / dayMs) + 1) * dayMs);
    const day = dayOf(at);
    // A tenant that stores nothing has no days of nothing.
    if (bytes > 0 || days.has(day)) {
      addToDay(days, day, { gbHours: ((bytes / gigabyte) * (end - at)) / hourMs });
      days.set(day, { ...(days.get(day) as DayUsage), storedBytes: bytes });
    }
    at = end;
  }
}

export function usageOf(days: UsageDays, { start, end }: Period): UsageCounters {
  let sum = noUsage;
  for (const [day, counters] of days) if (day >= start && day < end) sum = sumUsage(sum, counters);
  return sum;
}

/** Gigabytes that would have taken as much, stored for the whole month. */
export function gbMonths({ gbHours }: Pick<UsageCounters, 'gbHours'>, { hours }: Period): number {
  return gbHours / hours;
}

/** The days of the period until today, those without usage too: what is stored stays from one to the next. */
export function daysUntil(
  days: UsageDays,
  { start, startMs }: Period,
  nowMs: number,
): { readonly day: string; readonly usage: DayUsage }[] {
  const shown: { readonly day: string; readonly usage: DayUsage }[] = [];
  let storedBytes = 0;
  for (const [day, usage] of [...days].sort(([a], [b]) => (a < b ? -1 : 1)))
    if (day < start) storedBytes = usage.storedBytes;
  for (let at = startMs; at <= nowMs; at += dayMs) {
    const day = dayOf(at);
    const usage = days.get(day) ?? { ...noUsage, storedBytes };
    storedBytes = usage.storedBytes;
    shown.push({ day, usage });
  }
  return shown;
}
