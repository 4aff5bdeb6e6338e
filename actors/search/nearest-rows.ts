import { documentDims, documentVectorBytes } from '../storage/document-batch.ts';
import type { Memtable } from '../storage/memtable.ts';
import { isReadFailure } from '../storage/read-failure.ts';
import type { OpenSegment } from '../storage/snapshot.ts';
import { isDeleted } from '../storage/tombstones.ts';
import type { DistanceFrom } from '../vector/distance.ts';
import { Nearest, type Ranked } from '../vector/nearest.ts';
import { openVectors, type VectorIndexReader } from '../vector/vector-index-reader.ts';
import type { QueryContext } from './query.ts';
import type { ScanEnd } from './scan.ts';

/**
 * The nearest of all live rows of a snapshot, by their vectors alone: no document is read. Exact.
 *
 * Rows of a segment are told apart by what their sequence is at least, which keeps the order of sequences: those of a
 * segment lie between the ones of its neighbours and rise with the rows.
 */
export type NearRow = Ranked & { readonly row: number } & (
    | { readonly memtable: Memtable; readonly segment: null }
    | { readonly memtable: null; readonly segment: OpenSegment }
  );

/** Blocks that are asked for at once, 1 MB; as many more are on their way while they are looked at. */
const blocksAtOnce = 16;
/** Rows between two looks at the clock. */
const rowsPerLook = 128;

export async function nearestRows(
  context: QueryContext,
  distances: DistanceFrom,
  count: number,
): Promise<{ readonly rows: readonly NearRow[]; readonly end: ScanEnd }> {
  const { snapshot, slice, report } = context;
  const nearest = new Nearest<NearRow>(count);
  const ended = (end: ScanEnd) => ({ rows: nearest.sorted(), end });
  const late = { kind: 'timed-out', sequence: 0 } as const;
  for (const { memtable, rowCount } of snapshot.memtables) {
    const isInTime = await searchMemtable(context, memtable, { rowCount, distances, nearest });
    if (!isInTime) return ended(late);
  }
  try {
    const opening = snapshot.segments.map(({ reader }) => openVectors(reader, report));
    const opened = await slice.waitFor(Promise.all(opening));
    for (const [at, segment] of snapshot.segments.entries()) {
      const index = opened[at];
      if (index === undefined || index === 'none') continue;
      if (!(await searchSegment(context, segment, { index, distances, nearest }))) return ended(late);
    }
  } catch (cause) {
    if (!isReadFailure(cause)) throw cause;
    context.readFailed(cause);
    return ended({ kind: 'failed', sequence: 0, cause });
  }
  return ended({ kind: 'complete' });
}

interface MemtableSearch {
  readonly rowCount: number;
  readonly distances: DistanceFrom;
  readonly nearest: Nearest<NearRow>;
}

/** False where the deadline came. */
async function searchMemtable(
  { snapshot, slice }: QueryContext,
  memtable: Memtable,
  { rowCount, distances, nearest }: MemtableSearch,
): Promise<boolean> {
  // Entries stand at any address: their numbers are copied to one where they can be read.
  const { dims } = distances;
  const values = new Float32Array(dims);
  const bytes = new Uint8Array(values.buffer);
  for (let row = 0; row < rowCount; row++) {
    if (row % rowsPerLook === 0 && slice.due()) {
      await slice.giveWay();
      if (slice.timedOut) return false;
    }
    const [buffer, offset] = [memtable.bufferOf(row), memtable.offsetOf(row)];
    if (documentDims(buffer, offset) !== dims || !memtable.isLiveAt(row, snapshot.sequence)) continue;
    bytes.set(documentVectorBytes(buffer, offset));
    const candidate = { distance: distances.to(values), sequence: memtable.sequenceOf(row) };
    if (nearest.wants(candidate)) nearest.add({ ...candidate, row, memtable, segment: null });
  }
  return true;
}

interface SegmentSearch {
  readonly index: VectorIndexReader;
  readonly distances: DistanceFrom;
  readonly nearest: Nearest<NearRow>;
}

/** False where the deadline came. */
async function searchSegment(
  { slice, report }: QueryContext,
  segment: OpenSegment,
  { index, distances, nearest }: SegmentSearch,
): Promise<boolean> {
  const { reader, tombstones } = segment;
  const { minSequence } = reader.toc;
  const { blocks, dims } = index;
  const ask = (from: number) => {
    const asked = reader.blocks.fetch(blocks.slice(from, from + blocksAtOnce), report);
    // Thrown when its turn comes; the search may end before.
    asked.catch(() => {});
    return asked;
  };
  let next = ask(0);
  for (let from = 0; from < blocks.length; from += blocksAtOnce) {
    const read = await slice.waitFor(next);
    if (from + blocksAtOnce < blocks.length) next = ask(from + blocksAtOnce);
    for (const [i, block] of read.entries()) {
      const { rows, values } = index.vectorsOf(block, blocks[from + i] as (typeof blocks)[number]);
      for (let at = 0; at < rows.length; at++) {
        const row = rows[at] as number;
        if (isDeleted(tombstones, row)) continue;
        const candidate = { distance: distances.to(values, at * dims), sequence: minSequence + row };
        if (nearest.wants(candidate)) nearest.add({ ...candidate, row, memtable: null, segment });
      }
      if (!slice.due()) continue;
      await slice.giveWay();
      if (slice.timedOut) return false;
    }
  }
  return true;
}
