import { type FileHandle, mkdir, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { randomHex, systemRandom } from '../../src/base/random.ts';
import { type ByteSink, streamOnce } from '../../src/object-store/put-once.ts';
import { ChunksWriter } from '../columns/columns-writer.ts';
import type { ImportedRows } from '../import/import-csv.ts';
import { receivedParts } from '../import/import-messages.ts';
import { compressFast } from '../storage/compress.ts';
import { documentEntryLength } from '../storage/document-batch.ts';
import { type FinishedSegment, SegmentWriter } from '../storage/segment-writer.ts';
import { textIndexWriter } from '../text/text-index.ts';
import type { BuildImportTask, BuiltImport, GraphComponents } from './lanes.ts';

/**
 * Entries and columns of an imported file → one segment, in the store under a name that nobody knows yet. It is a file of this disk
 * first: a file that turns out to be wrong leaves nothing in the store, and an upload can be tried again.
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
    const { finished, imported } = await writeSegment(opened, task);
    await streamOnce(store, clock, task.key, async (sink) => copyFile(opened, finished.size, sink));
    return { ...finished, ...imported };
  } finally {
    // Whoever reads the file hears of it.
    task.parts.close();
    await file?.close();
    await rm(path, { force: true });
  }
}

async function writeSegment(
  file: FileHandle,
  task: BuildImportTask,
): Promise<{ readonly finished: FinishedSegment; readonly imported: ImportedRows }> {
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
        return { finished: await work.finish(), imported: part.imported };
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
    const indexes = [textIndexWriter(), this.chunks.writer];
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
  }

  async finish(): Promise<FinishedSegment> {
    const finished = await this.#writer.finish();
    await this.#output.flush();
    return finished;
  }
}

const outputBytes = 1024 * 1024;

/** Gathers small pieces: a system call for each would take longer than they do. Whoever gets a promise awaits it. */
class FileOutput {
  readonly #file: FileHandle;
  readonly #waiting = Buffer.allocUnsafeSlow(outputBytes);
  #waitingBytes = 0;
  #position = 0;

  constructor(file: FileHandle) {
    this.#file = file;
  }

  write(chunk: Uint8Array): void | Promise<void> {
    if (this.#waitingBytes + chunk.byteLength > outputBytes) return this.#writeLater(chunk);
    this.#waiting.set(chunk, this.#waitingBytes);
    this.#waitingBytes += chunk.byteLength;
  }

  async #writeLater(chunk: Uint8Array): Promise<void> {
    await this.flush();
    if (chunk.byteLength > outputBytes) await this.#writeAll(chunk);
    else this.write(chunk);
  }

  async flush(): Promise<void> {
    const bytes = this.#waitingBytes;
    this.#waitingBytes = 0;
    await this.#writeAll(this.#waiting.subarray(0, bytes));
  }

  async #writeAll(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length; ) {
      const { bytesWritten } = await this.#file.write(bytes, at, bytes.length - at, this.#position);
      at += bytesWritten;
      this.#position += bytesWritten;
    }
  }
}

async function copyFile(file: FileHandle, size: number, sink: ByteSink): Promise<void> {
  for (let position = 0; position < size; ) {
    const bytes = Buffer.allocUnsafeSlow(Math.min(outputBytes, size - position));
    const { bytesRead } = await file.read(bytes, 0, bytes.length, position);
    if (bytesRead === 0) throw new Error('a segment file has become shorter');
    position += bytesRead;
    await sink(bytes.subarray(0, bytesRead));
  }
}
