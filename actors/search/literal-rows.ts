import { documentText, documentTextLength, documentTextStart } from '../storage/document-batch.ts';
import type { DocumentBlock } from '../storage/document-block.ts';
import { isDeleted } from '../storage/tombstones.ts';
import type { Matcher } from '../text/regex.ts';
import type { ReadBlock } from './read-ahead.ts';

/** Bytes above which a block has one large document, or few, and RE2 is given its texts by pieces. */
const blockBytesMax = 512 * 1024;

/**
 * Counts the live rows of a block, within its ranges, whose texts have a literal: RE2 passes over a range's bytes at once, which takes half
 * the time of a call for each text. Null where the block is to be judged text by text: it is large, it has parts, or its rows may
 * fail the filter.
 */
export function countLiteral(
  { block, ranges, parts, tombstones }: ReadBlock,
  matcher: Matcher,
): number | null {
  if (block.buffer.length > blockBytesMax || (parts ?? null) !== null) return null;
  let count = 0;
  for (let at = 0; at < ranges.length; at += 2) {
    const first = (ranges[at] as number) - block.firstRow;
    const end = (ranges[at + 1] as number) - block.firstRow;
    for (const index of rowsWithLiteral(block, { first, end }, matcher))
      if (tombstones.count === 0 || !isDeleted(tombstones, block.firstRow + index)) count++;
  }
  return count;
}

/**
 * Finds the rows from `first` to before `end` whose texts have a literal. What a literal matches depends on nothing around it, so a match
 * that lies within a text is one of that text. A match may also lie in an id, a meta or a vector, or reach out of the text: RE2 is
 * asked again from where the text begins, or for the text alone, so that a row takes three calls at most.
 */
export function rowsWithLiteral(
  block: DocumentBlock,
  { first, end }: { readonly first: number; readonly end: number },
  matcher: Matcher,
): number[] {
  const { buffer } = block;
  const entryEnd = (index: number) =>
    index + 1 < block.rowCount ? block.entryOffset(index + 1) : buffer.length;
  const stop = entryEnd(end - 1);
  const bytes = stop === buffer.length ? buffer : buffer.subarray(0, stop);
  const found: number[] = [];
  let index = first;
  for (let from = block.entryOffset(first); from < stop; ) {
    const match = matcher.find(bytes, from);
    if (match === null) break;
    while (entryEnd(index) <= match.start) index++;
    const offset = block.entryOffset(index);
    const textStart = documentTextStart(buffer, offset);
    const textEnd = textStart + documentTextLength(buffer, offset);
    if (match.start < textStart) from = textStart;
    else {
      if (match.start < textEnd && (match.end <= textEnd || hasMatch(buffer, offset, matcher)))
        found.push(index);
      from = entryEnd(index);
    }
  }
  return found;
}

function hasMatch(buffer: Buffer, offset: number, matcher: Matcher): boolean {
  const text = documentText(buffer, offset);
  return text !== null && matcher.test(text);
}
