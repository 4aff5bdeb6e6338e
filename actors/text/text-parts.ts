/**
 * Large texts are indexed twice: as a whole, and in parts. A text of megabytes has the trigrams of nearly every word
 * somewhere, so that each search would read it in vain; a part of it has them no more often than another document.
 *
 * 1. A part ends where a line ends. A match within one line lies in the part that the line is in.
 * 2. Each part goes on a little into the next one: a match that is no longer than that lies in one of them, whole.
 * 3. Where a line is so long that a part ends inside of it, only short matches are looked up by parts.
 * 4. Patterns whose matches may be longer are looked up by the whole.
 */
import { lastLineFeed, pieceEnd } from './text-pieces.ts';
import type { MatchLength } from './trigram-query.ts';

export const partBytes = 32 * 1024;
/** From here on there are parts. Below it, they would cost more index than reading costs time. */
export const partedBytesMin = 2 * partBytes;
/** How far a part goes on at least, and so how long a match may be. */
export const partOverlapBytes = 1024;
/** A part ends before a line that it holds less than this of, where it can. */
const lastLineBytesMax = partBytes / 4;
/** The last byte of a match begins a trigram of two more characters, and a bound may go back inside of one. */
const slackBytes = 12;

export interface TextParts {
  /** Start and end of each part in turn, none of them inside of a character. */
  readonly bounds: readonly number[];
  /** Whether no part ends inside of a line, but for what goes on into the next. */
  readonly linesAreWhole: boolean;
}

/** Cuts the UTF-8 from `start` to `end` into parts. */
export function partsOf(text: Uint8Array, start: number, end: number): TextParts {
  const bounds: number[] = [];
  let linesAreWhole = true;
  for (let from = start; from < end; ) {
    let next = pieceEnd(text, from, end, partBytes);
    if (next < end) {
      // A line feed further back does not count, so it is not looked for.
      const feed = lastLineFeed(text, Math.max(from, next - lastLineBytesMax), next);
      if (feed < 0) linesAreWhole = false;
      else next = feed + 1;
    }
    const to = pieceEnd(text, next, end, partOverlapBytes + slackBytes);
    bounds.push(from, to);
    // What is left lies in this part.
    from = to === end ? end : next;
  }
  return { bounds, linesAreWhole };
}

/** Whether every match of a pattern whose matches are that long lies in one part of such a text. */
export function liesInPart(matchLength: MatchLength, linesAreWhole: boolean): boolean {
  return matchLength === 'short' || (matchLength === 'line' && linesAreWhole);
}
