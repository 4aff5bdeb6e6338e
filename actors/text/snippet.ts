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

/** The lines around a hit's line, each without its line feed and cut at `limits.lineBytesMax` bytes. */
export interface LinesAround {
  /** In the order of the text. */
  readonly before: readonly string[];
  readonly after: readonly string[];
}

/**
 * Up to `count` lines before and after the line in which the match begins. Where a match goes on over several lines, the later ones
 * are among those after it. What stands behind the last line feed counts as a line only where it is not empty.
 */
export function linesAround(text: Buffer, { start }: Pick<MatchPlace, 'start'>, count: number): LinesAround {
  const before: string[] = [];
  let at = lineStartOf(text, start);
  while (before.length < count && at > 0) {
    const from = lineStartOf(text, at - 1);
    before.unshift(cutLine(text, from, at - 1));
    at = from;
  }
  return { before, after: linesAfter(text, start, count) };
}

/** Up to `count` lines behind the one in which `at` lies. */
function linesAfter(text: Buffer, at: number, count: number): string[] {
  const lines: string[] = [];
  let feed = text.indexOf(lineFeed, at);
  while (lines.length < count && feed >= 0 && feed + 1 < text.length) {
    const from = feed + 1;
    feed = text.indexOf(lineFeed, from);
    lines.push(cutLine(text, from, feed < 0 ? text.length : feed));
  }
  return lines;
}

function lineStartOf(text: Buffer, at: number): number {
  return at === 0 ? 0 : text.lastIndexOf(lineFeed, at - 1) + 1;
}

function cutLine(text: Buffer, from: number, to: number): string {
  const end = to > from && text[to - 1] === carriageReturn ? to - 1 : to;
  if (end - from <= limits.lineBytesMax) return text.toString('utf8', from, end);
  return text.toString('utf8', from, cutBack(text, from, from + limits.lineBytesMax)) + ellipsis;
}

/** What a hit shows where nothing was searched for: the first line that is not blank. */
export function firstLineOf(text: Buffer | null): Snippet {
  const none = { match: '', start: 0, end: 0 };
  const at = text === null ? -1 : firstPrinted(text);
  if (text === null || at < 0) return { ...none, line: '', lineNumber: 1 };
  const lineStart = lineStartOf(text, at);
  return { ...none, line: lineAround(text, lineStart, lineStart), lineNumber: countLines(text, at) + 1 };
}

/** Up to `count` lines behind the first one that is not blank. */
export function linesAfterFirst(text: Buffer, count: number): string[] {
  return linesAfter(text, Math.max(0, firstPrinted(text)), count);
}

/** Where the first byte is that is not blank; -1 where all are. */
function firstPrinted(text: Buffer): number {
  return text.findIndex((byte) => !isBlank(byte));
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
  const lineStart = lineStartOf(text, start);
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
export function cutBack(text: Buffer, from: number, at: number): number {
  let cut = at;
  while (cut > from && cut < text.length && isContinuation(text[cut])) cut--;
  return cut;
}

function cutForward(text: Buffer, at: number, to: number): number {
  let cut = at;
  while (cut < to && isContinuation(text[cut])) cut++;
  return cut;
}
