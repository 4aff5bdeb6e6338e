/**
 * Finds the rows of a block that have a literal by one pass over the bytes of all of them, which takes a tenth of the time of a call
 * of RE2 for each text.
 *
 * What a literal matches depends on nothing around it, so a match that lies within a text is one of that text. Rows with a piece of the
 * literal (literal-piece.ts) are found by vector instructions; RE2 is asked about a text only where the literal may be written there
 * otherwise than as it was asked for. A literal without such a piece is looked for by RE2.
 */

import { isSure, LiteralFinder, rowOf, type WantedPiece } from '../kernels/literal-finder.ts';
import { documentText, documentTextLength, documentTextStart } from '../storage/document-batch.ts';
import type { DocumentBlock } from '../storage/document-block.ts';
import { isDeleted } from '../storage/tombstones.ts';
import type { WantedLiteral } from '../text/judge.ts';
import type { Matcher } from '../text/regex.ts';
import type { ReadBlock } from './read-ahead.ts';

/** Bytes above which a block has one large document, or few, and RE2 is given its texts by pieces. */
const blockBytesMax = 512 * 1024;

/** Bytes between two ranges up to which the kernel looks through both at once: so many take as long as a call. */
const gapBytesMax = 16 * 1024;

/** A block, and which of its rows to look at. */
export type RowsOfBlock = Pick<ReadBlock, 'block' | 'ranges'>;

/** Whether a block's rows can be found at once. Else it is to be judged text by text: it is large, or it has parts. */
export function isByRows({ block, parts }: ReadBlock): boolean {
  return block.buffer.length <= blockBytesMax && (parts ?? null) === null;
}

/** Finds the live rows of a block as `literalRows` does; null where it is to be judged text by text. */
export function liveLiteralRows(read: ReadBlock, literal: WantedLiteral): readonly number[] | null {
  return isByRows(read) ? liveOf(read, literalRows(read, literal)) : null;
}

/** Answers the rows of a segment without those that were deleted. */
export function liveOf({ tombstones }: ReadBlock, rows: readonly number[]): readonly number[] {
  return tombstones.count === 0 ? rows : rows.filter((row) => !isDeleted(tombstones, row));
}

/** Counts the bytes of the entries in a block's ranges. */
export function bytesOfRanges({ block, ranges }: RowsOfBlock): number {
  let bytes = 0;
  for (let at = 0; at < ranges.length; at += 2) {
    const last = (ranges[at + 1] as number) - block.firstRow - 1;
    bytes += endOfEntry(block, last) - block.entryOffset((ranges[at] as number) - block.firstRow);
  }
  return bytes;
}

/** Finds the rows of a block, by their numbers in the segment and within its ranges, whose texts have a literal, deleted ones too. */
export function literalRows({ block, ranges }: RowsOfBlock, literal: WantedLiteral): readonly number[] {
  const found: number[] = [];
  for (let at = 0; at < ranges.length; ) {
    const next = literal.piece === null ? at + 2 : endOfNear({ block, ranges }, at);
    const first = (ranges[next - 2] as number) - block.firstRow;
    const end = (ranges[at + 1] as number) - block.firstRow;
    // Rows ascend, ranges descend.
    let range = next - 2;
    const isWanted = (index: number) => {
      const row = block.firstRow + index;
      while (row >= (ranges[range + 1] as number)) range -= 2;
      return row >= (ranges[range] as number);
    };
    for (const index of rowsWithLiteral(block, { first, end, isWanted }, literal))
      found.push(block.firstRow + index);
    at = next;
  }
  return found;
}

/** Answers where in `ranges` the first one stands that does not lie near the one before it, from the range at `at` on. */
function endOfNear({ block, ranges }: RowsOfBlock, at: number): number {
  const offsetOf = (row: number) => block.entryOffset(row - block.firstRow);
  let next = at + 2;
  for (; next < ranges.length; next += 2)
    if (offsetOf(ranges[next - 2] as number) - offsetOf(ranges[next + 1] as number) > gapBytesMax) break;
  return next;
}

interface RowsWanted {
  readonly first: number;
  readonly end: number;
  /** Answers whether a row lies in one of the ranges that were joined; asked of rows in ascending order, before RE2 is asked of their texts. */
  readonly isWanted: (index: number) => boolean;
}

/** Finds the rows from `first` to before `end` whose texts have a literal. */
export function rowsWithLiteral(
  block: DocumentBlock,
  rows: RowsWanted,
  { matcher, piece }: Pick<WantedLiteral, 'matcher' | 'piece'>,
): number[] {
  return piece === null ? rowsByMatcher(block, rows, matcher) : rowsByPiece(block, rows, { matcher, piece });
}

/** The kernel of this thread. */
let finder: LiteralFinder | null = null;

function rowsByPiece(
  block: DocumentBlock,
  { first, end, isWanted }: RowsWanted,
  { matcher, piece }: { readonly matcher: Matcher; readonly piece: WantedPiece },
): number[] {
  const { buffer } = block;
  finder ??= new LiteralFinder();
  const entries = buffer.subarray(block.entryOffset(first), endOfEntry(block, end - 1));
  const rows: number[] = [];
  for (const found of finder.find(piece, entries)) {
    const index = first + rowOf(found);
    if (!isWanted(index)) continue;
    if (isSure(found) || hasMatch(buffer, block.entryOffset(index), matcher)) rows.push(index);
  }
  return rows;
}

/**
 * Finds by RE2 the rows whose texts have a literal that has no piece. A match may also lie in an id, a meta or a vector, or reach out of the text: then the next one is looked for from where the text
 * begins, or the text alone is judged. So a row takes three calls at most.
 */
function rowsByMatcher(block: DocumentBlock, { first, end }: RowsWanted, matcher: Matcher): number[] {
  const { buffer } = block;
  const stop = endOfEntry(block, end - 1);
  const bytes = buffer.subarray(0, stop);
  const found: number[] = [];
  let index = first;
  for (let from = block.entryOffset(first); from < stop; ) {
    const match = matcher.find(bytes, from);
    if (match === null) break;
    while (endOfEntry(block, index) <= match.start) index++;
    const offset = block.entryOffset(index);
    const textStart = documentTextStart(buffer, offset);
    const textEnd = textStart + documentTextLength(buffer, offset);
    if (match.start < textStart) from = textStart;
    else {
      if (match.start < textEnd && (match.end <= textEnd || hasMatch(buffer, offset, matcher)))
        found.push(index);
      from = endOfEntry(block, index);
    }
  }
  return found;
}

function endOfEntry(block: DocumentBlock, index: number): number {
  return index + 1 < block.rowCount ? block.entryOffset(index + 1) : block.buffer.length;
}

function hasMatch(buffer: Buffer, offset: number, matcher: Matcher): boolean {
  const text = documentText(buffer, offset);
  return text !== null && matcher.test(text);
}
