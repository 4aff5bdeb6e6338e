import { type FileHandle, mkdir, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { assert } from '../../src/base/assert.ts';
import { randomHex, systemRandom } from '../../src/base/random.ts';
import { type ByteSink, streamOnce } from '../../src/object-store/put-once.ts';
import { ChunksWriter } from '../columns/columns-writer.ts';
import type { ImportedRows } from '../import/import-csv.ts';
import { receivedParts } from '../import/import-messages.ts';
import { compressFast } from '../storage/compress.ts';
import { documentEntryLength } from '../storage/document-batch.ts';
import { type FinishedSegment, SegmentWriter } from '../storage/segment-writer.ts';
import { textIndexWriter } from '../text/text-index.ts';
import { vectorIndexWriter } from '../vector/vector-index-writer.ts';
import { FileOutput } from './file-output.ts';
import type { BuildImportTask, BuiltImport, GraphComponents } from './lanes.ts';

/**
 * Entries and columns of an imported file → one segment, in the store under a name that nobody knows yet. It is a file of this disk
 * first: a file that turns out to be wrong leaves nothing in the store, and an upload can be tried again. When all rows are there, and
 * nothing is wrong with them, the upload begins, while the segment's indexes are still made.
 */
export async function buildImport(
  { store, clock, scratchFolder }: GraphComponents,
  task: BuildImportTask,
): Promise<BuiltImport> {
  // Somebody waits for it; a merge packs it better later.
  compressFast();
  const path = join(scratchFolder, `segment-${randomHex(systemRandom, 8)}`);
  let file: FileHandle | null = null;
  try {
    await mkdir(scratchFolder, { recursive: true });
    const opened = await open(path, 'wx+');
    file = opened;
    const { segment, imported } = await writeRows(opened, task);
    const uploading = streamOnce(store, clock, task.key, (sink) => segment.copyTo(sink));
    const [finished, uploaded] = await Promise.allSettled([segment.finish(), uploading]);
    if (finished.status === 'rejected') throw finished.reason;
    if (uploaded.status === 'rejected') throw uploaded.reason;
    return { ...finished.value, ...imported };
  } finally {
    // Whoever reads the file hears of it.
    task.parts.close();
    await file?.close();
    await rm(path, { force: true });
  }
}

async function writeRows(
  file: FileHandle,
  task: BuildImportTask,
): Promise<{ readonly segment: Segment; readonly imported: ImportedRows }> {
  let work = new Segment(file, task);
  for await (const part of receivedParts(task.parts)) {
    switch (part.kind) {
      case 'rows':
        await work.addRows(part.bytes, part.rowCount);
        break;
      case 'chunk':
        work.chunks.add({ ...part, everyKey: () => part.everyKey });
        break;
      case 'restart':
        await file.truncate(0);
        work = new Segment(file, task);
        break;
      case 'end':
        return { segment: work, imported: part.imported };
      case 'failed':
        break;
    }
  }
  throw new Error('the file ended without an end');
}

class Segment {
  readonly chunks = new ChunksWriter();
  readonly #task: BuildImportTask;
  readonly #output: FileOutput;
  readonly #writer: SegmentWriter;

  constructor(file: FileHandle, task: BuildImportTask) {
    this.#task = task;
    this.#output = new FileOutput(file);
    const indexes = [textIndexWriter(), this.chunks.writer, vectorIndexWriter()];
    this.#writer = new SegmentWriter(task.key, (chunk) => this.#output.write(chunk), { indexes });
  }

  /** Hot: awaits only where something was written. */
  async addRows(bytes: Uint8Array, rowCount: number): Promise<void> {
    const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const { firstSequence, writtenAt } = this.#task;
    const writer = this.#writer;
    let offset = 0;
    for (let row = 0; row < rowCount; row++) {
      const sent = writer.add(firstSequence + writer.rowCount, writtenAt, buffer, offset);
      if (sent !== undefined) await sent;
      offset += documentEntryLength(buffer, offset);
    }
    assert(offset === buffer.length, () => `${rowCount} rows take ${offset} of ${buffer.length} bytes`);
  }

  async finish(): Promise<FinishedSegment> {
    try {
      const finished = await this.#writer.finish();
      await this.#output.end();
      return finished;
    } catch (error) {
      await this.#output.end(error);
      throw error;
    }
  }

  /** May be asked for before it is finished, and more than once. */
  copyTo(sink: ByteSink): Promise<void> {
    return this.#output.copyTo(sink);
  }
}
