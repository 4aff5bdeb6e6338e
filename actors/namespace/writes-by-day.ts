/**
 * When the last writes of an open namespace came: its counters say how many there were, but not on which day, and usage
 * is by day. Kept in memory alone: the log's records are counted again, by their own time, when they are replayed.
 */
import type { DayWrites } from '../../protocol/stored-tenant.ts';

const daysMax = 3;

export function dayOfMicros(writtenAt: number): string {
  return new Date(Math.floor(writtenAt / 1_000)).toISOString().slice(0, 10);
}

/** Counts one more write request on its day. The first day takes over those that are dropped. */
export function withWrite(
  days: readonly DayWrites[],
  writtenAt: number,
  { docs, bytes }: { readonly docs: number; readonly bytes: number },
): readonly DayWrites[] {
  const day = dayOfMicros(writtenAt);
  const last = days.at(-1);
  // A clock that was set back does not open a day again.
  if (last !== undefined && last.day >= day) {
    const more = {
      day: last.day,
      writes: last.writes + 1,
      docs: last.docs + docs,
      bytes: last.bytes + bytes,
    };
    return [...days.slice(0, -1), more];
  }
  return [...days, { day, writes: 1, docs, bytes }].slice(-daysMax);
}
