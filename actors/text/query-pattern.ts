/**
 * From a query to RE2's programs, for every caller alike: search, count, estimate, warm, SQL's conditions and REGEXP_REPLACE.
 *
 * 1. The pattern is parsed here, and how large RE2's program for it would be is estimated. What is too large is refused
 *    before RE2 sees it: RE2 takes 200 ms to find that `\pL` 330 times is too much, and nothing can interrupt it.
 * 2. RE2 compiles it, and may say that it is none.
 * 3. What it refused, and what was refused here, is remembered for the thread: asking again costs a look-up.
 */
import { ApiError } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { LruMap } from '../../src/base/lru.ts';
import type { WantedPiece } from '../kernels/literal-finder.ts';
import { largestPart } from './costly-part.ts';
import { staysWithinLine } from './line-pieces.ts';
import { pieceOf } from './literal-piece.ts';
import { literalMatchBytesMax, literalMatchLengthOf, matchBytesMax, matchLengthOf } from './match-length.ts';
import { parseRegex } from './parse-regex.ts';
import {
  groupsNanoseconds,
  literalNanoseconds,
  programInstructions,
  regexNanoseconds,
  unknownInstructions,
} from './pattern-cost.ts';
import { compileMatcher, type Matcher, refusal, refuseLong } from './regex.ts';
import { planLiteral, planRegex } from './regex-plan.ts';
import type { RegexNode } from './regex-syntax.ts';
import type { TextCondition } from './trigram-query.ts';

/** What is known of a query before any text: RE2's programs, what they cost, and what the index must have of a match. */
export interface QueryPattern {
  readonly query: string;
  readonly isRegex: boolean;
  /** Numbers of the groups that a find tells of. */
  readonly groups: ReadonlySet<number>;
  readonly matcher: Matcher;
  /** What a text that matches has for certain, to be looked for in many texts at once; null of a regex, and where there is none. */
  readonly piece: WantedPiece | null;
  readonly condition: TextCondition;
  /** What a byte of any text costs at most. */
  readonly nanoseconds: number;
  /** The bytes that a match has at most; infinite where nothing bounds it. */
  readonly bytesMax: number;
  /** Whether lines can be judged apart. */
  readonly byLines: boolean;
}

/** No program that costs so little at worst was slow on any text: 40 instructions. */
export const cheapNanoseconds = 120;

const noGroups: ReadonlySet<number> = new Set();

/** The patterns of a thread. */
export class QueryPatterns {
  /**
   * The last ones: the next page asks the same again, and RE2 keeps the states that it has built for a program. Those that
   * cost much are not kept, since these states are up to 8 MB of each.
   */
  readonly #kept = new LruMap<string, QueryPattern>(limits.patternsKeptMax);
  /** What was said of patterns that were refused. */
  readonly #refused = new LruMap<string, string>(limits.patternRefusalsKeptMax);
  readonly #compile: typeof compileMatcher;

  constructor(compile = compileMatcher) {
    this.#compile = compile;
  }

  /** `groups`: those that finds must tell of. Throws ApiError 422 for what RE2 refuses, and for what is too large for it. */
  of(query: string, isRegex: boolean, groups = noGroups): QueryPattern {
    refuseLong(query, isRegex);
    const key = `${isRegex ? 'r' : 'l'}${[...groups].join()}:${query}`;
    const known = this.#kept.get(key);
    if (known !== undefined) return known;
    const problem = this.#refused.get(key);
    if (problem !== undefined) throw refusal(problem);
    try {
      const pattern = isRegex ? this.#ofRegex(query, groups) : this.#ofLiteral(query);
      if (pattern.nanoseconds <= cheapNanoseconds) this.#kept.set(key, pattern);
      return pattern;
    } catch (error) {
      if (error instanceof ApiError && error.fields?.q !== undefined) this.#refused.set(key, error.fields.q);
      throw error;
    }
  }

  #ofRegex(query: string, groups: ReadonlySet<number>): QueryPattern {
    const node = parseRegex(query);
    const instructions = node.kind === 'anything' ? unknownInstructions(query) : programInstructions(node);
    refuseLarge(query, instructions);
    return {
      query,
      isRegex: true,
      groups,
      matcher: this.#compile(query, true, groups),
      piece: null,
      condition: { query: planRegex(node), matchLength: matchLengthOf(node) },
      nanoseconds: nanosecondsOf(node, groups.size),
      bytesMax: matchBytesMax(node),
      byLines: staysWithinLine(node),
    };
  }

  #ofLiteral(query: string): QueryPattern {
    // However it folds, RE2 compiles the longest in a few milliseconds.
    return {
      query,
      isRegex: false,
      groups: noGroups,
      matcher: this.#compile(query, false),
      piece: pieceOf(query),
      condition: { query: planLiteral(query), matchLength: literalMatchLengthOf(query) },
      nanoseconds: literalNanoseconds(query),
      bytesMax: literalMatchBytesMax(query),
      byLines: !query.includes('\n'),
    };
  }
}

function nanosecondsOf(node: RegexNode, groups: number): number {
  // What RE2 takes and nobody here understands may be as costly as anything that is compiled at all.
  if (node.kind === 'anything') return limits.patternInstructionsMax * unknownNanoseconds;
  return groups === 0 ? regexNanoseconds(node) : groupsNanoseconds(node, groups);
}

/** Nanoseconds for each instruction that may be thought of at once: as pattern-cost.ts takes for states that are not kept. */
const unknownNanoseconds = 15;

function refuseLarge(query: string, instructions: number): void {
  if (instructions <= limits.patternInstructionsMax) return;
  throw refusal(
    `the regex is too large: ${largestPart(query)}; all of it makes ${Math.round(instructions)} steps, and it may have ` +
      `${limits.patternInstructionsMax}: repeat fewer times, or smaller parts`,
  );
}
