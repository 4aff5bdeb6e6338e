import { ChunkBuilder } from '../columns/chunk-builder.ts';
import { type ColumnValues, readColumn } from '../columns/column-block.ts';
import { documentMetaLength } from '../storage/document-batch.ts';
import type { Memtable } from '../storage/memtable.ts';
import { Witnesses } from './sql/witnesses.ts';

/** Some neighbouring rows of a memtable with the columns that a segment would have; it never changes. */
export interface BuiltChunk {
  readonly firstRow: number;
  readonly rowCount: number;
  readonly columns: ReadonlyMap<string, ColumnValues>;
  /** Whether every key of the rows has a column. */
  readonly everyKey: boolean;
  /** What SQL knows of its live rows; see witnesses.ts. */
  readonly witnesses: Witnesses;
}

/** Rows of a slot: few, because the chunk of the newest rows is made again and again. */
const slotRows = 4_096;
/** Bytes of metas after which a chunk ends early: a turn makes no more than that. */
const chunkMetaBytesMax = 512 * 1024;
/** Newer rows of a slot that filters go without: to judge so many documents takes less than to make the chunk again for each few rows. */
const rowsWithoutMax = 512;

/** The chunks of a slot's rows, ascending. The last one is made anew when there are more rows, unless it is full. */
interface Slot {
  readonly full: BuiltChunk[];
  open: BuiltChunk | null;
}

/**
 * The columns of one memtable, made when they are first asked for and kept for as long as the memtable is. Rows are only ever added,
 * so what is made of full chunks stays right. Every `slotRows` rows are a slot, so that the newest rows have columns without those
 * before them.
 */
export class MemtableColumns {
  readonly #memtable: Memtable;
  readonly #temporalKeys: ReadonlySet<string>;
  readonly #slots = new Map<number, Slot>();

  constructor(memtable: Memtable, temporalKeys: ReadonlySet<string>) {
    this.#memtable = memtable;
    this.#temporalKeys = temporalKeys;
  }

  /** Answers the chunks of the first `rowCount` rows, ascending; the last one ends with them. */
  chunks(rowCount: number): BuiltChunk[] {
    const chunks: BuiltChunk[] = [];
    for (let first = 0; first < rowCount; first += slotRows) {
      const slot = this.#slot(first);
      const end = Math.min(first + slotRows, rowCount);
      while (endOf(slot, first) < end) this.#buildNext(slot, first, end);
      const all = slot.open === null ? slot.full : [...slot.full, slot.open];
      for (const chunk of all) if (chunk.firstRow < rowCount) chunks.push(this.#cut(chunk, rowCount));
    }
    return chunks;
  }

  /**
   * Answers the chunk that a row is in; null where it has none and needs none, because hardly any rows of its slot are newer than the
   * slot's chunks. Where it answers `building`, a step of the work was done and more is to do: ask again.
   */
  chunkOf(row: number): BuiltChunk | 'building' | null {
    const first = row - (row % slotRows);
    const slot = this.#slot(first);
    const covered = endOf(slot, first);
    if (row < covered) return chunkIn(slot, row);
    const end = Math.min(first + slotRows, this.#memtable.rowCount);
    if (end < first + slotRows && end - covered < rowsWithoutMax) return null;
    this.#buildNext(slot, first, end);
    return row < endOf(slot, first) ? chunkIn(slot, row) : 'building';
  }

  /** Answers the neighbours of a row without a chunk that have none either. */
  rangeWithout(row: number): { readonly first: number; readonly end: number } {
    const first = row - (row % slotRows);
    return { first: endOf(this.#slot(first), first), end: first + slotRows };
  }

  #slot(first: number): Slot {
    const known = this.#slots.get(first);
    if (known !== undefined) return known;
    const made = { full: [], open: null };
    this.#slots.set(first, made);
    return made;
  }

  /** Makes one more chunk, or the open one anew; it ends before `end`, or earlier where it is full. */
  #buildNext(slot: Slot, first: number, end: number): void {
    const { chunk, isFull } = this.#build(slot.open?.firstRow ?? endOf(slot, first), end);
    const isWhole = isFull || end % slotRows === 0;
    if (isWhole) slot.full.push(chunk);
    slot.open = isWhole ? null : chunk;
  }

  /** Answers the chunk without the rows that came after a snapshot; a chunk that is made for this is not kept. */
  #cut(chunk: BuiltChunk, rowCount: number): BuiltChunk {
    return chunk.firstRow + chunk.rowCount <= rowCount ? chunk : this.#build(chunk.firstRow, rowCount).chunk;
  }

  #build(firstRow: number, end: number): { readonly chunk: BuiltChunk; readonly isFull: boolean } {
    return buildChunk(this.#memtable, { firstRow, end, temporalKeys: this.#temporalKeys });
  }
}

function chunkIn({ full, open }: Slot, row: number): BuiltChunk | null {
  if (open !== null && row >= open.firstRow) return open;
  return full.findLast(({ firstRow }) => firstRow <= row) ?? null;
}

function endOf({ full, open }: Slot, first: number): number {
  const last = open ?? full.at(-1);
  return last === undefined ? first : last.firstRow + last.rowCount;
}

/** The columns of each memtable, which actors/storage makes without knowing columns: they go when their memtable goes. */
const kept = new WeakMap<Memtable, MemtableColumns>();
/** Builds the chunks of every query of this thread: it holds some megabytes, and nothing yields between its first row and its last. */
let builder: ChunkBuilder | null = null;

/**
 * Answers the columns of a memtable. `temporalKeys`, the keys that hold dates, never change while there is a memtable: an import flushes
 * it before.
 */
export function memtableColumns(memtable: Memtable, temporalKeys: ReadonlySet<string>): MemtableColumns {
  const known = kept.get(memtable);
  if (known !== undefined) return known;
  const made = new MemtableColumns(memtable, temporalKeys);
  kept.set(memtable, made);
  return made;
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
  let bytesLeft = chunkMetaBytesMax;
  while (row < end && bytesLeft > 0 && !builder.isFull({ rowsMax: slotRows })) {
    const [buffer, offset] = [memtable.bufferOf(row), memtable.offsetOf(row)];
    builder.add(buffer, offset);
    bytesLeft -= documentMetaLength(buffer, offset);
    row++;
  }
  const place = { name: 'a memtable', offset: 0 };
  const columns = new Map<string, ColumnValues>();
  for (const { key, raw } of builder.columns({}, Buffer.alloc)) columns.set(key, readColumn(raw, place));
  const { everyKey } = builder;
  return {
    chunk: { firstRow, rowCount: row - firstRow, columns, everyKey, witnesses: new Witnesses() },
    isFull: row < end || bytesLeft <= 0 || builder.isFull({ rowsMax: slotRows }),
  };
}
