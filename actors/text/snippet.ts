import { limits } from '../../protocol/limits.ts';

/**
 * What a hit shows of a document's text (UTF-8 bytes): the match, and the line around it trimmed to a size. A hit
 * answers with places, never with whole texts.
 */
export interface Snippet {
  readonly match: string;
  readonly line: string;
  /** 1-based. */
  readonly lineNumber: number;
  /** Byte offsets of the match in the text. */
  readonly start: number;
  readonly end: number;
}

const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const ellipsis = '…';

export function matchPlace(
  text: Buffer,
  match: { readonly start: number; readonly end: number },
): MatchPlace {
  return { start: match.start, end: match.end, lineNumber: countLines(text, match.start) + 1 };
}

export function snippetOf(text: Buffer, match: MatchPlace): Snippet {
  const { start, end, lineNumber } = match;
  return {
    match: text.toString('utf8', start, cutBack(text, start, Math.min(end, start + limits.matchBytesMax))),
    line: lineAround(text, start, end),
    lineNumber,
    start,
    end,
  };
}

export interface MatchPlace {
  /** Byte offsets in the text. */
  readonly start: number;
  readonly end: number;
  /** 1-based, of the line in which it begins. */
  readonly lineNumber: number;
}

/** Makes places of matches that come in order, so that no line is counted twice. */
export class PlaceCounter {
  readonly #text: Buffer;
  #lineNumber = 1;
  #counted = 0;

  constructor(text: Buffer) {
    this.#text = text;
  }

  placeOf({ start, end }: { readonly start: number; readonly end: number }): MatchPlace {
    for (; this.#counted < start; this.#counted++)
      if (this.#text[this.#counted] === lineFeed) this.#lineNumber++;
    return { start, end, lineNumber: this.#lineNumber };
  }
}

/** Where the next match may begin: after an empty one, at the next character. */
export function afterMatch(
  text: Buffer,
  { start, end }: { readonly start: number; readonly end: number },
): number {
  return end > start ? end : cutForward(text, end + 1, text.length);
}

/** Where nothing was searched for: the first line that is not blank. */
export function firstLineOf(text: Buffer | null): Snippet {
  const none = { match: '', start: 0, end: 0 };
  if (text === null) return { ...none, line: '', lineNumber: 1 };
  let at = 0;
  while (at < text.length && isBlank(text[at])) at++;
  if (at === text.length) return { ...none, line: '', lineNumber: 1 };
  const lineStart = text.lastIndexOf(lineFeed, at) + 1;
  return { ...none, line: lineAround(text, lineStart, lineStart), lineNumber: countLines(text, at) + 1 };
}

function isBlank(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x09 || byte === lineFeed || byte === carriageReturn;
}

function countLines(text: Buffer, before: number): number {
  let lines = 0;
  for (let at = text.indexOf(lineFeed); at >= 0 && at < before; at = text.indexOf(lineFeed, at + 1)) lines++;
  return lines;
}

/** The line in which the match begins, or the part of it around the match. */
function lineAround(text: Buffer, start: number, end: number): string {
  const lineStart = start === 0 ? 0 : text.lastIndexOf(lineFeed, start - 1) + 1;
  const feed = text.indexOf(lineFeed, start);
  let lineEnd = feed < 0 ? text.length : feed;
  if (lineEnd > lineStart && text[lineEnd - 1] === carriageReturn) lineEnd--;
  if (lineEnd - lineStart <= limits.lineBytesMax) return text.toString('utf8', lineStart, lineEnd);
  return trimmedLine(text, { start, end: Math.min(end, lineEnd) }, { start: lineStart, end: lineEnd });
}

interface Range {
  readonly start: number;
  readonly end: number;
}

/** Equal room on both sides of the match, what one side does not need going to the other. */
function trimmedLine(text: Buffer, match: Range, line: Range): string {
  const room = Math.max(limits.lineBytesMax - (match.end - match.start), 0);
  const after = Math.min(
    line.end - match.end,
    Math.max(Math.ceil(room / 2), room - (match.start - line.start)),
  );
  const before = Math.min(match.start - line.start, room - after);
  const from = cutForward(text, match.start - before, line.end);
  const to = cutBack(text, from, Math.min(match.end + after, from + limits.lineBytesMax));
  return `${from > line.start ? ellipsis : ''}${text.toString('utf8', from, to)}${to < line.end ? ellipsis : ''}`;
}

const isContinuation = (byte: number | undefined) => byte !== undefined && (byte & 0xc0) === 0x80;

/** The nearest character border at or before `at`, not before `from`. */
function cutBack(text: Buffer, from: number, at: number): number {
  let cut = at;
  while (cut > from && cut < text.length && isContinuation(text[cut])) cut--;
  return cut;
}

function cutForward(text: Buffer, at: number, to: number): number {
  let cut = at;
  while (cut < to && isContinuation(text[cut])) cut++;
  return cut;
}
