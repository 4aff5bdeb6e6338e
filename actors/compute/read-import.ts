import { type FileHandle, open } from 'node:fs/promises';
import { importCsv } from '../import/import-csv.ts';
import { PartsRefused, PartsSender } from '../import/import-messages.ts';
import { importNdjson } from '../import/import-ndjson.ts';
import { importParquet } from '../import/import-parquet.ts';
import type { ReadImportTask } from './lanes.ts';

const readers = { csv: importCsv, ndjson: importNdjson, parquet: importParquet } as const;

/**
 * A received file → entries and columns, which another thread makes a segment of. What is wrong with the file is told to that
 * thread, whose task is the one that fails.
 */
export async function readImport(task: ReadImportTask): Promise<void> {
  const sender = new PartsSender(task.parts);
  // There is one such thread, and it is this import's turn: now the other thread may wait for parts.
  task.begun.postMessage('begun');
  task.begun.close();
  let file: FileHandle | null = null;
  try {
    file = await open(task.path, 'r');
    const { size } = await file.stat();
    await sender.end(await readers[task.format]({ ...task, file, size }, sender));
  } catch (error) {
    if (!(error instanceof PartsRefused)) sender.fail(error);
  } finally {
    await file?.close();
    await sender.closed();
  }
}
