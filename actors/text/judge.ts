import { limits } from '../../protocol/limits.ts';
import { type FindSurroundings, MatchFinder, type Turns } from './find-match.ts';
import type { TextRange } from './match-pieces.ts';
import { cheapNanoseconds, type QueryPattern } from './query-pattern.ts';
import type { Match } from './regex.ts';
import { afterMatch, type MatchPlace, matchPlace, PlaceCounter } from './snippet.ts';
import { partsOf } from './text-parts.ts';

/** Decides whether texts match a pattern, and where, by short calls of RE2 (find-match.ts). */
export type WantedMatches = 'none' | 'first' | 'all';

/** Null where the text does not match; else the places that were wanted. */
export type Found = readonly MatchPlace[] | null;

/** `late` where the time of the query was over before it was known. */
export type Judged = Found | Promise<Found | 'late'>;

/** A literal, to be looked for in the bytes of many texts at once. */
export type WantedLiteral = Pick<QueryPattern, 'query' | 'matcher' | 'piece'>;

const nothingWanted: Found = [];

export class Judge {
  readonly #pattern: QueryPattern;
  readonly #finder: MatchFinder;
  readonly #turns: Turns;

  constructor(pattern: QueryPattern, surroundings: FindSurroundings) {
    this.#pattern = pattern;
    this.#finder = new MatchFinder(pattern, surroundings);
    this.#turns = surroundings.turns;
  }

  /** What finds the pattern in any bytes, where it is a literal that is never long about them; null for others. */
  get literal(): WantedLiteral | null {
    const { isRegex, nanoseconds } = this.#pattern;
    return isRegex || nanoseconds > cheapNanoseconds ? null : this.#pattern;
  }

  /**
   * Judges a text, `parts` (text-parts.ts) alone where they are given and lines can be judged apart. Throws ApiError 422
   * where the pattern is too costly for the text.
   */
  find(text: Buffer, wanted: WantedMatches, parts: readonly number[] | null = null): Judged {
    if (wanted === 'all') return this.#findAll(text, []);
    const isTest = wanted === 'none';
    if (parts !== null && this.#pattern.byLines) return this.#findIn(text, boundsOf(text, parts), isTest);
    const match = this.#finder.firstInText(text, isTest);
    if (match instanceof Promise)
      return match.then((known) => (known === null ? null : judgedOf(text, known, isTest)));
    return match === null ? null : foundOf(text, match, isTest);
  }

  #findIn(text: Buffer, ranges: readonly TextRange[], isTest: boolean): Judged {
    for (const [at, range] of ranges.entries()) {
      const match = this.#finder.first(text, range, isTest);
      if (match instanceof Promise)
        return match.then((known) =>
          known === null ? this.#findIn(text, ranges.slice(at + 1), isTest) : judgedOf(text, known, isTest),
        );
      if (match !== null) return foundOf(text, match, isTest);
    }
    return null;
  }

  /** The matches that do not overlap, from the first on, at most `limits.matchesMax`. */
  #findAll(text: Buffer, places: MatchPlace[], counter = new PlaceCounter(text)): Judged {
    let from = places.length === 0 ? 0 : afterMatch(text, places.at(-1) as MatchPlace);
    while (from <= text.length && places.length < limits.matchesMax) {
      const match = this.#finder.first(text, { start: from, end: text.length }, false);
      if (match instanceof Promise)
        return match.then((known) => {
          if (known === 'late') return 'late';
          if (known === null) return placesOf(places);
          places.push(counter.placeOf(known));
          return this.#findAll(text, places, counter);
        });
      if (match === null) break;
      places.push(counter.placeOf(match));
      from = afterMatch(text, match);
      if (this.#turns.due())
        return this.#turns
          .giveWay()
          .then(() => (this.#turns.timedOut ? 'late' : this.#findAll(text, places, counter)));
    }
    return placesOf(places);
  }
}

function placesOf(places: readonly MatchPlace[]): Found {
  return places.length === 0 ? null : places;
}

function judgedOf(text: Buffer, match: Match | 'late', isTest: boolean): Found | 'late' {
  return match === 'late' ? 'late' : foundOf(text, match, isTest);
}

function foundOf(text: Buffer, match: Match, isTest: boolean): Found {
  return isTest ? nothingWanted : [matchPlace(text, match)];
}

/** Where these parts begin and the next ones do. */
function boundsOf(text: Buffer, parts: readonly number[]): TextRange[] {
  const { bounds } = partsOf(text, 0, text.length);
  return parts.map((part) => ({
    start: bounds[2 * part] as number,
    end: bounds[2 * part + 2] ?? text.length,
  }));
}
