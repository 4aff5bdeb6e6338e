import { limits } from '../../protocol/limits.ts';
import type { Used } from '../../protocol/messages.ts';
import type {
  DayWrites,
  KeyUse,
  NameEntry,
  NamespaceReport,
  TenantManifestWire,
  UsageNote,
} from '../../protocol/stored-tenant.ts';
import {
  addStored,
  addToDay,
  dayOf,
  gbMonths,
  type Period,
  type UsageDays,
  usageOf,
} from '../../src/accounts/usage.ts';

/**
 * The usage of one tenant: part of its state, so in its manifest. All pure but for what changes the given state.
 *
 * Queries come as events of the log, each once. Writes are not logged a second time: a namespace reports what it has
 * taken since it was made, and what is more than the tenant knew is added. What is known and what was added lie in one
 * manifest, so after a crash both are as old, and the namespace, whose records are replayed, reports the rest again.
 */
export interface UsageState {
  readonly days: UsageDays;
  /** By key. */
  readonly keys: Map<number, KeyUse>;
  /** Up to when what is stored was counted, in milliseconds since 1970; 0 before anything was. */
  storedUntil: number;
  /** Namespaces that were made on a UTC day, the last on which any were. */
  creations: { readonly day: string; readonly count: number };
}

export function emptyUsage(): UsageState {
  return { days: new Map(), keys: new Map(), storedUntil: 0, creations: { day: '', count: 0 } };
}

export function copyOfUsage(usage: UsageState): UsageState {
  return { ...usage, days: new Map(usage.days), keys: new Map(usage.keys) };
}

type UsageStateWire = TenantManifestWire['state']['usage'];

export function usageToWire(usage: UsageState): UsageStateWire {
  return { ...usage, days: [...usage.days], keys: [...usage.keys] };
}

export function usageFromWire(wire: UsageStateWire): UsageState {
  return { ...wire, days: new Map(wire.days), keys: new Map(wire.keys) };
}

/** What fronts have counted. */
export function applyNote(usage: UsageState, { day, counters, keys }: UsageNote): void {
  addToDay(usage.days, day, counters);
  forgetOldDays(usage.days);
  const month = day.slice(0, 7);
  for (const { keyId, queries, writes, lastUsedAt } of keys) {
    const known = usage.keys.get(keyId);
    const isSameMonth = known !== undefined && known.month >= month;
    usage.keys.set(keyId, {
      month: isSameMonth ? known.month : month,
      queries: (isSameMonth ? known.queries : 0) + queries,
      writes: (isSameMonth ? known.writes : 0) + writes,
      lastUsedAt: Math.max(known?.lastUsedAt ?? 0, lastUsedAt),
    });
  }
}

export function noteCreation(usage: UsageState, createdAt: string): void {
  const day = createdAt.slice(0, 10);
  const { creations } = usage;
  usage.creations = { day, count: creations.day === day ? creations.count + 1 : 1 };
}

export function createdOn(usage: UsageState, day: string): number {
  return usage.creations.day === day ? usage.creations.count : 0;
}

/** What is stored has been `bytes` since it was counted last. */
export function countStored(usage: UsageState, nowMs: number, bytes: number): void {
  if (usage.storedUntil > 0) {
    // Days that would be forgotten at once are not counted: a tenant may have slept for years.
    const from = Math.max(usage.storedUntil, nowMs - limits.usageDaysMax * 86_400_000);
    addStored(usage.days, from, nowMs, bytes);
    forgetOldDays(usage.days);
  }
  usage.storedUntil = Math.max(usage.storedUntil, nowMs);
}

type Taken = Pick<NameEntry, 'writes' | 'docsWritten' | 'bytesWritten'>;

/** What a namespace has taken that the tenant did not know. */
export function meterWrites(usage: UsageState, known: Taken, report: NamespaceReport): void {
  let writes = report.writes - known.writes;
  let docs = report.docsWritten - known.docsWritten;
  let bytes = report.bytesWritten - known.bytesWritten;
  // Known is a beginning of what was written, so what is new is its end: the newest day gets its share first.
  for (let at = report.days.length - 1; at >= 0 && (writes > 0 || docs > 0 || bytes > 0); at--) {
    const of = report.days[at] as DayWrites;
    const isFirst = at === 0;
    const share = {
      writes: isFirst ? writes : Math.min(writes, of.writes),
      docsWritten: isFirst ? docs : Math.min(docs, of.docs),
      writeBytes: isFirst ? bytes : Math.min(bytes, of.bytes),
    };
    addToDay(usage.days, of.day, share);
    writes -= share.writes;
    docs -= share.docsWritten;
    bytes -= share.writeBytes;
  }
  forgetOldDays(usage.days);
}

/** Meters what a deleted namespace had taken by then, also where the report of it was lost. */
export function meterTaken(
  usage: UsageState,
  known: Taken,
  { taken, day }: { readonly taken: Taken; readonly day: string },
): void {
  const writes = taken.writes - known.writes;
  if (writes <= 0) return;
  addToDay(usage.days, day, {
    writes,
    docsWritten: taken.docsWritten - known.docsWritten,
    writeBytes: taken.bytesWritten - known.bytesWritten,
  });
}

export function usedIn(usage: UsageState, period: Period): Used {
  const counters = usageOf(usage.days, period);
  return { ...counters, gbMonths: gbMonths(counters, period) };
}

/** Answers what a key has used in the running calendar month. */
export function keyUse(
  usage: UsageState,
  keyId: number,
  nowMs: number,
): Pick<KeyUse, 'queries' | 'writes' | 'lastUsedAt'> {
  const known = usage.keys.get(keyId);
  if (known === undefined) return { queries: 0, writes: 0, lastUsedAt: 0 };
  return known.month === dayOf(nowMs).slice(0, 7) ? known : { ...known, queries: 0, writes: 0 };
}

function forgetOldDays(days: UsageDays): void {
  while (days.size > limits.usageDaysMax) {
    let oldest: string | null = null;
    for (const day of days.keys()) if (oldest === null || day < oldest) oldest = day;
    if (oldest === null) return;
    days.delete(oldest);
  }
}
