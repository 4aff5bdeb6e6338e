import { ApiError } from '../../protocol/errors.ts';
import type { Filter } from '../../protocol/filter.ts';
import { limits } from '../../protocol/limits.ts';
import type { BlockIndex } from '../storage/block-index.ts';
import { documentEntryLength } from '../storage/document-batch.ts';
import { isReadFailure } from '../storage/read-failure.ts';
import type { OpenSegment, Snapshot } from '../storage/snapshot.ts';
import { passesFilter } from './find-in-document.ts';
import type { QueryContext, Test } from './query.ts';
import { isOutOfTime } from './scan.ts';
import { selectRows } from './selected-rows.ts';

/**
 * Refuses (422 `scan_refused`) a regex that the text index cannot narrow where it would be judged on too many documents, or too
 * much text, of those that the filter lets pass.
 *
 * 1. A namespace that is small as a whole is never refused, and without a filter one that is large always is: nothing is read.
 * 2. Else the filter is asked: of memtables row by row, of segments by their columns, which the search needs next anyway.
 *    Bytes are those of the blocks that the rows lie in, shared among the rows of a block.
 */
export async function refuseLargeScan(
  context: QueryContext,
  { filter, mustBeNarrowed }: Test,
): Promise<void> {
  if (!mustBeNarrowed || isWithin(sizeOf(context.snapshot))) return;
  if (filter === null || !(await isNarrowed(context, filter))) throw tooLarge(filter !== null);
}

interface Size {
  documents: number;
  bytes: number;
}

const isWithin = ({ documents, bytes }: Size): boolean =>
  documents <= limits.scanDocumentsMax && bytes <= limits.scanBytesMax;

function sizeOf({ memtables, segments }: Snapshot): Size {
  const size = { documents: 0, bytes: 0 };
  for (const { memtable, rowCount } of memtables) {
    size.documents += rowCount;
    size.bytes += memtable.documentBytes;
  }
  for (const { reader } of segments) {
    size.documents += reader.rowCount;
    size.bytes += reader.toc.docsRawBytes;
  }
  return size;
}

/** Whether what passes the filter is little. A namespace that can't be read is the search's to tell of. */
async function isNarrowed(context: QueryContext, filter: Filter): Promise<boolean> {
  const size = { documents: 0, bytes: 0 };
  if (!(await addMemtables(context, filter, size))) return false;
  try {
    for (const segment of context.snapshot.segments) {
      await addSegment(context, segment, { filter, size });
      if (!isWithin(size)) return false;
    }
  } catch (error) {
    if (!isReadFailure(error) || isOutOfTime(error)) throw error;
  }
  return true;
}

/** Rows between two looks at the clock. */
const rowsPerLook = 64;

/** Answers false as soon as it is too much. */
async function addMemtables({ snapshot, slice }: QueryContext, filter: Filter, size: Size): Promise<boolean> {
  for (const { memtable, rowCount } of snapshot.memtables) {
    for (let row = 0; row < rowCount; row++) {
      if (row % rowsPerLook === 0 && slice.due()) await slice.giveWay();
      if (!memtable.isLiveAt(row, snapshot.sequence)) continue;
      const [buffer, offset] = [memtable.bufferOf(row), memtable.offsetOf(row)];
      if (!passesFilter(filter, { buffer, offset })) continue;
      size.documents++;
      size.bytes += documentEntryLength(buffer, offset);
      if (!isWithin(size)) return false;
    }
  }
  return true;
}

async function addSegment(
  context: QueryContext,
  segment: OpenSegment,
  { filter, size }: { readonly filter: Filter; readonly size: Size },
): Promise<void> {
  const { reader } = segment;
  const selected = await selectRows(context, segment, filter);
  size.documents += selected.count;
  if (!isWithin(size) || selected.count === 0) return;
  const index = await context.slice.waitFor(reader.blockIndex(context.tally));
  const stored = storedBytes(index);
  const share = storedBytesOf(index, selected.list()) / Math.max(1, stored);
  size.bytes += reader.toc.docsRawBytes * share;
}

function storedBytes(index: BlockIndex): number {
  let bytes = 0;
  for (let block = 0; block < index.count; block++) bytes += index.place(block).length;
  return bytes;
}

/** The stored bytes of some rows, in ascending order: each has its share of its block. */
function storedBytesOf(index: BlockIndex, rows: readonly number[]): number {
  let bytes = 0;
  for (const row of rows) {
    const block = index.blockOfRow(row);
    bytes += index.place(block).length / Math.max(1, index.rowCount(block));
  }
  return bytes;
}

function tooLarge(isFiltered: boolean): ApiError {
  const where = isFiltered ? 'the filter lets too much pass' : 'the namespace is big';
  const problem = `the index cannot narrow this regex, and ${where}`;
  const remedy = isFiltered ? 'narrow the filter, ' : '';
  const sentence = `q: ${problem}: ${remedy}add a literal of three characters, or send scan: true`;
  return new ApiError('scan_refused', sentence, { fields: { q: problem } });
}
