import { orbitOf } from './code-point-ranges.ts';
import { mayTakeLineFeed } from './line-pieces.ts';
import type { RegexNode } from './regex-syntax.ts';
import { partOverlapBytes } from './text-parts.ts';
import type { MatchLength } from './trigram-query.ts';

export function matchLengthOf(node: RegexNode): MatchLength {
  if (matchBytesMax(node) <= partOverlapBytes) return 'short';
  return mayTakeLineFeed(node) ? 'text' : 'line';
}

export function literalMatchLengthOf(literal: string): MatchLength {
  if (literalMatchBytesMax(literal) <= partOverlapBytes) return 'short';
  return literal.includes('\n') ? 'text' : 'line';
}

/** The bytes of UTF-8 that a match has at most; infinite where the pattern sets no bound, or is not understood. */
export function matchBytesMax(node: RegexNode): number {
  switch (node.kind) {
    case 'empty':
    case 'assertion':
      return 0;
    case 'byte':
      return 1;
    case 'class':
      // The last range holds the longest characters.
      return utf8Length(node.ranges.at(-1) ?? 0);
    case 'unicode-class':
      return characterBytesMax;
    case 'literal':
      return literalBytesMax(node.codePoints, node.ignoresCase);
    case 'capture':
      return matchBytesMax(node.part);
    case 'repeat':
      return repeatedBytesMax(matchBytesMax(node.part), node.max);
    case 'concatenation':
      return node.parts.reduce((sum, part) => sum + matchBytesMax(part), 0);
    case 'alternation':
      return node.parts.reduce((most, part) => Math.max(most, matchBytesMax(part)), 0);
    case 'anything':
      return Number.POSITIVE_INFINITY;
  }
}

/** Whether every match begins where the text does: then there is one at most. */
export function beginsAtText(node: RegexNode): boolean {
  switch (node.kind) {
    case 'assertion':
      return node.isTextBegin === true;
    case 'capture':
      return beginsAtText(node.part);
    case 'repeat':
      return node.min > 0 && beginsAtText(node.part);
    case 'concatenation':
      return node.parts[0] !== undefined && beginsAtText(node.parts[0]);
    case 'alternation':
      return node.parts.every(beginsAtText);
    default:
      return false;
  }
}

/** As `matchBytesMax`, of a text that is searched for with case ignored. */
export function literalMatchBytesMax(literal: string): number {
  return literalBytesMax(
    Array.from(literal, (character) => character.codePointAt(0) ?? 0),
    true,
  );
}

/** The longest of the letters that are equal but for case counts: k is one byte, the sign for kelvin three. */
function literalBytesMax(codePoints: readonly number[], ignoresCase: boolean): number {
  return codePoints.reduce((sum, codePoint) => {
    const same = ignoresCase ? orbitOf(codePoint) : [codePoint];
    return sum + Math.max(...same.map(utf8Length));
  }, 0);
}

function repeatedBytesMax(part: number, max: number | null): number {
  if (part === 0 || max === 0) return 0;
  return max === null ? Number.POSITIVE_INFINITY : part * max;
}

const characterBytesMax = 4;

/** How many bytes a character has in UTF-8. */
export function utf8Length(codePoint: number): number {
  if (codePoint < 0x80) return 1;
  if (codePoint < 0x800) return 2;
  return codePoint < 0x10000 ? 3 : 4;
}
