/**
 * How a text is given to RE2 piece by piece, because nothing can interrupt RE2 once it runs. A piece is one of these:
 *
 * 1. All that is left of the text, where that is short enough.
 * 2. Some lines, of a pattern whose matches lie within one.
 * 3. A window, of a pattern whose matches have at most L bytes: matches that begin in its first W bytes end before its end,
 *    whatever follows. It has a character more on either side, so that `\b` and the borders of lines are what they are in
 *    the text; a match that begins at or after W is left to the next window, which sees more of it.
 */
import { linesEnd } from './line-pieces.ts';
import { firstLineFeed } from './text-pieces.ts';

export interface Piece {
  /** Its bytes in the text. */
  readonly start: number;
  readonly end: number;
  /** Only matches that begin from here on, and before `below`, are matches of the text. */
  readonly from: number;
  readonly below: number;
}

export interface PieceBounds {
  /** The bytes that a match has at most; infinite where nothing bounds it. */
  readonly bytesMax: number;
  readonly byLines: boolean;
}

/** Part of a text: what lies outside of it is not searched. It ends where the text or a line ends. */
export interface TextRange {
  readonly start: number;
  readonly end: number;
}

/** For the character after a window: its bytes, and those of one that the window's end would cut. */
const slackBytes = 8;

/** The next piece of at most `bytes` bytes, `range.start` being where matches may begin; null where none is so short. */
export function nextPiece(
  text: Buffer,
  range: TextRange,
  { bytesMax, byLines }: PieceBounds,
  bytes: number,
): Piece | null {
  const { start: from, end } = range;
  if (end - from <= bytes) return { start: characterBefore(text, from), end, from, below: end + 1 };
  if (byLines) {
    const to = linesEnd(text, range, bytes);
    if (to !== null) return { start: characterBefore(text, from), end: to, from, below: to };
  }
  const window = bytes - bytesMax - slackBytes;
  if (window < Math.max(bytesMax, 1)) return null;
  const below = from + Math.floor(window);
  const to = Math.min(end, below + bytesMax);
  return { start: characterBefore(text, from), end: characterAfter(text, to, end), from, below };
}

/** How many bytes the shortest piece of a range has in which a match can be told from none. */
export function leastPieceBytes(
  text: Buffer,
  { start, end }: TextRange,
  { bytesMax, byLines }: PieceBounds,
): number {
  const rest = end - start;
  const window = 2 * Math.max(bytesMax, 1) + slackBytes;
  const feed = byLines ? firstLineFeed(text, start, end) : -1;
  const line = feed >= 0 ? feed + 1 - start : rest;
  return Math.min(rest, window, line);
}

const isContinuation = (byte: number | undefined) => byte !== undefined && (byte & 0xc0) === 0x80;

/** The begin of the character that ends at `at`. */
function characterBefore(text: Uint8Array, at: number): number {
  let before = Math.max(at - 1, 0);
  while (before > 0 && at - before < 4 && isContinuation(text[before])) before--;
  return before;
}

/** The end of a character that begins at or after `at`. */
function characterAfter(text: Uint8Array, at: number, end: number): number {
  let after = at;
  while (after < end && isContinuation(text[after])) after++;
  if (after < end) after++;
  while (after < end && isContinuation(text[after])) after++;
  return after;
}
