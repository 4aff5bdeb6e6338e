/** Counts the live rows of a snapshot that pass a filter, as far as columns and memory say so: no document of a segment is read. */
import type { Filter } from '../../protocol/filter.ts';
import { bitCount, bitsIn } from '../columns/column-block.ts';
import { openColumns } from '../columns/columns-section.ts';
import { type ColumnTerm, columnTerms } from '../columns/filter-terms.ts';
import { ask } from '../columns/verdicts.ts';
import type { OpenSegment, Snapshot } from '../storage/snapshot.ts';
import { deletedBetween, type Tombstones, withoutDeleted } from '../storage/tombstones.ts';
import { FilterRows } from './filter-rows.ts';
import { passesFilter } from './find-in-document.ts';
import { MemtableFilter } from './memtable-filter.ts';
import type { QueryContext } from './query.ts';
import { isOver } from './time-slice.ts';

export interface SureRows {
  /** Live rows that pass for sure: of memtables all that pass, because their documents are in memory. */
  sure: number;
  /** Whether segments have rows that pass only if their documents do. */
  asks: boolean;
}

/** Counts the live rows that surely pass, and says whether others ask; null where the query's time was over. Throws what reading throws. */
export async function countSureRows(context: QueryContext, filter: Filter): Promise<SureRows | null> {
  const { snapshot, slice } = context;
  const terms = columnTerms(filter);
  const counted: SureRows = { sure: 0, asks: false };
  const segments = await slice.waitFor(
    Promise.all(snapshot.segments.map((segment) => openRows(context, segment, terms))),
  );
  for (const memtable of snapshot.memtables)
    if (!(await addMemtable(context, { memtable, filter, terms, counted }))) return null;
  for (const segment of segments) if (!(await addSegment(context, { ...segment, counted }))) return null;
  return counted;
}

interface MemtableRows {
  readonly memtable: Snapshot['memtables'][number];
  readonly filter: Filter;
  readonly terms: readonly ColumnTerm[];
  readonly counted: SureRows;
}

/** Documents that are judged between two looks at the clock. */
const documentsPerLook = 64;

/**
 * Counts the rows of a memtable; false where the query's time was over. Rows that columns are not sure of are judged at once: a moment later
 * columns may be there that were not, and whoever asks then for the unsure ones would miss them.
 */
async function addMemtable(
  { snapshot, slice }: QueryContext,
  { memtable: { memtable, rowCount }, filter, terms, counted }: MemtableRows,
): Promise<boolean> {
  const temporalKeys = snapshot.temporalKeys ?? new Set<string>();
  const columns = new MemtableFilter(memtable, { terms, slice, temporalKeys });
  let judged = 0;
  for (let end = rowCount; end > 0; ) {
    if (!columns.isSettled(end - 1)) {
      await columns.settle(end - 1);
      if (slice.timedOut) return false;
    }
    end = columns.passingEnd(end);
    if (end === 0 || !columns.isSettled(end - 1)) continue;
    const row = --end;
    if (!memtable.isLiveAt(row, snapshot.sequence)) continue;
    if (columns.verdict(row) === ask) {
      const [buffer, offset] = [memtable.bufferOf(row), memtable.offsetOf(row)];
      if (passesFilter(filter, { buffer, offset })) counted.sure++;
      if (++judged % documentsPerLook === 0 && (await isOver(slice))) return false;
    } else counted.sure++;
  }
  return true;
}

interface SegmentRows {
  readonly segment: OpenSegment;
  readonly rows: FilterRows;
  readonly chunkCount: number;
}

/** Opens a segment's columns, and asks for those of its newest chunks before anybody waits for them. */
async function openRows(
  { slice, tally }: QueryContext,
  segment: OpenSegment,
  terms: readonly ColumnTerm[],
): Promise<SegmentRows> {
  const { reader } = segment;
  const columns = await openColumns(reader, tally);
  const rows = new FilterRows(reader, columns, { terms, slice }, tally);
  const chunkCount = rows.chunkOfRow(reader.rowCount - 1) + 1;
  rows.readAhead(chunksBelow(chunkCount));
  return { segment, rows, chunkCount };
}

/** Counts the rows of a segment; false where the query's time was over. Throws what reading throws. */
async function addSegment(
  { slice }: QueryContext,
  { segment, rows, chunkCount, counted }: SegmentRows & { readonly counted: SureRows },
): Promise<boolean> {
  const { reader, tombstones } = segment;
  for (let chunk = chunkCount - 1; chunk >= 0; chunk--) {
    const first = rows.firstRowOf(chunk);
    const end = chunk + 1 === chunkCount ? reader.rowCount : rows.firstRowOf(chunk + 1);
    if (!rows.settleAtHand(first)) await slice.waitFor(rows.settle(first, chunksBelow(chunk)));
    if (slice.timedOut) return false;
    addChunk(rows.stateOf(chunk), { first, end, tombstones, counted });
  }
  return true;
}

function addChunk(
  { passing, count, asks }: ReturnType<FilterRows['stateOf']>,
  {
    first,
    end,
    tombstones,
    counted,
  }: {
    readonly first: number;
    readonly end: number;
    readonly tombstones: Tombstones;
    readonly counted: SureRows;
  },
): void {
  if (passing === 'none') return;
  if (asks !== 'none') counted.asks = true;
  if (asks === 'all') return;
  const dead = deletedBetween(tombstones, first, end);
  if (passing === 'all') counted.sure += end - first - dead;
  else if (dead === 0 && asks === 'none') counted.sure += count;
  else counted.sure += bitsWithout(dead === 0 ? passing : withoutDeleted(passing, first, tombstones), asks);
}

/** How many bits are set that are not among `less`. */
function bitsWithout(bits: Uint32Array, less: 'none' | Uint32Array): number {
  if (less === 'none') return bitsIn(bits);
  let count = 0;
  for (let at = 0; at < bits.length; at++) count += bitCount((bits[at] as number) & ~(less[at] as number));
  return count;
}

function* chunksBelow(chunk: number): Generator<number, void, void> {
  for (let next = chunk - 1; next >= 0; next--) yield next;
}
