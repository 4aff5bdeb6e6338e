import { hasLineFeed, lineFeed } from './code-point-ranges.ts';
import type { RegexNode } from './regex-syntax.ts';
import { lastLineFeed } from './text-pieces.ts';

/**
 * Whether every match of a pattern lies within one line and depends on nothing outside of it: then the lines of a text can
 * be judged apart, with others' turns in between, and the first match is the first one of the first line that has one.
 */
export function staysWithinLine(node: RegexNode): boolean {
  return !mayTakeLineFeed(node) && !looksBeyondLine(node);
}

/** Whether a match may have a line feed in it. */
export function mayTakeLineFeed(node: RegexNode): boolean {
  switch (node.kind) {
    case 'empty':
    case 'assertion':
      return false;
    case 'literal':
      return node.codePoints.includes(lineFeed);
    case 'class':
      return hasLineFeed(node.ranges);
    case 'unicode-class':
      return node.mayTakeLineFeed;
    case 'repeat':
    case 'capture':
      return mayTakeLineFeed(node.part);
    case 'concatenation':
    case 'alternation':
      return node.parts.some(mayTakeLineFeed);
    // Any of these may take one.
    case 'anything':
    case 'byte':
      return true;
  }
}

/** Where a line ends, a text may, for all that a word's border shows. */
function looksBeyondLine(node: RegexNode): boolean {
  switch (node.kind) {
    case 'assertion':
      return !node.isWordBoundary;
    case 'repeat':
    case 'capture':
      return looksBeyondLine(node.part);
    case 'concatenation':
    case 'alternation':
      return node.parts.some(looksBeyondLine);
    default:
      return false;
  }
}

/** The end of the last line from `start` to `end` that ends within `bytes` bytes; null where the first one is longer. */
export function linesEnd(
  text: Buffer,
  { start, end }: { readonly start: number; readonly end: number },
  bytes: number,
): number | null {
  if (end - start <= bytes) return end;
  const at = lastLineFeed(text, start, start + Math.floor(bytes));
  return at < 0 ? null : at + 1;
}
