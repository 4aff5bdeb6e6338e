/** Numbers and times as people read them. Pure, and the same for everybody: the interface speaks English. */
const whole = new Intl.NumberFormat('en');
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });
const precise = new Intl.NumberFormat('en', { maximumFractionDigits: 3 });
const money = new Intl.NumberFormat('en', { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const dateTime = new Intl.DateTimeFormat('en-GB', {
  dateStyle: 'medium',
  timeStyle: 'short',
  timeZone: 'UTC',
});
const dayOnly = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' });

export const formatNumber = (value: number): string => whole.format(value);
export const formatShort = (value: number): string => short.format(value);
export const formatPrecise = (value: number): string => precise.format(value);
export const formatMoney = (value: number): string => money.format(value);
/** `2026-11-22T08:00:00Z` → `22 Nov 2026, 08:00 UTC`. */
export const formatTime = (timestamp: string): string => `${dateTime.format(new Date(timestamp))} UTC`;
/** `2026-11-22` → `22 Nov`. */
export const formatDay = (day: string): string => dayOnly.format(new Date(`${day}T00:00:00Z`));

const units = ['bytes', 'kB', 'MB', 'GB', 'TB'] as const;

/** Decimal units, as the plans count. */
export function formatBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1_000;
    unit += 1;
  }
  const digits = unit === 0 || value >= 99.5 ? 0 : 1;
  return `${value.toFixed(digits).replace(/\.0$/, '')} ${bytes === 1 ? 'byte' : units[unit]}`;
}

export function plural(count: number, noun: string): string {
  return `${formatNumber(count)} ${count === 1 ? noun : `${noun}s`}`;
}
