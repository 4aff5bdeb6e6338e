import { blockKinds } from '../storage/segment-format.ts';
import type { AppendBlock, RowIndexWriter } from '../storage/segment-writer.ts';
import { type ChunkBounds, ChunkBuilder } from './chunk-builder.ts';
import {
  columnEntryBytes,
  encodeDirectory,
  encodeRoot,
  type WrittenChunk,
  type WrittenColumn,
} from './column-directory.ts';
import { columnsSection } from './columns-section.ts';

/**
 * Writes the columns of a segment beside its rows, chunk by chunk.
 *
 * Memory: a chunk builder's, 20 MB at most, one column's block, and the directory so far.
 */
export interface ColumnsOptions extends ChunkBounds {
  /** Keys that hold dates or times: their strings of such a form are held as numbers. */
  readonly temporalKeys?: Iterable<string>;
  /** Of the directory, nearly: later chunks have no columns. Readers hold it as it is. */
  readonly directoryBytesMax?: number;
}

/** Some 90,000 columns: more are of a segment of tiny chunks, or of keys that hardly any two documents share. */
const directoryBytesDefault = 8 * 1024 * 1024;

/** Clean when a writer has finished: they are the thread's next writers' then. */
const idleBuilders: ChunkBuilder[] = [];
/** More at a time are seldom; they are made, and forgotten. */
const idleBuildersMax = 2;

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

class ColumnsWriter {
  readonly #options: ColumnsOptions;
  readonly #builder = idleBuilders.pop() ?? new ChunkBuilder();
  readonly #temporalKeys: ReadonlySet<string>;
  readonly #chunks: WrittenChunk[] = [];
  #rowCount = 0;
  #directoryBytes = 0;

  constructor(options: ColumnsOptions) {
    this.#options = options;
    this.#temporalKeys = new Set(options.temporalKeys);
    this.#builder.temporalKeys = this.#temporalKeys;
  }

  get isChunkFull(): boolean {
    return this.#builder.isFull(this.#options);
  }

  add(buffer: Buffer, offset: number): void {
    this.#builder.add(buffer, offset);
  }

  async writeChunk(append: AppendBlock): Promise<void> {
    const builder = this.#builder;
    const { rowCount } = builder;
    if (rowCount === 0) return;
    const columns: WrittenColumn[] = [];
    let everyKey = true;
    for (const { key, raw, statistics } of builder.columns(this.#options)) {
      if (!this.#hasRoomFor(key)) {
        everyKey = false;
        break;
      }
      const place = await append(blockKinds.column, raw, { compress: true });
      columns.push({ key, ...place, statistics });
    }
    this.#chunks.push({ rowCount, everyKey: everyKey && builder.everyKey, columns });
    this.#rowCount += rowCount;
    builder.clear();
  }

  async finish(append: AppendBlock): Promise<Uint8Array> {
    await this.writeChunk(append);
    if (idleBuilders.length < idleBuildersMax) idleBuilders.push(this.#builder);
    const rowCount = this.#rowCount;
    if (this.#chunks.every(({ columns, everyKey }) => columns.length === 0 && everyKey))
      return encodeRoot({ directory: null, rowCount });
    const place = await append(blockKinds.columnDirectory, encodeDirectory(this.#chunks), { compress: true });
    return encodeRoot({ directory: { ...place, kind: blockKinds.columnDirectory }, rowCount });
  }

  /** As if no two columns shared a key. */
  #hasRoomFor(key: string): boolean {
    const bytes = columnEntryBytes + Buffer.byteLength(key) + 4;
    const { directoryBytesMax = directoryBytesDefault } = this.#options;
    if (this.#directoryBytes + bytes > directoryBytesMax) return false;
    this.#directoryBytes += bytes;
    return true;
  }
}
