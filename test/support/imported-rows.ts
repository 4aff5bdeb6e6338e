import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FileRanges } from '../../actors/import/file-ranges.ts';
import { importCsv } from '../../actors/import/import-csv.ts';
import { OfAnotherKind } from '../../actors/import/import-error.ts';
import { importNdjson } from '../../actors/import/import-ndjson.ts';
import { importParquet } from '../../actors/import/import-parquet.ts';
import { type ImportedRows, type ImportRequest, joinRows } from '../../actors/import/import-rows.ts';
import { batchBytes, type ColumnsChunk, type RowSink, type RowsBatch } from '../../actors/import/row-sink.ts';
import {
  documentEntryLength,
  documentId,
  documentMeta,
  documentText,
  documentVector,
} from '../../actors/storage/document-batch.ts';
import { ApiError } from '../../protocol/errors.ts';
import type { ImportFormat } from '../../protocol/write.ts';

/** Reads files as an import does, without a server. */
export interface ImportedDocument {
  readonly id: string;
  readonly text: string | null;
  /** The document's meta as JSON text. */
  readonly meta: string;
  readonly vector: Float32Array | null;
}

export interface ReadFile {
  readonly imported: ImportedRows;
  readonly documents: readonly ImportedDocument[];
}

type Question = Partial<Omit<ImportRequest, 'file' | 'size' | 'ranges' | 'looksAtAll' | 'helps'>>;

const readers = { csv: importCsv, ndjson: importNdjson, parquet: importParquet } as const;

/** Answers the rows of a file, or what the refusal of it says. Anything else is thrown. */
export async function readFileRows(
  format: ImportFormat,
  path: string,
  question: Question = {},
): Promise<ReadFile | ApiError> {
  const file = await open(path, 'r');
  try {
    const { size } = await file.stat();
    const nothing = { id: null, text: [], schema: null, vector: null, columns: null, skip: [], dims: null };
    const readOnce = async (looksAtAll: boolean) => {
      const sink = new DocumentsSink();
      const request = {
        ...nothing,
        ...question,
        looksAtAll,
        helps: false,
        ranges: new FileRanges(),
        file,
        size,
      };
      const imported = joinRows([await readers[format](request, sink)]);
      const { documents, columnRows } = sink;
      if (columnRows !== documents.length)
        throw new Error(`${documents.length} documents, and columns of ${columnRows}`);
      return { imported, documents };
    };
    return await readOnce(false).catch((error: unknown) => {
      if (error instanceof OfAnotherKind) return readOnce(true);
      throw error;
    });
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  } finally {
    await file.close();
  }
}

/** Answers the rows of a file that is given as bytes, or what the refusal of it says. */
export async function readBytesRows(
  format: ImportFormat,
  bytes: Uint8Array,
  question: Question = {},
): Promise<ReadFile | ApiError> {
  const folder = mkdtempSync(join(tmpdir(), 'tidebase-rows-'));
  try {
    const path = join(folder, 'file');
    writeFileSync(path, bytes);
    return await readFileRows(format, path, question);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

class DocumentsSink implements RowSink {
  readonly documents: ImportedDocument[] = [];
  /** How many rows' columns have come. */
  columnRows = 0;

  async range(): Promise<void> {}

  batchBuffer(bytes: number): ArrayBuffer {
    return new ArrayBuffer(Math.max(bytes, batchBytes));
  }

  async rows({ buffer, rowCount }: RowsBatch): Promise<void> {
    let offset = 0;
    for (let row = 0; row < rowCount; row++) {
      this.documents.push({
        id: documentId(buffer, offset),
        text: documentText(buffer, offset)?.toString() ?? null,
        meta: documentMeta(buffer, offset)?.toString() ?? '{}',
        vector: documentVector(buffer, offset),
      });
      offset += documentEntryLength(buffer, offset);
    }
    if (offset !== buffer.length) throw new Error(`${rowCount} rows end at ${offset} of ${buffer.length}`);
  }

  async chunk({ rowCount }: ColumnsChunk): Promise<void> {
    this.columnRows += rowCount;
  }
}
