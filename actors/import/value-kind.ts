import { isDigit, isInt64 } from '../columns/int64.ts';
import { dateOf, noTemporal, timeOf } from '../columns/temporal.ts';

/**
 * What the values of a CSV column are. Without a table definition that is inferred from all of them: a column is as narrow as its
 * values allow, and texts that a number would not give back, such as `007`, stay texts.
 */
export const columnKinds = ['int', 'float', 'bool', 'date', 'time', 'text'] as const;
export type ColumnKind = (typeof columnKinds)[number];

const minus = 0x2d;
const zero = 0x30;
const nine = 0x39;

/** A longer number may be no double, and is hardly one. */
const floatBytesMax = 300;
/** The narrowest kind of a value that is not empty. Hot. */
export function kindOf(bytes: Buffer, start: number, end: number): ColumnKind {
  const first = bytes[start] as number;
  if (first === minus || (first >= zero && first <= nine)) {
    if (isInt64(bytes, start, end)) return 'int';
    if (dateOf(bytes, start, end) !== noTemporal) return 'date';
    if (timeOf(bytes, start, end) !== noTemporal) return 'time';
    return isFloat(bytes, start, end) ? 'float' : 'text';
  }
  return boolOf(bytes, start, end) === null ? 'text' : 'bool';
}

/** The narrowest kind that holds both. */
export function widerKind(a: ColumnKind, b: ColumnKind): ColumnKind {
  if (a === b) return a;
  const areNumbers = (a === 'int' || a === 'float') && (b === 'int' || b === 'float');
  return areNumbers ? 'float' : 'text';
}

/**
 * Whether bytes are a number as JSON writes it, with a fraction or without; a whole one within 64 bits, for a double would lose
 * digits of others.
 */
export function isFloat(bytes: Buffer, start: number, end: number): boolean {
  let at = start;
  if (bytes[at] === minus) at++;
  const first = at;
  at = digitsEnd(bytes, at, end);
  if (at === first || (bytes[first] === zero && at > first + 1)) return false;
  if (at === end) return isInt64(bytes, start, end);
  if (bytes[at] === 0x2e) {
    const fraction = at + 1;
    at = digitsEnd(bytes, fraction, end);
    if (at === fraction) return false;
  }
  if (at < end && ((bytes[at] as number) | 0x20) === 0x65) {
    at++;
    if (bytes[at] === 0x2b || bytes[at] === minus) at++;
    const exponent = at;
    at = digitsEnd(bytes, exponent, end);
    if (at === exponent || !Number.isFinite(Number(bytes.toString('latin1', start, end)))) return false;
  }
  return at === end && end - start <= floatBytesMax;
}

function digitsEnd(bytes: Buffer, from: number, end: number): number {
  let at = from;
  while (at < end && isDigit(bytes[at] as number)) at++;
  return at;
}

const trueBytes = Buffer.from('true');
const falseBytes = Buffer.from('false');

/** `true` or `false`, in any case; null for anything else. */
export function boolOf(bytes: Buffer, start: number, end: number): boolean | null {
  const length = end - start;
  if (length !== 4 && length !== 5) return null;
  const word = length === 4 ? trueBytes : falseBytes;
  for (let at = 0; at < length; at++) if (((bytes[start + at] as number) | 0x20) !== word[at]) return null;
  return length === 4;
}
