import {
  type ByteString,
  type ByteStrings,
  byteStringOf,
  containsAny,
  containsAnyOrParts,
  crossProduct,
  shortestOf,
  union,
} from './byte-strings.ts';
import { pairsOf, sizeOf } from './code-point-ranges.ts';
import { all, allOf, anyOf, boundedQuery, none } from './combine-queries.ts';
import { foldCodePoint } from './fold.ts';
import { parseRegex } from './parse-regex.ts';
import type { Ranges, RegexNode } from './regex-syntax.ts';
import type { TrigramQuery } from './trigram-query.ts';

/**
 * From a query to the trigrams that a text must have, after Russ Cox, "Regular Expression Matching with a Trigram Index".
 *
 * 1. Each part of a pattern is known by what its matches can be: the exact strings, while these are few and short; else
 *    the strings that they can begin and end with, and a trigram query that they fulfil.
 * 2. Parts that follow each other: exact strings are multiplied, and where one part ends and the next begins, the ends
 *    are multiplied with the beginnings, which gives the trigrams across the border.
 * 3. Strings that are too many or too long become trigrams of the query and are cut down to their ends.
 *
 * All strings are of folded bytes, because the index has no others: a plan is the same with (?i) and without, and the
 * case of a letter multiplies nothing. Texts that a plan lets through are judged by RE2; texts that it excludes cannot
 * match, whatever the pattern.
 */
export function planRegex(node: RegexNode): TrigramQuery {
  return boundedQuery(conditionOf(analyze(node)));
}

/** The trigrams that a text must have to contain a plain text, whose case is ignored. */
export function planLiteral(text: string): TrigramQuery {
  return planRegex(literalNode(text));
}

/** As `planRegex` and `planLiteral`, of a query as it was asked. */
export function planQuery(query: string, isRegex: boolean): TrigramQuery {
  return isRegex ? planRegex(parseRegex(query)) : planLiteral(query);
}

function literalNode(text: string): RegexNode {
  const codePoints = Array.from(text, (character) => character.codePointAt(0) ?? 0);
  // Half a surrogate pair is found in no text: what RE2 makes of it is its own affair.
  if (codePoints.some((codePoint) => codePoint >= 0xd800 && codePoint <= 0xdfff)) return { kind: 'anything' };
  return { kind: 'literal', codePoints, ignoresCase: true };
}

/** Exact strings of a part: enough for the digits, for alternatives of words, and for two small classes in a row. */
const exactStringsMax = 16;
/** Longer ones have become trigrams: what follows needs their last two bytes only, to reach across the border. */
const exactBytesMax = 7;
/** Beginnings or ends of a part. */
const endStringsMax = 20;
/** Exact strings times the ends of a neighbour: as many as an OR may have alternatives. */
const endProductsMax = 128;
/** Different folded characters of a class that is taken apart; a letter of the alphabet says too little for its price. */
const classCharactersMax = 16;
/** Code points looked at to find them: with their orbits those would be a few dozen. */
const classCodePointsMax = 64;
/** Copies of a repeated part that are put side by side; they only need to reach across one border and its trigrams. */
const copiesMax = 4;

/** What is known of the texts that a part of a pattern matches. */
interface Matches {
  readonly canBeEmpty: boolean;
  /** All the strings that it matches; null where they are too many. Then `prefixes` and `suffixes` say how they begin and end. */
  readonly exact: ByteStrings | null;
  readonly prefixes: ByteStrings;
  readonly suffixes: ByteStrings;
  readonly query: TrigramQuery;
}

const nothingKnown: ByteStrings = new Set(['']);
const emptySet: ByteStrings = new Set();

const anyText: Matches = {
  canBeEmpty: true,
  exact: null,
  prefixes: nothingKnown,
  suffixes: nothingKnown,
  query: all,
};
const anyCharacter: Matches = { ...anyText, canBeEmpty: false };
const emptyString = exactly(nothingKnown);
const noText: Matches = { ...exactly(emptySet), canBeEmpty: false, query: none };

function exactly(strings: ByteStrings): Matches {
  return { canBeEmpty: strings.has(''), exact: strings, prefixes: emptySet, suffixes: emptySet, query: all };
}

function analyze(node: RegexNode): Matches {
  switch (node.kind) {
    case 'anything':
      return anyText;
    case 'empty':
    case 'assertion':
      return emptyString;
    case 'literal':
      return simplified(exactly(new Set([byteStringOf(node.codePoints)])));
    case 'class':
      return matchesOfClass(node.ranges);
    case 'unicode-class':
    case 'byte':
      return anyCharacter;
    case 'capture':
      return analyze(node.part);
    case 'repeat':
      return repeated(analyze(node.part), node.min, node.max);
    case 'concatenation':
      return node.parts.map(analyze).reduce(followedBy, emptyString);
    case 'alternation':
      return node.parts.map(analyze).reduce(either, noText);
  }
}

function matchesOfClass(ranges: Ranges): Matches {
  if (ranges.length === 0) return noText;
  if (sizeOf(ranges) > classCodePointsMax) return anyCharacter;
  const folded = new Set<ByteString>();
  for (const [first, last] of pairsOf(ranges)) {
    for (let codePoint = first; codePoint <= last; codePoint++) {
      // Half a surrogate pair is in no text.
      if (codePoint < 0xd800 || codePoint > 0xdfff) folded.add(byteStringOf([foldCodePoint(codePoint)]));
    }
  }
  return folded.size > classCharactersMax || folded.size === 0 ? anyCharacter : simplified(exactly(folded));
}

function repeated(part: Matches, min: number, max: number | null): Matches {
  if (max === 0) return emptyString;
  if (min === 0) return max === 1 ? either(part, emptyString) : anyText;
  const copies = Math.min(min, copiesMax);
  let matches = part;
  for (let copy = 1; copy < copies; copy++) matches = followedBy(matches, part);
  return copies === max ? matches : begunAndEnded(matches);
}

/** With anything between its beginning and its end: what begins with one copy and ends with another. */
function begunAndEnded(matches: Matches): Matches {
  if (matches.exact === null) return matches;
  return cutToEnds(matches, matches.exact);
}

function followedBy(left: Matches, right: Matches): Matches {
  if (left.exact !== null && right.exact !== null && left.exact.size * right.exact.size <= exactStringsMax) {
    const exact = crossProduct(left.exact, right.exact);
    return simplified({ ...exactly(exact), query: allOf([left.query, right.query]) });
  }
  // Strings that would become too many in the product are turned into trigrams before, while they are few.
  return endsJoined(
    productOf(left.exact, right.exact ?? right.prefixes) > endProductsMax ? begunAndEnded(left) : left,
    productOf(right.exact, left.exact ?? left.suffixes) > endProductsMax ? begunAndEnded(right) : right,
  );
}

function productOf(exact: ByteStrings | null, ends: ByteStrings): number {
  return (exact?.size ?? 0) * ends.size;
}

/** At most one side still has its exact strings, which then lengthen the beginnings or ends of the other. */
function endsJoined(left: Matches, right: Matches): Matches {
  if (left.exact !== null && right.exact !== null)
    return endsJoined(begunAndEnded(left), begunAndEnded(right));
  const border =
    left.exact === null && right.exact === null
      ? containsAny(crossProduct(left.suffixes, right.prefixes))
      : all;
  return simplified({
    canBeEmpty: left.canBeEmpty && right.canBeEmpty,
    exact: null,
    prefixes: joinedPrefixes(left, right),
    suffixes: joinedSuffixes(left, right),
    query: allOf([left.query, right.query, border]),
  });
}

function joinedPrefixes(left: Matches, right: Matches): ByteStrings {
  if (left.exact !== null) return crossProduct(left.exact, right.prefixes);
  return left.canBeEmpty ? union(left.prefixes, right.exact ?? right.prefixes) : left.prefixes;
}

function joinedSuffixes(left: Matches, right: Matches): ByteStrings {
  if (right.exact !== null) return crossProduct(left.suffixes, right.exact);
  return right.canBeEmpty ? union(right.suffixes, left.exact ?? left.suffixes) : right.suffixes;
}

function either(left: Matches, right: Matches): Matches {
  if (left === noText) return right;
  if (right === noText) return left;
  const canBeEmpty = left.canBeEmpty || right.canBeEmpty;
  if (left.exact !== null && right.exact !== null && left.query === right.query) {
    return simplified({ ...exactly(union(left.exact, right.exact)), canBeEmpty, query: left.query });
  }
  return simplified({
    canBeEmpty,
    exact: null,
    prefixes: union(left.exact ?? left.prefixes, right.exact ?? right.prefixes),
    suffixes: union(left.exact ?? left.suffixes, right.exact ?? right.suffixes),
    query: anyOf([conditionOf(left), conditionOf(right)]),
  });
}

/** All that is known, as one query; short strings count where nothing better is known. */
function conditionOf(matches: Matches): TrigramQuery {
  if (matches.exact !== null) return allOf([matches.query, containsAnyOrParts(matches.exact)]);
  if (matches.query.kind !== 'all') return matches.query;
  const [prefixes, suffixes] = [shortestOf(matches.prefixes), shortestOf(matches.suffixes)];
  const longest = Math.max(prefixes, suffixes);
  return allOf([
    prefixes === longest ? containsAnyOrParts(matches.prefixes) : all,
    suffixes === longest ? containsAnyOrParts(matches.suffixes) : all,
  ]);
}

/** Sets that became too large turn into trigrams of the query, and into smaller sets. */
function simplified(matches: Matches): Matches {
  const { exact } = matches;
  if (exact === null) return withShortEnds(matches);
  const isSmall = exact.size <= exactStringsMax && longestOf(exact) <= exactBytesMax;
  return isSmall ? matches : cutToEnds(matches, exact);
}

function longestOf(strings: ByteStrings): number {
  let longest = 0;
  for (const string of strings) longest = Math.max(longest, string.length);
  return longest;
}

function cutToEnds(matches: Matches, exact: ByteStrings): Matches {
  const query = allOf([matches.query, containsAny(exact)]);
  return { ...matches, exact: null, prefixes: shortPrefixes(exact), suffixes: shortSuffixes(exact), query };
}

function withShortEnds(matches: Matches): Matches {
  const { prefixes, suffixes } = matches;
  return {
    ...matches,
    prefixes: shortPrefixes(prefixes),
    suffixes: shortSuffixes(suffixes),
    query: allOf([matches.query, containsAny(prefixes), containsAny(suffixes)]),
  };
}

function shortPrefixes(strings: ByteStrings): ByteStrings {
  return shortened(strings, (string, length) => string.slice(0, length));
}

function shortSuffixes(strings: ByteStrings): ByteStrings {
  return shortened(strings, (string, length) => string.slice(Math.max(string.length - length, 0)));
}

/** Two bytes are what a border's trigrams need; fewer where there are too many. */
function shortened(
  strings: ByteStrings,
  cut: (string: ByteString, length: number) => ByteString,
): ByteStrings {
  for (let length = 2; ; length--) {
    const short = new Set(Array.from(strings, (string) => cut(string, length)));
    const needed = new Set<ByteString>();
    for (const string of short) if (!hasShorter(short, string, cut)) needed.add(string);
    if (needed.size <= endStringsMax || length === 0) return needed;
  }
}

/** Whether the beginning (or end) of a string is in the set itself, and so says all that both say. */
function hasShorter(
  strings: ByteStrings,
  string: ByteString,
  cut: (string: ByteString, length: number) => ByteString,
): boolean {
  for (let length = 0; length < string.length; length++) if (strings.has(cut(string, length))) return true;
  return false;
}
