const minus = 0x2d;
const zero = 0x30;
const nine = 0x39;

/** Digits of an int64 at most; one of so many may be larger. */
const digitsMax = 19;
const greatestDigits = '9223372036854775807';
const leastDigits = '9223372036854775808';

/** Whether a whole number stands there, as JSON writes it and within 64 bits. Hot. */
export function isInt64(bytes: Uint8Array, start: number, end: number): boolean {
  const first = bytes[start] === minus ? start + 1 : start;
  const digits = end - first;
  if (digits === 0 || digits > digitsMax) return false;
  if (bytes[first] === zero) return end - start === 1;
  for (let at = first; at < end; at++) if (!isDigit(bytes[at] as number)) return false;
  return digits < digitsMax || isAtMost(bytes, first, first > start ? leastDigits : greatestDigits);
}

export function isDigit(byte: number): boolean {
  return byte >= zero && byte <= nine;
}

function isAtMost(bytes: Uint8Array, start: number, digits: string): boolean {
  for (let at = 0; at < digits.length; at++) {
    const difference = (bytes[start + at] as number) - digits.charCodeAt(at);
    if (difference !== 0) return difference < 0;
  }
  return true;
}
