/** Counts the live rows of a snapshot of which columns alone say that they pass a filter: no document is read. */
import type { Filter } from '../../protocol/filter.ts';
import { bitCount, bitsIn } from '../columns/column-block.ts';
import { openColumns } from '../columns/columns-section.ts';
import { type ColumnTerm, columnTerms } from '../columns/filter-terms.ts';
import { ask } from '../columns/verdicts.ts';
import type { OpenSegment, Snapshot } from '../storage/snapshot.ts';
import { deletedBetween, type Tombstones, withoutDeleted } from '../storage/tombstones.ts';
import { FilterRows } from './filter-rows.ts';
import { MemtableFilter } from './memtable-filter.ts';
import type { QueryContext } from './query.ts';

export interface SureRows {
  /** Live rows that pass for sure. */
  sure: number;
  /** Whether there are rows that pass only if their documents do. */
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
    if (!(await addMemtable(context, { memtable, terms, counted }))) return null;
  for (const segment of segments) if (!(await addSegment(context, { ...segment, counted }))) return null;
  return counted;
}

interface MemtableRows {
  readonly memtable: Snapshot['memtables'][number];
  readonly terms: readonly ColumnTerm[];
  readonly counted: SureRows;
}

/** Counts the rows of a memtable; false where the query's time was over. */
async function addMemtable(
  { snapshot, slice }: QueryContext,
  { memtable: { memtable, rowCount }, terms, counted }: MemtableRows,
): Promise<boolean> {
  const temporalKeys = snapshot.temporalKeys ?? new Set<string>();
  const filter = new MemtableFilter(memtable, { terms, slice, temporalKeys });
  for (let end = rowCount; end > 0; ) {
    if (!filter.isSettled(end - 1)) {
      await filter.settle(end - 1);
      if (slice.timedOut) return false;
    }
    end = filter.passingEnd(end);
    if (end === 0 || !filter.isSettled(end - 1)) continue;
    const row = --end;
    if (!memtable.isLiveAt(row, snapshot.sequence)) continue;
    if (filter.verdict(row) === ask) counted.asks = true;
    else counted.sure++;
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
