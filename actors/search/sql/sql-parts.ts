import { limits } from '../../../protocol/limits.ts';
import { must } from '../../../src/base/assert.ts';
import type { ColumnValues } from '../../columns/column-block.ts';
import type { ColumnDirectory, DirectoryColumn } from '../../columns/column-directory.ts';
import { openColumns } from '../../columns/columns-section.ts';
import { storedColumn } from '../../columns/stored-column.ts';
import { chunkRowsMax, valueKinds } from '../../columns/value-kinds.ts';
import type { ColumnRange } from '../../sql/plan/can-match.ts';
import type { ReadReport } from '../../storage/block-fetch.ts';
import { wantIds } from '../../storage/hash-order.ts';
import type { SegmentReader } from '../../storage/segment-reader.ts';
import type { OpenSegment, Snapshot } from '../../storage/snapshot.ts';
import { deletedBetween, isDeleted } from '../../storage/tombstones.ts';
import { memtableChunks } from './memtable-columns.ts';
import { Witnesses } from './witnesses.ts';

/** The parts of a snapshot as SQL reads them, oldest first: chunks of rows with columns. */
export interface SqlPart {
  /** Keys, with how many entries they have of each kind in all chunks together. */
  keys(): ReadonlyMap<string, Uint32Array>;
  /** The part alone, for whoever searches its texts. */
  readonly snapshot: Snapshot;
  readonly rowCount: number;
  readonly chunks: readonly SqlChunk[];
  readonly allLive: boolean;
  readonly hasLive: boolean;
  /** Rows that may be those of ids, ascending; null where it is not known. Throws what reading throws. */
  rowsOf(ids: readonly string[]): Promise<Int32Array | null>;
  isLive(row: number): boolean;
}

export interface EntryPlace {
  readonly buffer: Buffer;
  readonly offset: number;
}

export interface SqlChunk {
  /** In the part. */
  readonly firstRow: number;
  readonly rowCount: number;
  /** Keys, with how many entries they have of each kind. */
  keys(): Iterable<readonly [string, Uint32Array]>;
  /** How many entries of each kind the key has; null where it has no column. */
  counts(key: string): Uint32Array | null;
  /** What is known of a key's values without reading them. */
  range(key: string): ColumnRange;
  /** Columns of those keys that the chunk has. Others have their turn between two of them. Throws what reading throws. */
  columns(names: readonly string[], turn: () => Promise<void>): Promise<ReadonlyMap<string, ColumnValues>>;
  /** What columns of those names take where they are stored; 0 for memory. */
  columnBytes(names: readonly string[]): number;
  /** What documents take, unpacked; null for memory. */
  readonly documentBytes: { readonly perRow: number; readonly ofBlock: number } | null;
  /** Dead rows, at most. */
  readonly deadRows: number;
  /** Of what is dead: grows with each row that dies, for any reader. */
  readonly age: number;
  /** What is known of its live rows; see witnesses.ts. */
  readonly witnesses: Witnesses;
  /** Where its columns may be kept: its segment, and its number in it. Null for memory. */
  readonly place: { readonly reader: SegmentReader; readonly chunk: number } | null;
  /** Of rows of the part, ascending. */
  documents(rows: readonly number[]): Promise<readonly EntryPlace[]>;
}

export async function sqlParts(snapshot: Snapshot, report: ReadReport): Promise<readonly SqlPart[]> {
  const segments = await Promise.all(
    [...snapshot.segments].reverse().map((segment) => segmentPart(snapshot, segment, report)),
  );
  return [...segments, ...[...snapshot.memtables].reverse().map((source) => memtablePart(snapshot, source))];
}

function memtablePart(snapshot: Snapshot, source: Snapshot['memtables'][number]): SqlPart {
  const { memtable, rowCount } = source;
  // Then none of its rows ever died.
  const allLive = memtable.liveCount === memtable.rowCount;
  const isLive = (row: number) => memtable.isLiveAt(row, snapshot.sequence);
  const chunks = memtableChunks(memtable, rowCount, snapshot.temporalKeys ?? new Set()).map(
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
    allLive,
    hasLive: hasLiveRow(rowCount, isLive),
    // It knows the newest row of an id, which may have come after the snapshot.
    rowsOf: async () => null,
    isLive,
  };
}

async function segmentPart(snapshot: Snapshot, segment: OpenSegment, report: ReadReport): Promise<SqlPart> {
  const { reader, tombstones } = segment;
  const directory = await openColumns(reader, report);
  const documents = (rows: readonly number[]) => readDocuments(segment, rows, report);
  const chunks =
    directory === 'none'
      ? plainChunks(reader.rowCount, documents)
      : Array.from({ length: directory.chunkCount }, (_, chunk) =>
          storedChunk({ segment, directory, chunk, documents, report }),
        );
  return {
    snapshot: { ...snapshot, memtables: [], segments: [segment] },
    rowCount: reader.rowCount,
    chunks,
    keys: () => (directory === 'none' ? new Map() : keptKeys(directory, chunks)),
    allLive: tombstones.count === 0,
    hasLive: tombstones.count < reader.rowCount,
    rowsOf: async (ids) => found(await reader.findRows(wantIds(ids), report)),
    isLive: (row) => !isDeleted(tombstones, row),
  };
}

function hasLiveRow(rowCount: number, isLive: (row: number) => boolean): boolean {
  for (let row = 0; row < rowCount; row++) if (isLive(row)) return true;
  return false;
}

/** Ascending, each once, without those that are not there. */
function found(rows: Iterable<number>): Int32Array {
  return Int32Array.from(new Set([...rows].filter((row) => row >= 0))).sort();
}

const witnessesOfDirectories = new WeakMap<ColumnDirectory, Witnesses[]>();

function witnessesOf(directory: ColumnDirectory, chunk: number): Witnesses {
  let known = witnessesOfDirectories.get(directory);
  if (known === undefined) {
    known = Array.from({ length: directory.chunkCount }, () => new Witnesses());
    witnessesOfDirectories.set(directory, known);
  }
  return must(known[chunk], 'a chunk');
}

const ofDirectories = new WeakMap<ColumnDirectory, ReadonlyMap<string, Uint32Array>>();

/** A directory never changes. */
function keptKeys(directory: ColumnDirectory, chunks: readonly SqlChunk[]): ReadonlyMap<string, Uint32Array> {
  let keys = ofDirectories.get(directory);
  if (keys === undefined) {
    keys = keysOf(chunks);
    ofDirectories.set(directory, keys);
  }
  return keys;
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

/** Of rows without any key. */
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
  readonly report: ReadReport;
}): SqlChunk {
  const { segment, directory, chunk, documents, report } = source;
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
      // One that is at hand takes milliseconds to unpack; those that are not come together.
      for (const place of places) {
        blocks.cachedOrLocal(place, report);
        await turn();
      }
      const read = await blocks.fetch(places, report);
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

/** Numbers that are no exact doubles are not known. */
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
  report: ReadReport,
): Promise<EntryPlace[]> {
  const index = await reader.blockIndex(report);
  const numbers = rows.map((row) => index.blockOfRow(row));
  const wanted = [...new Set(numbers)];
  const blocks = await reader.readBlocks(wanted, report);
  const byNumber = new Map(wanted.map((number, at) => [number, must(blocks[at], 'a block')]));
  return rows.map((row, at) => {
    const block = must(byNumber.get(numbers[at] as number), 'its block');
    return { buffer: block.buffer, offset: block.entryOffset(row - block.firstRow) };
  });
}
