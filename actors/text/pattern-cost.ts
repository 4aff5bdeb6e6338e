import { orbitOf, pairsOf, rangesOf } from './code-point-ranges.ts';
import { foldUtf8 } from './fold.ts';
import { utf8Length } from './match-length.ts';
import { parseRegex } from './parse-regex.ts';
import { writeOutLiteral } from './quoted-text.ts';
import type { Ranges, RegexNode } from './regex-syntax.ts';

/**
 * How many instructions RE2's program for a pattern has, at most, repetitions written out: what a text costs to search
 * is bounded by its bytes times this. Most patterns cost far less, because RE2 keeps the states that it has seen; those
 * that make new states all the time do cost as much.
 */
export function patternInstructions(pattern: string): number {
  return programInstructions(parseRegex(pattern));
}

export function programInstructions(pattern: RegexNode): number {
  return frameInstructions + instructionsOf(pattern);
}

/**
 * RE2 takes up to so long for each byte and each instruction that it thinks of at once, in nanoseconds: 2.3 was the worst
 * that test/bench/pattern-cost.bench.ts saw, whose states are kept. Literals of 1,200 to 4,000 equal letters over a text of
 * the same took 12.4 to 13.7: their states had become too large to be kept.
 */
const nanosecondsKept = 3;
const nanosecondsForgotten = 15;
/** Instructions of a program whose states are kept, whatever the text: 1,000 were, 1,200 were not. */
const keptInstructionsMax = 1_000;
/** Instructions of all states of a literal that RE2 keeps: 500,000 were kept, 720,000 were not. */
const keptStateInstructionsMax = 400_000;

/** What a byte of any text costs a regex at most, in nanoseconds. */
export function regexNanoseconds(pattern: RegexNode): number {
  const atOnce = instructionsAtOnce(pattern);
  return atOnce * (atOnce > keptInstructionsMax ? nanosecondsForgotten : nanosecondsKept);
}

/**
 * What a byte costs at most where groups are asked for too, in nanoseconds: RE2 goes over the match once more then, keeps no
 * states, and carries the places of the groups along.
 */
export function groupsNanoseconds(pattern: RegexNode, groups: number): number {
  return regexNanoseconds(pattern) + instructionsAtOnce(pattern) * nanosecondsForgotten * (1 + groups / 2);
}

/** How many instructions RE2 thinks of at once: few of a Unicode group, those that its ranges begin with. */
function instructionsAtOnce(pattern: RegexNode): number {
  return frameInstructions + instructionsOf(pattern, unicodeClassAtOnce);
}

/**
 * The same for a literal, case ignored. After each character of it RE2 thinks of every place in it where the text so far
 * may also end, such as all of them in `aaaa`: few where a text does not repeat itself.
 */
export function literalNanoseconds(text: string): number {
  const folded = Buffer.from(text);
  const length = foldUtf8(folded, 0, folded.length, folded, 0);
  const { most, sum } = placesAtOnce(folded.subarray(0, length));
  const each = literalInstructions(text) / Math.max(1, [...text].length);
  return most * each * (sum * each > keptStateInstructionsMax ? nanosecondsForgotten : nanosecondsKept);
}

/** How many instructions RE2's program for plain text has, at most, case ignored. */
function literalInstructions(text: string): number {
  return patternInstructions(`(?i)${writeOutLiteral(text)}`);
}

/** How many beginnings of a literal end each of its beginnings, itself included: the most, and all together. */
function placesAtOnce(literal: Uint8Array): { readonly most: number; readonly sum: number } {
  // The longest other beginning that ends each beginning, as Knuth, Morris and Pratt find it.
  const longest = new Int32Array(literal.length);
  const places = new Int32Array(literal.length).fill(1);
  let most = 0;
  let sum = 0;
  for (let i = 0, at = 0; i < literal.length; i++) {
    if (i > 0) {
      while (at > 0 && literal[i] !== literal[at]) at = longest[at - 1] as number;
      if (literal[i] === literal[at]) at++;
    }
    longest[i] = at;
    if (at > 0) places[i] = (places[at - 1] as number) + 1;
    most = Math.max(most, places[i] as number);
    sum += places[i] as number;
  }
  return { most, sum };
}

/**
 * At most so many instructions has a pattern that the parser does not understand, told from its characters alone: such a
 * pattern is wrong in general, and RE2 says why, but it must not be long about it. Each Unicode group may be a class, each
 * bound of a repetition may repeat all of it.
 */
export function unknownInstructions(pattern: string): number {
  const groups = pattern.match(/\\p/gi)?.length ?? 0;
  const bounds = pattern.match(/(?<!\\[uxp])\{\d+(?:,\d*)?\}/gi) ?? [];
  const copies = bounds.reduce(
    (product, bound) => product * Math.max(1, ...(bound.match(/\d+/g) ?? []).map(Number)),
    1,
  );
  return frameInstructions + (pattern.length + groups * unicodeClassInstructions) * copies;
}

/** Failure, match, and the loop that lets a match begin anywhere. */
const frameInstructions = 5;
/** The largest class of a Unicode group or of its complement, case ignored, measured by the test of this file. */
const unicodeClassInstructions = 3_000;
/**
 * What such a class cost a byte at most, in instructions of `nanosecondsKept`: 260 ns of `(?:[\pL\d]?\pL?){50}!!` over
 * letters of all languages, with room.
 */
const unicodeClassAtOnce = 150;
/** What RE2 makes of all code points above ASCII. */
const anyMultiByteInstructions = 12;
const codePointMax = 0x10ffff;

function instructionsOf(node: RegexNode, unicodeClass = unicodeClassInstructions): number {
  const of = (part: RegexNode) => instructionsOf(part, unicodeClass);
  switch (node.kind) {
    case 'literal':
      return node.codePoints.reduce((sum, codePoint) => sum + ofCharacter(codePoint, node.ignoresCase), 0);
    case 'class':
      return ofClass(node.ranges);
    case 'unicode-class':
      return unicodeClass;
    // Half a surrogate pair, for which RE2 takes the replacement character.
    case 'anything':
      return 3;
    case 'empty':
    case 'assertion':
    case 'byte':
      return 1;
    case 'capture':
      return of(node.part) + 2;
    case 'concatenation':
      return node.parts.reduce((sum, part) => sum + of(part), 0);
    case 'alternation':
      return node.parts.reduce((sum, part) => sum + of(part) + 1, 0);
    case 'repeat':
      return ofRepetition(of(node.part), node.min, node.max);
  }
}

/** x{2,} is x(x)+ and x{2,4} is xx(x(x)?)?. A star over what may be empty takes two instructions. */
function ofRepetition(part: number, min: number, max: number | null): number {
  if (max === null) return Math.max(min, 1) * part + 2;
  return Math.max(min * part + (max - min) * (part + 1), 1);
}

function ofCharacter(codePoint: number, ignoresCase: boolean): number {
  const orbit = ignoresCase ? orbitOf(codePoint) : [codePoint];
  // A pair of ASCII letters is one instruction that ignores case.
  if (orbit.every((member) => member < 0x80)) return 1;
  if (orbit.length === 1) return utf8Length(codePoint);
  return ofClass(rangesOf(orbit.map((member) => [member, member] as const)));
}

function ofClass(ranges: Ranges): number {
  return pairsOf(ranges).reduce((sum, [first, last]) => sum + ofRange(first, last), 1);
}

/** A range is cut until each piece is a sequence of ranges of bytes; each piece is one alternative. */
function ofRange(first: number, last: number): number {
  if (last < 0x80) return 2;
  if (first === 0x80 && last === codePointMax) return anyMultiByteInstructions;
  for (const border of [0x7f, 0x7ff, 0xffff]) {
    if (first <= border && last > border) return ofRange(first, border) + ofRange(border + 1, last);
  }
  for (const bits of [6, 12, 18]) {
    const mask = (1 << bits) - 1;
    if (first >> bits === last >> bits) continue;
    if ((first & mask) !== 0) return ofRange(first, first | mask) + ofRange((first | mask) + 1, last);
    if ((last & mask) !== mask) return ofRange(first, (last & ~mask) - 1) + ofRange(last & ~mask, last);
  }
  return utf8Length(first) + 1;
}
