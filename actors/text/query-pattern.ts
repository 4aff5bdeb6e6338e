import { ApiError } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { LruMap } from '../../src/base/lru.ts';
import { staysWithinLine } from './line-pieces.ts';
import { reachOf, reachOfLiteral } from './match-length.ts';
import { parseRegex } from './parse-regex.ts';
import { literalNanoseconds, programInstructions, regexNanoseconds } from './pattern-cost.ts';
import { compileMatcher, type Matcher } from './regex.ts';
import { planLiteral, planRegex } from './regex-plan.ts';
import type { RegexNode } from './regex-syntax.ts';
import type { TextCondition } from './trigram-query.ts';

/** What is known of a query before any text: RE2's programs, what they cost, and what the index must have of a match. */
export interface QueryPattern {
  readonly query: string;
  readonly isRegex: boolean;
  readonly matcher: Matcher;
  readonly condition: TextCondition;
  /** What a byte of any text costs at most. */
  readonly nanoseconds: number;
  /** Whether lines can be judged apart. */
  readonly byLines: boolean;
}

/** No program that costs so little at worst was slow on any text: 40 instructions. */
export const cheapNanoseconds = 120;

/**
 * The last ones of the thread: the next page asks the same again, and RE2 keeps the states that it has built for a program.
 * Those that cost much are not kept, since these states are up to 8 MB of each.
 */
const kept = new LruMap<string, QueryPattern>(limits.patternsKeptMax);

/** Throws ApiError 422 for a pattern that RE2 refuses, or whose program is too large. */
export function queryPattern(query: string, isRegex: boolean): QueryPattern {
  const key = `${isRegex ? 'r' : 'l'}${query}`;
  const known = kept.get(key);
  if (known !== undefined) return known;
  const matcher = compileMatcher(query, isRegex);
  const pattern = isRegex ? ofRegex(query, matcher) : ofLiteral(query, matcher);
  if (pattern.nanoseconds <= cheapNanoseconds) kept.set(key, pattern);
  return pattern;
}

function ofRegex(query: string, matcher: Matcher): QueryPattern {
  const node = parseRegex(query);
  refuseLarge(node);
  const nanoseconds = regexNanoseconds(node);
  return {
    query,
    isRegex: true,
    matcher,
    condition: { query: planRegex(node), reach: reachOf(node) },
    nanoseconds,
    byLines: staysWithinLine(node),
  };
}

function ofLiteral(query: string, matcher: Matcher): QueryPattern {
  const nanoseconds = literalNanoseconds(query);
  const byLines = !query.includes('\n');
  const condition = { query: planLiteral(query), reach: reachOfLiteral(query) };
  return { query, isRegex: false, matcher, condition, nanoseconds, byLines };
}

function refuseLarge(pattern: RegexNode): void {
  if (programInstructions(pattern) <= limits.patternInstructionsMax) return;
  const problem = 'the regex is too large once its repetitions are written out';
  throw new ApiError('invalid', `q: ${problem}: repeat fewer times, or smaller parts`, {
    fields: { q: problem },
  });
}
