import type { ChunkColumn } from '../columns/chunk-builder.ts';
import type { FileRange } from './file-ranges.ts';

/** Bytes of a batch, unless one row takes more. */
export const batchBytes = 2 * 1024 * 1024;

/** Takes what is made of rows. */
export interface RowSink {
  /** Begins with the rows of a range. */
  range(range: Pick<FileRange, 'number' | 'firstRow'>): Promise<void>;
  /** Makes memory for a batch of at least so many bytes, in which anything may stand: that of an earlier batch has come back and is used again, where it is long enough. */
  batchBuffer(bytes: number): ArrayBufferLike;
  /** Entries, one after the other; the buffer is the sink's. */
  rows(batch: RowsBatch): Promise<void>;
  /** The columns of the next rows. */
  chunk(chunk: ColumnsChunk): Promise<void>;
}

export interface RowsBatch {
  readonly buffer: Buffer;
  readonly rowCount: number;
}

export interface ColumnsChunk {
  readonly rowCount: number;
  /** Whether every key of the rows has a column. */
  readonly everyKey: boolean;
  readonly columns: readonly ChunkColumn[];
}
