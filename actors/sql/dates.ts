/** Seconds of a day. A `date` counts days since 1970, a `time` seconds since 1970, both in UTC; years go from 0 to 9999. */
export const secondsOfDay = 86_400;

const datePattern = /^(\d{4})-(\d{2})-(\d{2})$/u;
const timePattern = /^(\d{4}-\d{2}-\d{2})[ T](\d{2}):(\d{2}):(\d{2})$/u;

/** Reads `YYYY-MM-DD` as days; answers null for any other text, and for days that no month has. */
export function parseDate(text: string): number | null {
  const match = datePattern.exec(text);
  if (match === null) return null;
  const [year, month, day] = match.slice(1).map(Number) as [number, number, number];
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  const isDay = date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
  return isDay ? date.getTime() / 1_000 / secondsOfDay : null;
}

/** Reads `YYYY-MM-DD HH:MM:SS` as seconds, or a date as the seconds of its begin; answers null for any other text. */
export function parseTime(text: string): number | null {
  const match = timePattern.exec(text);
  const days = parseDate(match?.[1] ?? text);
  if (days === null) return null;
  const [hour = 0, minute = 0, second = 0] = match?.slice(2).map(Number) ?? [];
  if (hour > 23 || minute > 59 || second > 59) return null;
  return days * secondsOfDay + hour * 3_600 + minute * 60 + second;
}

/** Writes days as `YYYY-MM-DD`; answers null outside of the years 0 to 9999. */
export function formatDate(days: number): string | null {
  return isoOf(days * secondsOfDay)?.slice(0, 10) ?? null;
}

/** Writes seconds as `YYYY-MM-DD HH:MM:SS`; answers null outside of the years 0 to 9999. */
export function formatTime(seconds: number): string | null {
  return isoOf(seconds)?.replace('T', ' ').slice(0, 19) ?? null;
}

function isoOf(seconds: number): string | null {
  const date = new Date(Math.floor(seconds) * 1_000);
  const year = date.getUTCFullYear();
  return year >= 0 && year <= 9_999 ? date.toISOString() : null;
}

export type TimeUnit = 'minute' | 'hour' | 'day';

const secondsOfUnit: Readonly<Record<TimeUnit, number>> = { minute: 60, hour: 3_600, day: secondsOfDay };

/** Answers the begin of the unit that a moment lies in, in seconds. */
export function truncateTime(unit: TimeUnit, seconds: number): number {
  const step = secondsOfUnit[unit];
  return Math.floor(seconds / step) * step;
}

/** Answers the minute of the hour, 0 to 59, of a moment in seconds. */
export function minuteOf(seconds: number): number {
  return Math.floor(seconds / 60) - Math.floor(seconds / 3_600) * 60;
}
