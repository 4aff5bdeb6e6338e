/**
 * The nearest of the live rows of a snapshot that may pass a filter, by their vectors: no document of a segment is read.
 *
 * 1. Of memtables every vector is looked at whose row may pass, as far as columns tell (memtable-filter.ts); where they can't, the
 *    row's document is asked if the row would be among the nearest.
 * 2. Of a segment, columns say which rows may pass (selected-rows.ts). Where they are few every one of their vectors is
 *    looked at, else the segment's graphs are asked for candidates (nearest-by-graphs.ts): plan-nearest.ts decides.
 * 3. Distances are those of the vectors themselves, wherever a row was found.
 *
 * Rows of a segment are told apart by what their sequence is at least, which keeps the order of sequences: those of a
 * segment lie between the ones of its neighbours and rise with the rows.
 */
import type { Filter } from '../../protocol/filter.ts';
import { columnTerms } from '../columns/filter-terms.ts';
import { ask, no, yes } from '../columns/verdicts.ts';
import { documentDims, documentVectorStart } from '../storage/document-batch.ts';
import type { Memtable } from '../storage/memtable.ts';
import { isReadFailure } from '../storage/read-failure.ts';
import type { OpenSegment } from '../storage/snapshot.ts';
import type { DistanceFrom } from '../vector/distance.ts';
import { Nearest } from '../vector/nearest.ts';
import { startOfRow } from '../vector/vector-block.ts';
import { openVectors, type VectorBlockPlace, type VectorIndexReader } from '../vector/vector-index-reader.ts';
import { passesFilter } from './find-in-document.ts';
import { MemtableFilter } from './memtable-filter.ts';
import type { NearRow, SearchedSegment } from './near-row.ts';
import { nearestByGraphs } from './nearest-by-graphs.ts';
import { planNearest } from './plan-nearest.ts';
import type { QueryContext } from './query.ts';
import { isOutOfTime, type ScanEnd } from './scan.ts';
import { type SelectedRows, selectRows } from './selected-rows.ts';

export interface NearestWanted {
  readonly distances: DistanceFrom;
  readonly count: number;
  readonly filter: Filter | null;
  /** No graph is asked. */
  readonly exact: boolean;
}

/** Blocks that are asked for at once, 1 MB; as many more are on their way while they are looked at. */
const blocksAtOnce = 64;
/** Rows between two looks at the clock. */
const rowsPerLook = 128;

export async function nearestRows(
  context: QueryContext,
  wanted: NearestWanted,
): Promise<{ readonly rows: readonly NearRow[]; readonly end: ScanEnd }> {
  const { snapshot } = context;
  const nearest = new Nearest<NearRow>(wanted.count);
  const ended = (end: ScanEnd) => ({ rows: nearest.sorted(), end });
  const late = { kind: 'timed-out', sequence: 0 } as const;
  for (const { memtable, rowCount } of snapshot.memtables) {
    if (!(await searchMemtable(context, memtable, { ...wanted, rowCount, nearest }))) return ended(late);
  }
  try {
    const isInTime = await searchSegments(context, wanted, nearest);
    return ended(isInTime ? { kind: 'complete' } : late);
  } catch (cause) {
    if (!isReadFailure(cause)) throw cause;
    if (isOutOfTime(cause)) return ended(late);
    context.readFailed(cause);
    return ended({ kind: 'failed', sequence: 0, cause });
  }
}

interface MemtableSearch extends NearestWanted {
  readonly rowCount: number;
  readonly nearest: Nearest<NearRow>;
}

const noBuffer = Buffer.alloc(0);
const noKeys: ReadonlySet<string> = new Set();

/** False where the deadline came. */
async function searchMemtable(
  { snapshot, slice }: QueryContext,
  memtable: Memtable,
  { rowCount, distances, filter, nearest }: MemtableSearch,
): Promise<boolean> {
  const { dims } = distances;
  // Neighbouring rows came in one write, and lie in one buffer.
  let lastBuffer: Buffer = noBuffer;
  let view: DataView = new DataView(noBuffer.buffer);
  const terms = columnTerms(filter ?? { terms: [] });
  const temporalKeys = snapshot.temporalKeys ?? noKeys;
  const columns = filter === null ? null : new MemtableFilter(memtable, { terms, slice, temporalKeys });
  for (let row = 0; row < rowCount; row++) {
    if (row % rowsPerLook === 0 && slice.due()) {
      await slice.giveWay();
      if (slice.timedOut) return false;
    }
    const [buffer, offset] = [memtable.bufferOf(row), memtable.offsetOf(row)];
    if (documentDims(buffer, offset) !== dims || !memtable.isLiveAt(row, snapshot.sequence)) continue;
    if (columns !== null && !columns.isSettled(row)) await columns.settle(row);
    const verdict = columns?.verdict(row) ?? ask;
    if (verdict === no) continue;
    if (buffer !== lastBuffer) {
      lastBuffer = buffer;
      view = new DataView(buffer.buffer, buffer.byteOffset, buffer.byteLength);
    }
    const distance = distances.toBytes(view, documentVectorStart(buffer, offset));
    const candidate = { distance, sequence: memtable.sequenceOf(row) };
    if (!nearest.wants(candidate)) continue;
    if (verdict !== yes && !passesFilter(filter, { buffer, offset })) continue;
    nearest.add({ ...candidate, row, memtable, segment: null });
  }
  return true;
}

/** False where the deadline came. */
async function searchSegments(
  context: QueryContext,
  wanted: NearestWanted,
  nearest: Nearest<NearRow>,
): Promise<boolean> {
  const { snapshot, slice, tally } = context;
  const searched = await Promise.all(
    snapshot.segments.map((segment) => openSearched(context, segment, wanted.filter)),
  );
  if (slice.timedOut) return false;
  const byGraphs = [];
  for (const each of searched) {
    if (each === null) continue;
    const { segment, index, selected } = each;
    const asked = wanted.exact || wanted.distances.isUndirected ? null : segment.graphs;
    const plan = planNearest({
      count: wanted.count,
      selected: selected.count,
      rows: segment.reader.rowCount,
      dims: index.dims,
      blocks: index.blocks.length,
      hasGraphs: (asked?.length ?? 0) > 0,
    });
    const graphs = plan.kind === 'graph' ? await slice.waitFor(context.graphs.open(segment, tally)) : null;
    if (plan.kind === 'graph' && graphs !== null) byGraphs.push({ ...each, graphs, ask: plan.ask });
    else if (!(await searchSegment(context, each, { ...wanted, nearest }))) return false;
  }
  const unanswered = await nearestByGraphs(context, byGraphs, { ...wanted, nearest });
  for (const each of unanswered)
    if (!(await searchSegment(context, each, { ...wanted, nearest }))) return false;
  return !slice.timedOut;
}

/** Opens a segment's vectors and selects its rows; null where it has no vectors, or no row that is looked at. */
async function openSearched(
  context: QueryContext,
  segment: OpenSegment,
  filter: Filter | null,
): Promise<SearchedSegment | null> {
  const [index, selected] = await Promise.all([
    openVectors(segment.reader, context.tally),
    selectRows(context, segment, filter),
  ]);
  return index === 'none' || selected.count === 0 ? null : { segment, index, selected };
}

interface SegmentSearch extends NearestWanted {
  readonly nearest: Nearest<NearRow>;
}

/** Every vector of the rows that are looked at. False where the deadline came. */
async function searchSegment(
  { slice, tally }: QueryContext,
  { segment, index, selected }: SearchedSegment,
  { distances, nearest }: SegmentSearch,
): Promise<boolean> {
  const { reader } = segment;
  const { dims } = index;
  const offer = (row: number, values: Float32Array, start: number) => {
    const candidate = { distance: distances.to(values, start), sequence: reader.toc.minSequence + row };
    if (nearest.wants(candidate)) nearest.add({ ...candidate, row, memtable: null, segment });
  };
  const { blocks, rowsOf } = blocksWith(index, selected, reader.rowCount);
  const ask = (from: number) => {
    const asked = reader.blocks.fetch(blocks.slice(from, from + blocksAtOnce), tally);
    // Thrown when its turn comes; the search may end before.
    asked.catch(() => {});
    return asked;
  };
  let next = ask(0);
  for (let from = 0; from < blocks.length; from += blocksAtOnce) {
    const read = await slice.waitFor(next);
    if (from + blocksAtOnce < blocks.length) next = ask(from + blocksAtOnce);
    for (const [i, raw] of read.entries()) {
      const block = index.vectorsOf(raw, blocks[from + i] as VectorBlockPlace);
      const wanted = rowsOf?.[from + i];
      if (wanted === undefined) {
        for (const [at, row] of block.rows.entries())
          if (selected.has(row)) offer(row, block.values, at * dims);
      } else {
        for (const row of wanted) {
          const start = startOfRow(block, row);
          if (start >= 0) offer(row, block.values, start);
        }
      }
      if (!slice.due()) continue;
      await slice.giveWay();
      if (slice.timedOut) return false;
    }
  }
  return true;
}

/**
 * The blocks that have some rows. Where the rows are few only their blocks are read, and each block's rows are known: `rowsOf`
 * stands beside `blocks`.
 */
function blocksWith(
  { blocks }: VectorIndexReader,
  selected: SelectedRows,
  rowCount: number,
): { readonly blocks: readonly VectorBlockPlace[]; readonly rowsOf: readonly number[][] | null } {
  if (selected.count > rowCount / 4) return { blocks, rowsOf: null };
  const found: VectorBlockPlace[] = [];
  const rowsOf: number[][] = [];
  let at = 0;
  let last = -1;
  for (const row of selected.list()) {
    while (at + 1 < blocks.length && (blocks[at + 1] as VectorBlockPlace).firstRow <= row) at++;
    if (at !== last) {
      found.push(blocks[at] as VectorBlockPlace);
      rowsOf.push([]);
      last = at;
    }
    rowsOf.at(-1)?.push(row);
  }
  return { blocks: found, rowsOf };
}
