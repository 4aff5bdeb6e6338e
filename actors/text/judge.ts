import { limits } from '../../protocol/limits.ts';
import { linesEnd } from './line-pieces.ts';
import { cheapNanoseconds, type QueryPattern } from './query-pattern.ts';
import { compileMatcher, type Matcher } from './regex.ts';
import { allMatches, type MatchPlace, matchPlace } from './snippet.ts';
import { partsOf } from './text-parts.ts';

/**
 * RE2's word on one text at a time, on this thread where that is cheap.
 *
 * RE2 cannot be interrupted. Most calls take a nanosecond or two for each byte; a pattern that makes it think of many
 * places at once takes some for each of them (pattern-cost.ts), seconds for a large document. Where that could be more
 * than `limits.matchInlineMsMax`, a text is judged some lines at a time, if matches stay within them, and else the call
 * is made on a thread that nobody else waits for.
 */
export type WantedMatches = 'none' | 'first' | 'all';

/** Null where the text does not match; else the places that were wanted. */
export type Found = readonly MatchPlace[] | null;

/** Makes the call elsewhere. */
export type MatchElsewhere = (task: MatchTask) => Promise<Found>;

export interface MatchTask {
  readonly task: 'match';
  readonly query: string;
  readonly isRegex: boolean;
  /** UTF-8, of its own. */
  readonly text: Uint8Array;
  readonly wanted: WantedMatches;
}

/** Of a byte, for most programs. */
const nanosecondsPerPass = 1;

export interface JudgeSurroundings {
  readonly elsewhere: MatchElsewhere;
  /** Of the thread. */
  readonly turns: { due(): boolean; giveWay(): Promise<void> };
}

export class Judge {
  readonly #pattern: QueryPattern;
  readonly #surroundings: JudgeSurroundings;
  /** Longer texts are judged elsewhere: where one pass over them is enough, and where all matches are wanted. */
  readonly #inlineBytesMax: number;
  readonly #inlineAllBytesMax: number;

  constructor(pattern: QueryPattern, surroundings: JudgeSurroundings) {
    this.#pattern = pattern;
    this.#surroundings = surroundings;
    const { nanoseconds, isRegex } = pattern;
    this.#inlineBytesMax =
      nanoseconds <= cheapNanoseconds ? Number.POSITIVE_INFINITY : bytesWithin(nanoseconds);
    // A literal's match is found where it ends; to find a regex's, RE2 may read on to the end of the text each time.
    this.#inlineAllBytesMax = isRegex
      ? Math.min(this.#inlineBytesMax, bytesWithin(limits.matchesMax * nanosecondsPerPass))
      : this.#inlineBytesMax;
  }

  /** Of `parts` (text-parts.ts) alone where they are given, and lines can be judged apart. */
  find(text: Buffer, wanted: WantedMatches, parts: readonly number[] | null = null): Found | Promise<Found> {
    if (parts !== null && this.#pattern.byLines && wanted !== 'all')
      return this.#findInParts(text, wanted, boundsOf(text, parts));
    const inlineBytesMax = wanted === 'all' ? this.#inlineAllBytesMax : this.#inlineBytesMax;
    if (text.length <= inlineBytesMax) return findMatches(this.#pattern.matcher, text, wanted);
    return this.#pattern.byLines && wanted !== 'all'
      ? this.#findByLines(text, wanted, { start: 0, end: text.length })
      : this.#findElsewhere(text, wanted);
  }

  #findInParts(text: Buffer, wanted: WantedMatches, parts: readonly TextRange[]): Found | Promise<Found> {
    for (const [at, part] of parts.entries()) {
      const found = this.#findByLines(text, wanted, part);
      if (found instanceof Promise)
        return found.then((known) => known ?? this.#findInParts(text, wanted, parts.slice(at + 1)));
      if (found !== null) return found;
    }
    return null;
  }

  /** As many lines at a time as are surely judged in time; others have their turn where the slice is over. */
  #findByLines(text: Buffer, wanted: WantedMatches, { start, end }: TextRange): Found | Promise<Found> {
    const { turns } = this.#surroundings;
    for (let from = start; from < end; ) {
      if (from > start && turns.due())
        return turns.giveWay().then(() => this.#findByLines(text, wanted, { start: from, end }));
      const to = linesEnd(text, { start: from, end }, this.#inlineBytesMax);
      if (to === null) return this.#findElsewhere(text, wanted);
      const lines = text.subarray(from, to);
      if (this.#pattern.matcher.test(lines)) return wanted === 'none' ? [] : this.#firstOf(text, lines, from);
      from = to;
    }
    return null;
  }

  #firstOf(text: Buffer, lines: Buffer, from: number): Found {
    const match = this.#pattern.matcher.find(lines, 0);
    return match === null ? null : [matchPlace(text, { start: match.start + from, end: match.end + from })];
  }

  #findElsewhere(text: Buffer, wanted: WantedMatches): Promise<Found> {
    const { query, isRegex } = this.#pattern;
    return this.#surroundings.elsewhere({
      task: 'match',
      query,
      isRegex,
      text: new Uint8Array(text),
      wanted,
    });
  }
}

/** Lines of a text. */
interface TextRange {
  readonly start: number;
  readonly end: number;
}

/** Where these parts begin and the next ones do. */
function boundsOf(text: Buffer, parts: readonly number[]): TextRange[] {
  const { bounds } = partsOf(text, 0, text.length);
  return parts.map((part) => ({
    start: bounds[2 * part] as number,
    end: bounds[2 * part + 2] ?? text.length,
  }));
}

/** Of text, at so many nanoseconds a byte. */
function bytesWithin(nanoseconds: number): number {
  return (limits.matchInlineMsMax * 1e6) / nanoseconds;
}

export function findMatches(matcher: Matcher, text: Buffer, wanted: WantedMatches): Found {
  if (wanted === 'all') {
    const places = allMatches(text, matcher);
    return places.length === 0 ? null : places;
  }
  if (!matcher.test(text)) return null;
  if (wanted === 'none') return [];
  const match = matcher.find(text, 0);
  return match === null ? null : [matchPlace(text, match)];
}

/** The last one: a search sends many texts with the same pattern. */
let compiled: { readonly query: string; readonly isRegex: boolean; readonly matcher: Matcher } | null = null;

/** What the other thread does. */
export function runMatch({ query, isRegex, text, wanted }: MatchTask): Found {
  if (compiled?.query !== query || compiled.isRegex !== isRegex)
    compiled = { query, isRegex, matcher: compileMatcher(query, isRegex) };
  return findMatches(compiled.matcher, Buffer.from(text.buffer, text.byteOffset, text.byteLength), wanted);
}
