import { hasLineFeed, lineFeed } from './code-point-ranges.ts';
import type { RegexNode } from './regex-syntax.ts';

/**
 * Whether every match of a pattern lies within one line and depends on nothing outside of it: then the lines of a text can
 * be judged apart, with others' turns in between, and the first match is the first one of the first line that has one.
 */
export function staysWithinLine(node: RegexNode): boolean {
  switch (node.kind) {
    case 'empty':
      return true;
    case 'assertion':
      return node.isWordBoundary;
    case 'literal':
      return !node.codePoints.includes(lineFeed);
    case 'class':
      return !hasLineFeed(node.ranges);
    case 'repeat':
    case 'capture':
      return staysWithinLine(node.part);
    case 'concatenation':
    case 'alternation':
      return node.parts.every(staysWithinLine);
    case 'unicode-class':
      return !node.mayTakeLineFeed;
    // Any of these may take a line feed.
    case 'anything':
    case 'byte':
      return false;
  }
}

/** The end of the last whole line of `text` that ends within `bytes` bytes from `from` on; null where that line is longer. */
export function linesEnd(text: Buffer, from: number, bytes: number): number | null {
  if (text.length - from <= bytes) return text.length;
  const at = text.lastIndexOf(lineFeed, from + Math.floor(bytes) - 1);
  return at < from ? null : at + 1;
}
