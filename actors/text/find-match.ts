/**
 * Finds one match of a pattern in a text by calls of RE2 that are short, whatever the pattern is: most texts by one call
 * here; some piece by piece, with others' turns in between; and pieces that may take more than `limits.matchInlineMsMax` on
 * a thread that nobody else waits for. What would take longer than `limits.matchWholeMsMax` even so is refused.
 */
import type { ApiError } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { noteSpent } from '../thread/spent.ts';
import { largestPart } from './costly-part.ts';
import { leastPieceBytes, nextPiece, type Piece, type TextRange } from './match-pieces.ts';
import { findInPiece, type MatchElsewhere, somewhere } from './match-task.ts';
import { cheapNanoseconds, type QueryPattern } from './query-pattern.ts';
import { type Match, refusal } from './regex.ts';

export interface FindSurroundings {
  readonly elsewhere: MatchElsewhere;
  /** When the thread and the query must give way to others, and how. */
  readonly turns: Turns;
}

export interface Turns {
  due(): boolean;
  giveWay(): Promise<void>;
  /** Waits without counting the wait as work, until the time of the query is over. */
  waitUntilDeadline<T>(work: Promise<T>): Promise<T | 'late'>;
  /** Whether nobody waits for the answer any more. */
  readonly timedOut: boolean;
  /** What the query has used so far, in milliseconds of CPU time. */
  readonly cpuMs: number;
  /** Counts what another thread did for this query, in milliseconds of CPU time. */
  charge(cpuMs: number): void;
}

/** Null where there is none; `late` where the time of the query was over before that was known. */
export type FoundMatch = Match | null | Promise<Match | null | 'late'>;

/** The worst that was seen of patterns that are cheap by their size: `a[ab]{11}c` took 12 ns for a byte. */
const cheapRegexNanoseconds = 15;
/** The automaton of a literal has a state for each of its characters, and no more. */
const cheapLiteralNanoseconds = 4;

/** To tell where a match begins, RE2 goes back over what it has read, with a program of its own. */
export const findPasses = 2;

export class MatchFinder {
  readonly #pattern: QueryPattern;
  readonly #surroundings: FindSurroundings;
  /** Longer pieces are not given to RE2 on this thread, nor elsewhere where shorter ones would do. */
  readonly #inlineBytesMax: number;
  readonly #elsewhereBytesMax: number;
  readonly #wholeBytesMax: number;

  constructor(pattern: QueryPattern, surroundings: FindSurroundings) {
    this.#pattern = pattern;
    this.#surroundings = surroundings;
    const nanoseconds = nanosecondsOf(pattern);
    this.#inlineBytesMax = bytesWithin(limits.matchInlineMsMax / findPasses, nanoseconds);
    this.#elsewhereBytesMax = bytesWithin(limits.matchPieceMsMax / findPasses, nanoseconds);
    this.#wholeBytesMax = bytesWithin(limits.matchWholeMsMax, nanoseconds);
  }

  /**
   * The first match that begins in the range, which ends where the text or a line does; where a test is enough, one whose
   * place is not told. Throws ApiError 422 where the pattern is too costly for the text.
   */
  first(text: Buffer, range: TextRange, isTest: boolean): FoundMatch {
    if (range.start === 0 && range.end === text.length) return this.firstInText(text, isTest);
    return this.#firstByPieces(text, range, isTest);
  }

  /** As `first`, in all of a text. Hot: most texts are short, and judged by one call without any plan of it. */
  firstInText(text: Buffer, isTest: boolean): FoundMatch {
    if (text.length > this.#inlineBytesMax)
      return this.#firstByPieces(text, { start: 0, end: text.length }, isTest);
    const { matcher } = this.#pattern;
    if (!matcher.test(text)) return null;
    return isTest ? somewhere : matcher.find(text, 0);
  }

  #firstByPieces(text: Buffer, range: TextRange, isTest: boolean): FoundMatch {
    const { turns } = this.#surroundings;
    for (let from = range.start; from <= range.end; ) {
      const left = { start: from, end: range.end };
      if (from > range.start && turns.due()) return this.#firstSlowly(text, left, isTest);
      const piece = nextPiece(text, left, this.#pattern, this.#inlineBytesMax);
      if (piece === null) return this.#firstSlowly(text, left, isTest);
      const match = this.#findHere(text, piece, isTest);
      if (match !== null) return match;
      from = piece.below;
    }
    return null;
  }

  async #firstSlowly(text: Buffer, range: TextRange, isTest: boolean): Promise<Match | null | 'late'> {
    const { turns } = this.#surroundings;
    for (let from = range.start; from <= range.end; ) {
      if (turns.due()) await turns.giveWay();
      if (turns.timedOut) return 'late';
      const left = { start: from, end: range.end };
      const here = nextPiece(text, left, this.#pattern, this.#inlineBytesMax);
      const piece = here ?? this.#pieceElsewhere(text, left);
      const match =
        here === null ? await this.#findElsewhere(text, piece, isTest) : this.#findHere(text, piece, isTest);
      if (match !== null) return match;
      from = piece.below;
    }
    return null;
  }

  #pieceElsewhere(text: Buffer, left: TextRange): Piece {
    const usual = nextPiece(text, left, this.#pattern, this.#elsewhereBytesMax);
    if (usual !== null) return usual;
    const least = leastPieceBytes(text, left, this.#pattern);
    const piece = least > this.#wholeBytesMax ? null : nextPiece(text, left, this.#pattern, least);
    if (piece === null)
      throw noteSpent(tooCostly(this.#pattern.query, least), this.#surroundings.turns.cpuMs);
    return piece;
  }

  #findHere(text: Buffer, piece: Piece, isTest: boolean): Match | null {
    const { start, end, from, below } = piece;
    const bytes = start === 0 && end === text.length ? text : text.subarray(start, end);
    const match = findInPiece(this.#pattern.matcher, bytes, {
      from: from - start,
      below: below - start,
      isTest,
    });
    return match === null ? null : inText(match, start);
  }

  async #findElsewhere(
    text: Buffer,
    { start, end, from, below }: Piece,
    isTest: boolean,
  ): Promise<Match | null | 'late'> {
    const { elsewhere, turns } = this.#surroundings;
    const { query, isRegex, groups } = this.#pattern;
    const answer = await turns.waitUntilDeadline(
      elsewhere({
        task: 'match',
        query,
        isRegex,
        text: new Uint8Array(text.subarray(start, end)),
        from: from - start,
        below: below - start,
        isTest,
        groups: [...groups],
      }),
    );
    if (answer === 'late') return 'late';
    const { match, cpuMs } = answer;
    turns.charge(cpuMs);
    return match === null ? null : inText(match, start);
  }
}

function inText(match: Match, start: number): Match {
  return start === 0 ? match : { start: match.start + start, end: match.end + start, groups: match.groups };
}

function nanosecondsOf({ nanoseconds, isRegex }: QueryPattern): number {
  if (nanoseconds > cheapNanoseconds) return nanoseconds;
  return isRegex ? cheapRegexNanoseconds : cheapLiteralNanoseconds;
}

function bytesWithin(milliseconds: number, nanoseconds: number): number {
  return (milliseconds * 1e6) / nanoseconds;
}

/** Only the text could tell, so what was done by then is counted. */
function tooCostly(query: string, bytes: number): ApiError {
  const size = bytes >= 1e6 ? `${(bytes / 1e6).toFixed(1)} MB` : `${Math.ceil(bytes / 1_000)} KB`;
  return refusal(
    `the regex may take longer than ${limits.matchWholeMsMax / 1_000} s for ${size} of a text at once: ` +
      `${largestPart(query)}; repeat less, bound what it repeats, or match within a line`,
  );
}
