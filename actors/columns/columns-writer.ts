import { blockKinds } from '../storage/segment-format.ts';
import type { AppendBlock, RowIndexWriter } from '../storage/segment-writer.ts';
import { type ChunkBounds, ChunkBuilder, type ChunkColumn } from './chunk-builder.ts';
import {
  columnEntryBytes,
  encodeColumnsRoot,
  encodeDirectory,
  type WrittenChunk,
  type WrittenColumn,
} from './column-directory.ts';
import { columnsSection } from './columns-section.ts';

export interface ColumnsOptions extends ChunkBounds {
  /** Keys that hold dates or times: their strings of such a form are held as numbers. */
  readonly temporalKeys?: Iterable<string>;
  /** About how many bytes the directory may have: later chunks have no columns then. Readers hold it as it is. */
  readonly directoryBytesMax?: number;
}

/** Some 90,000 columns: more are of a segment of tiny chunks, or of keys that hardly any two documents share. */
const directoryBytesDefault = 8 * 1024 * 1024;

/** A chunk's columns, which may be made while they are written. */
export interface FilledChunk {
  readonly rowCount: number;
  readonly columns: Iterable<ChunkColumn>;
  /** Whether every key of the rows has a column; asked when all of them were taken. */
  everyKey(): boolean;
}

/** The chunk of a builder that has rows; it is gone when the builder is cleared. */
export function filledChunk(builder: ChunkBuilder, bounds: ChunkBounds): FilledChunk {
  return { rowCount: builder.rowCount, columns: builder.columns(bounds), everyKey: () => builder.everyKey };
}

/** Clean when a writer has finished: they are the thread's next writers' then. */
const idleBuilders: ChunkBuilder[] = [];
/** More at a time are seldom; they are made, and forgotten. */
const idleBuildersMax = 2;

/**
 * Writes the columns of a segment beside its rows, chunk by chunk.
 *
 * Memory: a chunk builder's, one column's block, and the directory so far.
 */
export function columnsWriter(options: ColumnsOptions = {}): RowIndexWriter {
  const writer = new ColumnsWriter(options);
  return {
    section: columnsSection,
    add: (buffer, offset) => writer.add(buffer, offset),
    get isFull() {
      return writer.isChunkFull;
    },
    writePart: (append) => writer.writeChunk(append),
    finish: (append) => writer.finish(append),
  };
}

/** Columns of chunks that somebody else makes. `add` comes for each chunk in the order of the rows, `writer` goes to the segment's writer. */
export class ChunksWriter {
  readonly #written = new WrittenColumns({});
  readonly #waiting: FilledChunk[] = [];
  readonly writer: RowIndexWriter;

  constructor() {
    const chunks = this.#waiting;
    const writeAll = async (append: AppendBlock) => {
      for (let chunk = chunks.shift(); chunk !== undefined; chunk = chunks.shift())
        await this.#written.add(chunk, append);
    };
    this.writer = {
      section: columnsSection,
      add() {},
      get isFull() {
        return chunks.length > 0;
      },
      writePart: writeAll,
      finish: async (append) => {
        await writeAll(append);
        return this.#written.finish(append);
      },
    };
  }

  add(chunk: FilledChunk): void {
    this.#waiting.push(chunk);
  }
}

class ColumnsWriter {
  readonly #options: ColumnsOptions;
  readonly #builder = idleBuilders.pop() ?? new ChunkBuilder();
  readonly #written: WrittenColumns;

  constructor(options: ColumnsOptions) {
    this.#options = options;
    this.#written = new WrittenColumns(options);
    this.#builder.temporalKeys = new Set(options.temporalKeys);
  }

  get isChunkFull(): boolean {
    return this.#builder.isFull(this.#options);
  }

  add(buffer: Buffer, offset: number): void {
    this.#builder.add(buffer, offset);
  }

  async writeChunk(append: AppendBlock): Promise<void> {
    const builder = this.#builder;
    if (builder.rowCount === 0) return;
    await this.#written.add(filledChunk(builder, this.#options), append);
    builder.clear();
  }

  async finish(append: AppendBlock): Promise<Uint8Array> {
    await this.writeChunk(append);
    if (idleBuilders.length < idleBuildersMax) idleBuilders.push(this.#builder);
    return this.#written.finish(append);
  }
}

/** What was written of a segment's columns, for their directory. */
class WrittenColumns {
  readonly #directoryBytesMax: number;
  readonly #chunks: WrittenChunk[] = [];
  #rowCount = 0;
  #directoryBytes = 0;

  constructor({ directoryBytesMax = directoryBytesDefault }: ColumnsOptions) {
    this.#directoryBytesMax = directoryBytesMax;
  }

  async add({ rowCount, columns, everyKey }: FilledChunk, append: AppendBlock): Promise<void> {
    const written: WrittenColumn[] = [];
    let hasRoom = true;
    for (const { key, raw, statistics } of columns) {
      hasRoom = this.#hasRoomFor(key);
      if (!hasRoom) break;
      const place = await append(blockKinds.column, raw, { compress: true });
      written.push({ key, ...place, statistics });
    }
    this.#chunks.push({ rowCount, everyKey: hasRoom && everyKey(), columns: written });
    this.#rowCount += rowCount;
  }

  async finish(append: AppendBlock): Promise<Uint8Array> {
    const rowCount = this.#rowCount;
    if (this.#chunks.every(({ columns, everyKey }) => columns.length === 0 && everyKey))
      return encodeColumnsRoot({ directory: null, rowCount });
    const place = await append(blockKinds.columnDirectory, encodeDirectory(this.#chunks), { compress: true });
    return encodeColumnsRoot({ directory: { ...place, kind: blockKinds.columnDirectory }, rowCount });
  }

  /** As if no two columns shared a key. */
  #hasRoomFor(key: string): boolean {
    const bytes = columnEntryBytes + Buffer.byteLength(key) + 4;
    if (this.#directoryBytes + bytes > this.#directoryBytesMax) return false;
    this.#directoryBytes += bytes;
    return true;
  }
}
