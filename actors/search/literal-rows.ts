/**
 * Finds the rows of a block that have a literal by one pass over the bytes of all of them, which takes a tenth of the time of a call
 * of RE2 for each text.
 *
 * What a literal matches depends on nothing around it, so a match that lies within a text is one of that text. A piece of the
 * literal (literal-piece.ts) is found by vector instructions; RE2 is asked about a text only where the piece is not all of the literal. A
 * literal without such a piece is looked for by RE2.
 */

import { PieceFinder } from '../kernels/piece-finder.ts';
import { documentText, documentTextLength, documentTextStart } from '../storage/document-batch.ts';
import type { DocumentBlock } from '../storage/document-block.ts';
import { isDeleted } from '../storage/tombstones.ts';
import type { WantedLiteral } from '../text/judge.ts';
import type { Matcher } from '../text/regex.ts';
import type { ReadBlock } from './read-ahead.ts';

/** Bytes above which a block has one large document, or few, and RE2 is given its texts by pieces. */
const blockBytesMax = 512 * 1024;

/**
 * Finds the live rows of a block, by their numbers in the segment and within its ranges, whose texts have a literal. Null where the block is
 * to be judged text by text: it is large, or it has parts.
 */
export function literalRows(
  { block, ranges, parts, tombstones }: ReadBlock,
  literal: WantedLiteral,
): readonly number[] | null {
  if (block.buffer.length > blockBytesMax || (parts ?? null) !== null) return null;
  const found: number[] = [];
  for (let at = 0; at < ranges.length; at += 2) {
    const first = (ranges[at] as number) - block.firstRow;
    const end = (ranges[at + 1] as number) - block.firstRow;
    for (const index of rowsWithLiteral(block, { first, end }, literal))
      if (!isDeleted(tombstones, block.firstRow + index)) found.push(block.firstRow + index);
  }
  return found;
}

/**
 * Finds the rows from `first` to before `end` whose texts have a literal. A match may also lie in an id, a meta or a vector, or reach out
 * of the text: then the next one is looked for from where the text begins, or RE2 is asked about the text alone. So a row takes
 * three calls at most.
 */
export function rowsWithLiteral(
  block: DocumentBlock,
  { first, end }: { readonly first: number; readonly end: number },
  literal: WantedLiteral,
): number[] {
  const { buffer } = block;
  const entryEnd = (index: number) =>
    index + 1 < block.rowCount ? block.entryOffset(index + 1) : buffer.length;
  const start = block.entryOffset(first);
  const stop = entryEnd(end - 1);
  const matches = matchesIn(buffer.subarray(0, stop), start, literal);
  const found: number[] = [];
  let index = first;
  for (let from = start; from < stop; ) {
    const match = matches.next(from);
    if (match < 0) break;
    while (entryEnd(index) <= match) index++;
    const offset = block.entryOffset(index);
    const textStart = documentTextStart(buffer, offset);
    const textEnd = textStart + documentTextLength(buffer, offset);
    if (match < textStart) from = textStart;
    else {
      if (match < textEnd && (match + matches.length <= textEnd || hasMatch(buffer, offset, literal.matcher)))
        found.push(index);
      from = entryEnd(index);
    }
  }
  return found;
}

interface Matches {
  /** Answers where something that the literal needs begins first, at or after a place; -1 where it does not. */
  readonly next: (from: number) => number;
  /** Bytes of a match that was found last; infinite where it may be none. */
  readonly length: number;
}

function matchesIn(bytes: Buffer, start: number, { matcher, piece }: WantedLiteral): Matches {
  if (piece === null) return matchesOf(matcher, bytes);
  finder ??= new PieceFinder();
  const pieces = finder;
  pieces.load(piece, bytes.subarray(start));
  return {
    next(from) {
      const found = pieces.next(from - start);
      return found < 0 ? -1 : found + start;
    },
    length: piece.isWhole ? piece.folds.length : Number.POSITIVE_INFINITY,
  };
}

/** The kernel of this thread. */
let finder: PieceFinder | null = null;

function matchesOf(matcher: Matcher, bytes: Buffer): Matches {
  const matches = {
    length: 0,
    next(from: number) {
      const match = matcher.find(bytes, from);
      matches.length = match === null ? 0 : match.end - match.start;
      return match?.start ?? -1;
    },
  };
  return matches;
}

function hasMatch(buffer: Buffer, offset: number, matcher: Matcher): boolean {
  const text = documentText(buffer, offset);
  return text !== null && matcher.test(text);
}
