/** The end of the piece of about `bytes` bytes that begins at `from`, not inside of a character. UTF-8 up to `end`. */
export function pieceEnd(text: Uint8Array, from: number, end: number, bytes: number): number {
  if (end - from <= bytes) return end;
  let to = from + bytes;
  while (to > from + bytes - 4 && ((text[to] as number) & 0xc0) === 0x80) to--;
  return to;
}
