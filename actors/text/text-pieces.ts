import { lineFeed } from './code-point-ranges.ts';

/** The end of the piece of about `bytes` bytes that begins at `from`, not inside of a character. UTF-8 up to `end`. */
export function pieceEnd(text: Uint8Array, from: number, end: number, bytes: number): number {
  if (end - from <= bytes) return end;
  let to = from + bytes;
  while (to > from + bytes - 4 && ((text[to] as number) & 0xc0) === 0x80) to--;
  return to;
}

/** Where the first line feed is among the bytes from `start` to before `end`; -1 where there is none. No other byte of the buffer is looked at. */
export function firstLineFeed(text: Uint8Array, start: number, end: number): number {
  const at = text.subarray(start, end).indexOf(lineFeed);
  return at < 0 ? at : start + at;
}

/** Where the last line feed is among the bytes from `start` to before `end`; -1 where there is none. No other byte of the buffer is looked at. */
export function lastLineFeed(text: Uint8Array, start: number, end: number): number {
  const at = text.subarray(start, end).lastIndexOf(lineFeed);
  return at < 0 ? at : start + at;
}
