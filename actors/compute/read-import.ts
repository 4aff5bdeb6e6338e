import { type FileHandle, open } from 'node:fs/promises';
import { FileRanges } from '../import/file-ranges.ts';
import { importCsv } from '../import/import-csv.ts';
import { PartsRefused, PartsSender } from '../import/import-messages.ts';
import { importNdjson } from '../import/import-ndjson.ts';
import { importParquet } from '../import/import-parquet.ts';
import { compressFast } from '../storage/compress.ts';
import type { ReadImportTask } from './lanes.ts';

const readers = { csv: importCsv, ndjson: importNdjson, parquet: importParquet } as const;

/**
 * Rows of a received file → entries, packed blocks of them, and columns, which another thread makes a segment of. What is wrong with the file is told to that
 * thread, whose task is the one that fails.
 */
export async function readImport(task: ReadImportTask): Promise<void> {
  const { parts, begun } = task;
  // Somebody waits for it; a merge packs it better later.
  compressFast();
  const sender = new PartsSender(parts, task);
  // There are few such threads, and it is this import's turn: now the other thread may wait for parts.
  begun?.postMessage('begun');
  begun?.close();
  const ranges = new FileRanges(task.ranges);
  const helps = begun === null;
  let file: FileHandle | null = null;
  try {
    if (helps && ranges.isOver) return;
    file = await open(task.path, 'r');
    const { size } = await file.stat();
    const read = await readers[task.format]({ ...task, ranges, helps, file, size }, sender);
    // Of help that came too late nobody hears.
    if (!helps || sender.hasBegun) await sender.end(read, ranges.count);
  } catch (error) {
    // Others need not read what nobody will want.
    if (sender.hasBegun) ranges.end();
    if (!(error instanceof PartsRefused)) sender.fail(error);
  } finally {
    await file?.close();
    if (!helps) await sender.closed();
    else {
      await sender.taken();
      parts.close();
    }
  }
}
