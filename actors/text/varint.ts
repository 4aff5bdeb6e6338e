/**
 * Whole numbers below 2^32 as bytes: seven bits each, the lowest first, the high bit where more follow. Hot: the reader
 * leaves its end in `varintEnd`, since an object for each number would cost more than the number.
 */
export const varintBytesMax = 5;

/** Answers the end of what was written. */
export function writeVarint(target: Uint8Array, at: number, value: number): number {
  let to = at;
  let rest = value >>> 0;
  while (rest > 0x7f) {
    target[to++] = (rest & 0x7f) | 0x80;
    rest >>>= 7;
  }
  target[to++] = rest;
  return to;
}

/** Where the number that was read last ended; past the end of the bytes where they were cut short. */
export let varintEnd = 0;

export function readVarint(bytes: Uint8Array, at: number): number {
  let byte = bytes[at] ?? 0;
  if (byte < 0x80) {
    varintEnd = at + 1;
    return byte;
  }
  let value = byte & 0x7f;
  let from = at + 1;
  for (let shift = 7; shift < 35; shift += 7) {
    byte = bytes[from++] ?? 0;
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  varintEnd = from;
  return value >>> 0;
}
