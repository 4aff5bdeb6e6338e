/** Queries over a snapshot that a test made, without an actor. */

import { PairTable } from '../../actors/kernels/pair-table.ts';
import { unboundedRoom } from '../../actors/search/answer-room.ts';
import { RowFinding } from '../../actors/search/find-rows-task.ts';
import { noGraphs } from '../../actors/search/graph-source.ts';
import type { QueryContext } from '../../actors/search/query.ts';
import { runSearch } from '../../actors/search/run-search.ts';
import { ScanRoom } from '../../actors/search/scan-room.ts';
import { KeptColumns } from '../../actors/search/sql/kept-columns.ts';
import { TimeSlice } from '../../actors/search/time-slice.ts';
import type { Holding, LargeBuffers, PairTables } from '../../actors/sql/room.ts';
import { BlockCache, BlockFetcher, emptyReadTally } from '../../actors/storage/block-fetch.ts';
import { ReadDeadline } from '../../actors/storage/read-deadline.ts';
import { SegmentReader } from '../../actors/storage/segment-reader.ts';
import type { Snapshot } from '../../actors/storage/snapshot.ts';
import { noTombstones } from '../../actors/storage/tombstones.ts';
import { MatchRunner } from '../../actors/text/match-task.ts';
import { QueryPatterns } from '../../actors/text/query-pattern.ts';
import { searchableMemtable } from '../../actors/text/searchable-memtable.ts';
import { MemoryBudget } from '../../actors/thread/memory-budget.ts';
import { parseSearchBody } from '../../protocol/search.ts';
import type { FakeClock } from './fake-clock.ts';
import { buildSegment, CountingStore, entryOf, type TestRow } from './segments.ts';

export const identity = { tenantId: 1, name: 'n', namespaceId: 'ab'.repeat(16), createdAt: '' };

/** Document d1 of sequence 1, and so on; `n` of its meta is one of three numbers. */
export function row(sequence: number, text: string | null, vector: Float32Array | null = null): TestRow {
  const id = `d${sequence}`;
  const meta = Buffer.from(JSON.stringify({ n: sequence % 3 }));
  return {
    id,
    sequence,
    writtenAt: 1.7e15 + sequence,
    entry: entryOf({ id, text: text === null ? null : Buffer.from(text), meta, vector }),
  };
}

const segmentKey = 'ns/ab/n/segment/s';

/** The older half of the rows in a segment, the newer one in a memtable. */
export async function snapshotOfRows(
  rows: readonly TestRow[],
  cacheBytes = 100_000_000,
): Promise<{ readonly snapshot: Snapshot; readonly store: CountingStore }> {
  const half = Math.ceil(rows.length / 2);
  const { toc, bytes } = await buildSegment(rows.slice(0, half));
  const store = new CountingStore();
  await store.putIfAbsent(segmentKey, [bytes]);
  const fetcher = new BlockFetcher({ store, warmCache: null, cache: new BlockCache(cacheBytes) });
  const reader = new SegmentReader(segmentKey, toc, fetcher);
  const memtable = searchableMemtable();
  for (const { entry, sequence, writtenAt } of rows.slice(half)) memtable.add(entry, 0, sequence, writtenAt);
  const snapshot = {
    version: 1,
    sequence: rows.length,
    documents: rows.length,
    memtables: [{ memtable, rowCount: memtable.rowCount }],
    segments: [{ id: 's', size: bytes.length, reader, tombstones: noTombstones, graphs: null }],
  };
  return { snapshot, store };
}

/** As of two threads: one keeps what it has decoded, the other hardly anything. */
const much = new KeptColumns(new MemoryBudget(256 * 1024 * 1024));
const little = new KeptColumns(new MemoryBudget(200_000));
const patterns = new QueryPatterns();
const matches = new MatchRunner();
const finding = new RowFinding();
let contexts = 0;

/** All of them have been used before, and are used again at once: what is left in them must not be seen. */
const usedBuffers: LargeBuffers = {
  bytesMin: 0,
  take: (byteLength) => ({
    buffer: new Uint8Array(byteLength).fill(0xa5).buffer,
    isNew: false,
  }),
  give(buffer) {
    new Uint8Array(buffer).fill(0x5a);
  },
  pairTables: usedTables(),
};

/** A table for however few pairs, of which each was given back with many pairs in it. */
function usedTables(): PairTables {
  const free: PairTable[] = [];
  const many = Int32Array.from({ length: 20_000 }, (_, at) => at % 700);
  return {
    askedMin: 100,
    take() {
      const table = free.pop() ?? new PairTable();
      table.reset();
      return table;
    },
    give(table) {
      table.internAll(many.slice(), many.toReversed(), () => {});
      free.push(table);
    },
  };
}

/** What a query is run with; in some of them each look finds the turn over: answers must be the same, wherever others had their turn. */
export function contextOf(snapshot: Snapshot, clock: FakeClock, deadlineMs = 1e9): QueryContext {
  const slice = new TimeSlice(clock, new ReadDeadline(clock, deadlineMs));
  if (contexts % 4 === 1) slice.due = () => true;
  return {
    identity,
    vector: null,
    snapshot,
    slice,
    tally: emptyReadTally(),
    foundAs: 'warm',
    cursorKeys: { present: Buffer.from('key'), previous: null },
    graphs: noGraphs,
    room: unboundedRoom,
    sqlHolding: holdingOf(100_000_000),
    patterns,
    match: async (task) => matches.run(task),
    findRows: async (task) => finding.run(task),
    scanRoom: new ScanRoom(),
    keptColumns: contexts++ % 3 === 2 ? little : much,
    buffers: usedBuffers,
    monotonic: () => clock.monotonic(),
    beganAt: clock.monotonic(),
    readFailed: () => {},
  };
}

/** Has others have their turn whenever a query looks; `turns` counts how often. */
export function alwaysDue({ slice }: QueryContext): { turns: number } {
  const counted = { turns: 0 };
  slice.due = () => true;
  const { giveWay } = slice;
  slice.giveWay = () => {
    counted.turns++;
    return giveWay.call(slice);
  };
  return counted;
}

/** So many bytes, and no more. */
export function holdingOf(bytesMax: number): Holding {
  let held = 0;
  return {
    grow: (bytes) => {
      if (held + bytes > bytesMax) return false;
      held += bytes;
      return true;
    },
  };
}

export const search = async (context: QueryContext, body: object) =>
  JSON.parse(String(await runSearch(context, parseSearchBody(body))));
