import { limits } from '../../../protocol/limits.ts';
import { must } from '../../../src/base/assert.ts';
import type { ColumnValues } from '../../columns/column-block.ts';
import type { ColumnDirectory, DirectoryColumn } from '../../columns/column-directory.ts';
import { openColumns } from '../../columns/columns-section.ts';
import { storedColumn } from '../../columns/stored-column.ts';
import { chunkRowsMax, valueKinds } from '../../columns/value-kinds.ts';
import type { ColumnRange } from '../../sql/plan/can-match.ts';
import type { ReadTally } from '../../storage/block-fetch.ts';
import { wantIds } from '../../storage/hash-order.ts';
import type { SegmentReader } from '../../storage/segment-reader.ts';
import type { OpenSegment, Snapshot } from '../../storage/snapshot.ts';
import { deletedBetween, isDeleted } from '../../storage/tombstones.ts';
import { memtableColumns } from '../memtable-columns.ts';
import { Witnesses } from './witnesses.ts';

/** A segment or a memtable as SQL reads it: chunks of rows with columns. */
export interface SqlPart {
  /** How many entries of each kind a key has in all chunks together, by key. */
  keys(): ReadonlyMap<string, Uint32Array>;
  /** What `keys` answers where that is kept, the same object each time; null where it is counted anew. */
  keptKeys(): ReadonlyMap<string, Uint32Array> | null;
  /** The part alone, for whoever searches its texts. */
  readonly snapshot: Snapshot;
  readonly rowCount: number;
  readonly chunks: readonly SqlChunk[];
  /** Whether no row is dead, and whether one lives. */
  readonly allLive: boolean;
  readonly hasLive: boolean;
  /** Finds the rows that documents with some ids may have, ascending; null where that is not known. Throws what reading throws. */
  rowsOf(ids: readonly string[]): Promise<Int32Array | null>;
  isLive(row: number): boolean;
}

export interface EntryPlace {
  readonly buffer: Buffer;
  readonly offset: number;
}

export interface SqlChunk {
  /** The number of its first row in the part. */
  readonly firstRow: number;
  readonly rowCount: number;
  /** Lists keys, each with how many entries of each kind it has. */
  keys(): Iterable<readonly [string, Uint32Array]>;
  /** Tells how many entries of each kind a key has; null where it has no column. */
  counts(key: string): Uint32Array | null;
  /** Tells what is known of a key's values without reading them. */
  range(key: string): ColumnRange;
  /** Reads the columns of some keys, as far as the chunk has them. Others have their turn between two. Throws what reading throws. */
  columns(names: readonly string[], turn: () => Promise<void>): Promise<ReadonlyMap<string, ColumnValues>>;
  /** Tells how many bytes columns of some names take where they are stored; 0 for memory. */
  columnBytes(names: readonly string[]): number;
  /** How many bytes documents and their blocks take, unpacked; null for memory. */
  readonly documentBytes: { readonly perRow: number; readonly ofBlock: number } | null;
  /** How many rows may be dead at most. */
  readonly deadRows: number;
  /** Grows whenever a row dies, so that what is known of live rows can be told old or new. */
  readonly age: number;
  /** What is known of its live rows; see witnesses.ts. */
  readonly witnesses: Witnesses;
  /** The place that its columns may be kept for: its segment, and its number in it. Null for memory. */
  readonly place: { readonly reader: SegmentReader; readonly chunk: number } | null;
  /** Reads documents by their rows in the part, ascending. Throws what reading throws. */
  documents(rows: readonly number[]): Promise<readonly EntryPlace[]>;
}

/** Opens the columns of all segments of a snapshot; answers its parts, oldest first. Throws what reading throws. */
export async function sqlParts(snapshot: Snapshot, tally: ReadTally): Promise<readonly SqlPart[]> {
  const segments = await Promise.all(
    [...snapshot.segments].reverse().map((segment) => segmentPart(snapshot, segment, tally)),
  );
  return [...segments, ...[...snapshot.memtables].reverse().map((source) => memtablePart(snapshot, source))];
}

function memtablePart(snapshot: Snapshot, source: Snapshot['memtables'][number]): SqlPart {
  const { memtable, rowCount } = source;
  // Where these are equal, none of its rows ever died.
  const allLive = memtable.liveCount === memtable.rowCount;
  const isLive = (row: number) => memtable.isLiveAt(row, snapshot.sequence);
  const columnsOf = memtableColumns(memtable, snapshot.temporalKeys ?? new Set());
  const chunks = columnsOf.chunks(rowCount).map(
    ({ firstRow, rowCount: rows, columns, witnesses }): SqlChunk => ({
      firstRow,
      rowCount: rows,
      deadRows: allLive ? 0 : rows,
      age: snapshot.sequence,
      witnesses,
      *keys() {
        for (const [key, { counts }] of columns) yield [key, counts];
      },
      counts: (key) => columns.get(key)?.counts ?? null,
      columnBytes: () => 0,
      documentBytes: null,
      range: (key) => (columns.has(key) ? 'unknown' : 'none'),
      columns: async () => columns,
      place: null,
      documents: async (wanted) =>
        wanted.map((row) => ({ buffer: memtable.bufferOf(row), offset: memtable.offsetOf(row) })),
    }),
  );
  return {
    snapshot: { ...snapshot, memtables: [source], segments: [] },
    rowCount,
    chunks,
    keys: () => keysOf(chunks),
    keptKeys: () => null,
    allLive,
    hasLive: hasLiveRow(rowCount, isLive),
    // It knows the newest row of an id, which may have come after the snapshot.
    rowsOf: async () => null,
    isLive,
  };
}

async function segmentPart(snapshot: Snapshot, segment: OpenSegment, tally: ReadTally): Promise<SqlPart> {
  const { reader, tombstones } = segment;
  const directory = await openColumns(reader, tally);
  const documents = (rows: readonly number[]) => readDocuments(segment, rows, tally);
  const chunks =
    directory === 'none'
      ? plainChunks(reader.rowCount, documents)
      : Array.from({ length: directory.chunkCount }, (_, chunk) =>
          storedChunk({ segment, directory, chunk, documents, tally }),
        );
  return {
    snapshot: { ...snapshot, memtables: [], segments: [segment] },
    rowCount: reader.rowCount,
    chunks,
    keys: () => (directory === 'none' ? new Map() : keptKeys(directory, chunks)),
    keptKeys: () => (directory === 'none' ? null : keptKeys(directory, chunks)),
    allLive: tombstones.count === 0,
    hasLive: tombstones.count < reader.rowCount,
    rowsOf: async (ids) => found(await reader.findRows(wantIds(ids), tally)),
    isLive: (row) => !isDeleted(tombstones, row),
  };
}

function hasLiveRow(rowCount: number, isLive: (row: number) => boolean): boolean {
  for (let row = 0; row < rowCount; row++) if (isLive(row)) return true;
  return false;
}

/** Sorts rows that were found, each once; those that are not there are negative. */
function found(rows: Iterable<number>): Int32Array {
  return Int32Array.from(new Set([...rows].filter((row) => row >= 0))).sort();
}

/** What SQL has found out about a segment's columns. */
interface Known {
  /** One a chunk. */
  readonly witnesses: readonly Witnesses[];
  /** The keys of all chunks, counted once. */
  keys: ReadonlyMap<string, Uint32Array> | null;
}

/** Kept by directory, which never changes and which actors/columns makes without knowing SQL: it goes when the directory goes. */
const knownOf = new WeakMap<ColumnDirectory, Known>();

function knownOfDirectory(directory: ColumnDirectory): Known {
  const known = knownOf.get(directory);
  if (known !== undefined) return known;
  const made = { witnesses: Array.from({ length: directory.chunkCount }, () => new Witnesses()), keys: null };
  knownOf.set(directory, made);
  return made;
}

function witnessesOf(directory: ColumnDirectory, chunk: number): Witnesses {
  return must(knownOfDirectory(directory).witnesses[chunk], 'a chunk');
}

function keptKeys(directory: ColumnDirectory, chunks: readonly SqlChunk[]): ReadonlyMap<string, Uint32Array> {
  const known = knownOfDirectory(directory);
  known.keys ??= keysOf(chunks);
  return known.keys;
}

function keysOf(chunks: readonly SqlChunk[]): ReadonlyMap<string, Uint32Array> {
  const keys = new Map<string, Uint32Array>();
  for (const chunk of chunks) {
    for (const [key, counts] of chunk.keys()) {
      const sums = keys.get(key);
      if (sums === undefined) keys.set(key, Uint32Array.from(counts));
      else
        for (let kind = 0; kind < sums.length; kind++)
          sums[kind] = (sums[kind] as number) + (counts[kind] ?? 0);
    }
  }
  return keys;
}

/** Makes the chunks of a segment none of whose rows has a key. */
function plainChunks(rowCount: number, documents: SqlChunk['documents']): SqlChunk[] {
  return Array.from({ length: Math.ceil(rowCount / chunkRowsMax) }, (_, chunk) => ({
    firstRow: chunk * chunkRowsMax,
    rowCount: Math.min(chunkRowsMax, rowCount - chunk * chunkRowsMax),
    keys: () => [],
    counts: () => null,
    columnBytes: () => 0,
    documentBytes: null,
    range: () => 'none',
    deadRows: 0,
    age: 0,
    witnesses: new Witnesses(),
    columns: async () => new Map(),
    place: null,
    documents,
  }));
}

function storedChunk(source: {
  readonly segment: OpenSegment;
  readonly directory: ColumnDirectory;
  readonly chunk: number;
  readonly documents: SqlChunk['documents'];
  readonly tally: ReadTally;
}): SqlChunk {
  const { segment, directory, chunk, documents, tally } = source;
  const { blocks, objectKey } = segment.reader;
  const rowCount = directory.rowCount(chunk);
  const firstRow = directory.firstRow(chunk);
  return {
    firstRow,
    rowCount,
    deadRows: deletedBetween(segment.tombstones, firstRow, firstRow + rowCount),
    age: segment.tombstones.count,
    witnesses: witnessesOf(directory, chunk),
    *keys() {
      for (const [key, { counts }] of directory.columnsOf(chunk)) yield [key, counts];
    },
    counts: (key) => directory.column(chunk, key)?.counts ?? null,
    columnBytes: (names) =>
      names.reduce((sum, name) => sum + (directory.column(chunk, name)?.place.length ?? 0), 0),
    documentBytes: {
      perRow: segment.reader.toc.docsRawBytes / segment.reader.rowCount,
      ofBlock: limits.documentBlockBytes,
    },
    range: (key) => rangeOf(directory.column(chunk, key)),
    async columns(names, turn) {
      const there = names.flatMap((name) => {
        const column = directory.column(chunk, name);
        return column === null ? [] : [{ name, column }];
      });
      const places = there.map(({ column }) => column.place);
      // A block that is at hand takes milliseconds to unpack; the others are fetched together.
      for (const place of places) {
        blocks.cachedOrLocal(place, tally);
        await turn();
      }
      const read = await blocks.fetch(places, tally);
      const columns = new Map<string, ColumnValues>();
      for (const [at, { name, column }] of there.entries()) {
        columns.set(name, storedColumn(must(read[at], 'a fetched column'), column, { objectKey, rowCount }));
        await turn();
      }
      return columns;
    },
    place: { reader: segment.reader, chunk },
    documents,
  };
}

/** Tells the range of a column from its counts. It is unknown where numbers are no exact doubles. */
function rangeOf(column: DirectoryColumn | null): ColumnRange {
  if (column === null) return 'none';
  const { counts, integerMin, integerMax, floatMin, floatMax } = column;
  const has = (kind: number) => (counts[kind] as number) > 0;
  if ([valueKinds.string, valueKinds.nested, valueKinds.other].some(has)) return 'unknown';
  const bounds: number[] = [];
  if ([valueKinds.integer, valueKinds.date, valueKinds.time].some(has))
    bounds.push(Number(integerMin), Number(integerMax));
  if (has(valueKinds.float)) bounds.push(floatMin, floatMax);
  if (has(valueKinds.true)) bounds.push(1);
  if (has(valueKinds.false)) bounds.push(0);
  if (bounds.length === 0) return 'none';
  if (bounds.some((bound) => Math.abs(bound) > Number.MAX_SAFE_INTEGER)) return 'unknown';
  return {
    least: Math.min(...bounds),
    greatest: Math.max(...bounds),
    isEveryRow: !has(valueKinds.missing) && !has(valueKinds.null),
  };
}

async function readDocuments(
  { reader }: OpenSegment,
  rows: readonly number[],
  tally: ReadTally,
): Promise<EntryPlace[]> {
  const index = await reader.blockIndex(tally);
  const numbers = rows.map((row) => index.blockOfRow(row));
  const wanted = [...new Set(numbers)];
  const blocks = await reader.readBlocks(wanted, tally);
  const byNumber = new Map(wanted.map((number, at) => [number, must(blocks[at], 'a block')]));
  return rows.map((row, at) => {
    const block = must(byNumber.get(numbers[at] as number), 'its block');
    return { buffer: block.buffer, offset: block.entryOffset(row - block.firstRow) };
  });
}
