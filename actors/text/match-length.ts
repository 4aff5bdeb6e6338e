import { mayTakeLineFeed } from './line-pieces.ts';
import type { RegexNode } from './regex-syntax.ts';
import { partOverlapBytes } from './text-parts.ts';
import type { MatchReach } from './trigram-query.ts';

export function reachOf(node: RegexNode): MatchReach {
  if (matchBytesMax(node) <= partOverlapBytes) return 'short';
  return mayTakeLineFeed(node) ? 'text' : 'line';
}

export function reachOfLiteral(literal: string): MatchReach {
  if (literalBytesMax(literal.length) <= partOverlapBytes) return 'short';
  return literal.includes('\n') ? 'text' : 'line';
}

/** At most so many bytes of UTF-8 has a match; infinite where the pattern sets no bound, or is not understood. */
export function matchBytesMax(node: RegexNode): number {
  switch (node.kind) {
    case 'empty':
    case 'assertion':
      return 0;
    case 'byte':
      return 1;
    case 'class':
    case 'unicode-class':
      return characterBytesMax;
    case 'literal':
      return literalBytesMax(node.codePoints.length);
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

/** Of any letters that are equal but for case: k is one byte, the sign for kelvin three. */
function literalBytesMax(codePoints: number): number {
  return codePoints * characterBytesMax;
}

function repeatedBytesMax(part: number, max: number | null): number {
  if (part === 0 || max === 0) return 0;
  return max === null ? Number.POSITIVE_INFINITY : part * max;
}

const characterBytesMax = 4;
