/**
 * A namespace as it becomes by random writes: segments of small chunks with tombstones, a frozen memtable and one that goes on after the
 * snapshot; beside it, what lives, as a plain list.
 */
import { columnsWriter } from '../../actors/columns/columns-writer.ts';
import { BlockCache, BlockFetcher } from '../../actors/storage/block-fetch.ts';
import { SegmentReader } from '../../actors/storage/segment-reader.ts';
import type { OpenSegment, Snapshot } from '../../actors/storage/snapshot.ts';
import { noTombstones, withDeleted } from '../../actors/storage/tombstones.ts';
import { searchableMemtable } from '../../actors/text/searchable-memtable.ts';
import { textIndexWriter } from '../../actors/text/text-index.ts';
import { vectorIndexWriter } from '../../actors/vector/vector-index-writer.ts';
import type { MetaObject } from '../../protocol/filter.ts';
import { parseJson } from '../../src/base/json.ts';
import { buildSegment, CountingStore, entryOf, type TestRow } from './segments.ts';

export interface WrittenDocument {
  readonly id: string;
  readonly sequence: number;
  readonly text: string;
  readonly meta: MetaObject;
  readonly vector: Float32Array | null;
}

export interface Written {
  readonly snapshot: Snapshot;
  readonly store: CountingStore;
  /** The documents that live, newest first. */
  readonly live: readonly WrittenDocument[];
}

export interface WrittenSizes {
  /** Rows of each segment, the oldest first; then of a frozen memtable, and of the one that takes writes. */
  readonly segments: readonly number[];
  readonly frozen: number;
  readonly memtable: number;
  /** Rows that come after the snapshot. */
  readonly later: number;
}

export interface WrittenParts {
  readonly text: (random: () => number, row: number) => string;
  /** Makes a document's meta as JSON text; null for none. */
  readonly meta: (random: () => number) => string | null;
  readonly vector?: (random: () => number) => Float32Array | null;
}

const replacedShare = 0.2;
const deletedShare = 0.05;

interface MadeRow extends TestRow {
  readonly document: WrittenDocument;
}

function makeRow(id: string, sequence: number, parts: WrittenParts, random: () => number): MadeRow {
  const text = parts.text(random, sequence);
  const meta = parts.meta(random);
  const vector = parts.vector?.(random) ?? null;
  const bytes = meta === null ? null : Buffer.from(meta);
  const parsed = bytes === null ? {} : (parseJson(bytes, { depthMax: 32 }) as MetaObject);
  return {
    id,
    sequence,
    writtenAt: 1.7e15 + sequence,
    entry: entryOf({ id, text: Buffer.from(text), meta: bytes, vector }),
    document: { id, sequence, text, meta: parsed, vector },
  };
}

export async function writtenRows(
  random: () => number,
  sizes: WrittenSizes,
  parts: WrittenParts,
): Promise<Written> {
  const store = new CountingStore();
  const fetcher = new BlockFetcher({ store, warmCache: null, cache: new BlockCache(100_000_000) });
  const live = new Map<string, { readonly document: WrittenDocument; readonly place: Place }>();
  const deleted: number[][] = sizes.segments.map(() => []);
  const memtables = { frozen: searchableMemtable(), memtable: searchableMemtable() };
  let sequence = 0;
  const supersede = (id: string, by: number) => {
    const place = live.get(id)?.place;
    live.delete(id);
    if (place === undefined) return;
    if (place.segment === null) place.memtable?.supersede(id, by);
    else deleted[place.segment]?.push(place.row);
  };
  const next = (place: (row: number) => Place, row: number): MadeRow => {
    const gone = `d${Math.floor(random() * sequence)}`;
    if (random() < deletedShare && live.has(gone)) supersede(gone, ++sequence);
    const old = `d${Math.floor(random() * sequence)}`;
    const id = random() < replacedShare && live.has(old) ? old : `d${sequence}`;
    const made = makeRow(id, ++sequence, parts, random);
    const memtable = place(row).memtable;
    if (live.get(id)?.place.memtable !== memtable || memtable === null) supersede(id, sequence);
    live.delete(id);
    live.set(id, { document: made.document, place: place(row) });
    return made;
  };
  const stored: MadeRow[][] = sizes.segments.map((count, segment) =>
    Array.from({ length: count }, (_, at) => next((row) => ({ segment, row, memtable: null }), at)),
  );
  const add = (memtable: ReturnType<typeof searchableMemtable>, count: number) => {
    for (let row = 0; row < count; row++) {
      const made = next(() => ({ segment: null, row, memtable }), row);
      memtable.add(made.entry, 0, made.sequence, made.writtenAt);
    }
  };
  add(memtables.frozen, sizes.frozen);
  add(memtables.memtable, sizes.memtable);
  const seen = [...live.values()].map(({ document }) => document);
  const at = { sequence, rowCount: memtables.memtable.rowCount };
  const tombstones = deleted.map((rows) => withDeleted(noTombstones, rows));
  add(memtables.memtable, sizes.later);
  const segments: OpenSegment[] = [];
  for (const [number, rows] of stored.entries()) {
    const key = `ns/ab/n/segment/s${number}`;
    const indexes = [textIndexWriter(), columnsWriter({ rowsMax: 300 }), vectorIndexWriter()];
    const { toc, bytes } = await buildSegment(rows, { documentBlockBytes: 2_000, indexes }, key);
    await store.putIfAbsent(key, [bytes]);
    const reader = new SegmentReader(key, toc, fetcher);
    segments.push({
      id: key,
      size: bytes.length,
      reader,
      tombstones: tombstones[number] ?? noTombstones,
      graphs: null,
    });
  }
  const snapshot: Snapshot = {
    version: 1,
    sequence: at.sequence,
    documents: seen.length,
    memtables: [
      { memtable: memtables.memtable, rowCount: at.rowCount },
      { memtable: memtables.frozen, rowCount: sizes.frozen },
    ],
    segments: segments.reverse(),
  };
  return { snapshot, store, live: seen.sort((a, b) => b.sequence - a.sequence) };
}

/** Where a document's row is. */
interface Place {
  readonly segment: number | null;
  readonly row: number;
  readonly memtable: ReturnType<typeof searchableMemtable> | null;
}
