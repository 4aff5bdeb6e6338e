/**
 * Dates and times as imported columns hold them: `YYYY-MM-DD` as days and `YYYY-MM-DD HH:MM:SS` as seconds since 1970, both UTC.
 * Only these two forms, each with days that there are: a number is as good as its text then, and sorts as it does.
 */
export const dateBytes = 10;
export const timeBytes = 19;

/** No date or time is so small. */
export const noTemporal = Number.NEGATIVE_INFINITY;

const daysOfMonths = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/** Days of the text from `start` to before `end`; `noTemporal` for any other. */
export function dateOf(bytes: Uint8Array, start: number, end: number): number {
  return end - start === dateBytes ? dateAt(bytes, start) : noTemporal;
}

/** Seconds of the text from `start` to before `end`; `noTemporal` for any other. */
export function timeOf(bytes: Uint8Array, start: number, end: number): number {
  if (end - start !== timeBytes) return noTemporal;
  const days = dateAt(bytes, start);
  const hour = twoDigits(bytes, start + 11);
  const minute = twoDigits(bytes, start + 14);
  const second = twoDigits(bytes, start + 17);
  const isTime =
    bytes[start + 10] === 0x20 &&
    bytes[start + 13] === 0x3a &&
    bytes[start + 16] === 0x3a &&
    hour >= 0 &&
    hour < 24 &&
    minute >= 0 &&
    minute < 60 &&
    second >= 0 &&
    second < 60;
  return isTime ? days * 86_400 + hour * 3_600 + minute * 60 + second : noTemporal;
}

function dateAt(bytes: Uint8Array, at: number): number {
  const century = twoDigits(bytes, at);
  const yearOfCentury = twoDigits(bytes, at + 2);
  const month = twoDigits(bytes, at + 5);
  const day = twoDigits(bytes, at + 8);
  if (bytes[at + 4] !== 0x2d || bytes[at + 7] !== 0x2d || (century | yearOfCentury | month | day) < 0)
    return noTemporal;
  const year = century * 100 + yearOfCentury;
  if (month < 1 || month > 12 || day < 1 || day > (daysOfMonths[month - 1] as number)) return noTemporal;
  if (month === 2 && day === 29 && (year % 4 !== 0 || (year % 100 === 0 && year % 400 !== 0)))
    return noTemporal;
  return daysOf(year, month, day);
}

/** Days since 1970 of a date of the Gregorian calendar, which is taken to have been always. */
function daysOf(year: number, month: number, day: number): number {
  // A year begins with March, so that the day which is not always there is its last.
  const shifted = month <= 2 ? year - 1 : year;
  const era = Math.floor(shifted / 400);
  const yearOfEra = shifted - era * 400;
  const dayOfYear = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1;
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear;
  return era * 146_097 + dayOfEra - 719_468;
}

/** Negative where they are no digits. */
function twoDigits(bytes: Uint8Array, at: number): number {
  const tens = (bytes[at] as number) - 0x30;
  const ones = (bytes[at + 1] as number) - 0x30;
  return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? tens * 10 + ones : -1;
}
