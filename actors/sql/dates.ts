/** `date` is days since 1970, `time` seconds since 1970, both UTC, years 0 to 9999. */
export const secondsOfDay = 86_400;

const datePattern = /^(\d{4})-(\d{2})-(\d{2})$/u;
const timePattern = /^(\d{4}-\d{2}-\d{2})[ T](\d{2}):(\d{2}):(\d{2})$/u;

/** Days of `YYYY-MM-DD`; null for any other text, and for days that no month has. */
export function parseDate(text: string): number | null {
  const match = datePattern.exec(text);
  if (match === null) return null;
  const [year, month, day] = match.slice(1).map(Number) as [number, number, number];
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  const isDay = date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
  return isDay ? date.getTime() / 1_000 / secondsOfDay : null;
}

/** Seconds of `YYYY-MM-DD HH:MM:SS`, or of a date's begin; null for any other text. */
export function parseTime(text: string): number | null {
  const match = timePattern.exec(text);
  const days = parseDate(match?.[1] ?? text);
  if (days === null) return null;
  const [hour = 0, minute = 0, second = 0] = match?.slice(2).map(Number) ?? [];
  if (hour > 23 || minute > 59 || second > 59) return null;
  return days * secondsOfDay + hour * 3_600 + minute * 60 + second;
}

/** Null out of the years. */
export function formatDate(days: number): string | null {
  return isoOf(days * secondsOfDay)?.slice(0, 10) ?? null;
}

/** Null out of the years. */
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

export function truncateTime(unit: TimeUnit, seconds: number): number {
  const step = secondsOfUnit[unit];
  return Math.floor(seconds / step) * step;
}

export function minuteOf(seconds: number): number {
  return Math.floor(seconds / 60) - Math.floor(seconds / 3_600) * 60;
}
