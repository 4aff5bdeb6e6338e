import { ChunkBuilder } from '../../columns/chunk-builder.ts';
import { type ColumnValues, readColumn } from '../../columns/column-block.ts';
import type { Memtable } from '../../storage/memtable.ts';
import { Witnesses } from './witnesses.ts';

/**
 * A chunk of a memtable's rows with the columns that a segment would have. Rows are only ever added, so a chunk that is full is made once
 * and kept for as long as the memtable is; the last one is made anew when there are more rows.
 */
export interface BuiltChunk {
  readonly firstRow: number;
  readonly rowCount: number;
  readonly columns: ReadonlyMap<string, ColumnValues>;
  /** What is known of its live rows; see witnesses.ts. */
  readonly witnesses: Witnesses;
}

/** How many rows a chunk has at most: few, because the last chunk is made again and again. */
const rowsMax = 4_096;

interface Kept {
  readonly full: BuiltChunk[];
  last: BuiltChunk | null;
}

/** Kept by memtable, which actors/storage makes without knowing columns: chunks go when their memtable goes. */
const kept = new WeakMap<Memtable, Kept>();
/** Builds the chunks of every query of this thread: it holds some megabytes, and nothing yields between its first row and its last. */
let builder: ChunkBuilder | null = null;

/**
 * Answers the chunks of a memtable's first `rowCount` rows. `temporalKeys`, the keys that hold dates, never change while there is a
 * memtable: an import flushes it before.
 */
export function memtableChunks(
  memtable: Memtable,
  rowCount: number,
  temporalKeys: ReadonlySet<string>,
): BuiltChunk[] {
  let known = kept.get(memtable);
  if (known === undefined) {
    known = { full: [], last: null };
    kept.set(memtable, known);
  }
  for (;;) {
    const first = endOf(known.full);
    if (first >= rowCount) break;
    const { last } = known;
    if (last?.firstRow === first && endOf([last]) === rowCount) return [...known.full, last];
    const built = buildChunk(memtable, { firstRow: first, end: rowCount, temporalKeys });
    if (!built.isFull) {
      known.last = built.chunk;
      return [...known.full, built.chunk];
    }
    known.full.push(built.chunk);
  }
  return known.full.filter(({ firstRow }) => firstRow < rowCount);
}

/** Makes a column of each key that some documents have; null where they have more keys than are counted. */
export function documentColumns(
  documents: readonly { readonly buffer: Buffer; readonly offset: number }[],
  temporalKeys: ReadonlySet<string>,
): ReadonlyMap<string, ColumnValues> | null {
  builder ??= new ChunkBuilder();
  builder.clear();
  builder.temporalKeys = temporalKeys;
  for (const { buffer, offset } of documents) builder.add(buffer, offset);
  const place = { name: 'some documents', offset: 0 };
  const columns = new Map<string, ColumnValues>();
  for (const { key, raw } of builder.columns({ columnsMax: Number.POSITIVE_INFINITY }))
    columns.set(key, readColumn(raw, place));
  return builder.everyKey ? columns : null;
}

function endOf(chunks: readonly BuiltChunk[]): number {
  const last = chunks.at(-1);
  return last === undefined ? 0 : last.firstRow + last.rowCount;
}

function buildChunk(
  memtable: Memtable,
  {
    firstRow,
    end,
    temporalKeys,
  }: { readonly firstRow: number; readonly end: number; readonly temporalKeys: ReadonlySet<string> },
): { readonly chunk: BuiltChunk; readonly isFull: boolean } {
  builder ??= new ChunkBuilder();
  builder.clear();
  builder.temporalKeys = temporalKeys;
  let row = firstRow;
  while (row < end && !builder.isFull({ rowsMax })) {
    builder.add(memtable.bufferOf(row), memtable.offsetOf(row));
    row++;
  }
  const place = { name: 'a memtable', offset: 0 };
  const columns = new Map<string, ColumnValues>();
  for (const { key, raw } of builder.columns({})) columns.set(key, readColumn(raw, place));
  return {
    chunk: { firstRow, rowCount: row - firstRow, columns, witnesses: new Witnesses() },
    isFull: builder.isFull({ rowsMax }),
  };
}
