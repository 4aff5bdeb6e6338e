import { type FileHandle, mkdir, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { assert } from '../../src/base/assert.ts';
import { randomHex, systemRandom } from '../../src/base/random.ts';
import { type ByteSink, streamOnce } from '../../src/object-store/put-once.ts';
import { ChunksWriter } from '../columns/columns-writer.ts';
import { OfAnotherKind } from '../import/import-error.ts';
import { type ImportPart, PartsReceiver } from '../import/import-messages.ts';
import type { ImportedRows } from '../import/import-rows.ts';
import { compressFast } from '../storage/compress.ts';
import { documentEntryLength } from '../storage/document-batch.ts';
import { type FinishedSegment, SegmentWriter } from '../storage/segment-writer.ts';
import { textIndexWriter } from '../text/text-index.ts';
import { vectorIndexWriter } from '../vector/vector-index-writer.ts';
import { FileOutput } from './file-output.ts';
import type { BuildImportTask, BuiltImport, GraphComponents } from './lanes.ts';

/**
 * Entries, packed blocks of them, and columns of an imported file → one segment, in the store under a name that nobody knows yet. It is a file of this disk
 * first, and stored behind its writing, so that an upload can be tried again. An imported file that turns out to be wrong ends the upload before its
 * end, so there is no object of it. Null: kinds of columns have to be inferred from all rows, and nothing is stored.
 */
export async function buildImport(
  { store, clock, scratchFolder }: GraphComponents,
  task: BuildImportTask,
): Promise<BuiltImport | null> {
  // Somebody waits for it; a merge packs it better later.
  compressFast();
  // Who listens late does not hear that a reader has closed.
  const receiver = new PartsReceiver(task.parts);
  for (const port of task.parts.slice(1)) port.postMessage('begun');
  const path = join(scratchFolder, `segment-${randomHex(systemRandom, 8)}`);
  let file: FileHandle | null = null;
  let uploading: Promise<Failure | null> = Promise.resolve(null);
  try {
    await mkdir(scratchFolder, { recursive: true });
    file = await open(path, 'wx+');
    const segment = new Segment(file, task);
    const upload = () => streamOnce(store, clock, task.key, (sink) => segment.copyTo(sink));
    uploading = upload().then(
      () => null,
      (reason: unknown) => ({ reason }),
    );
    const built = await segment.make(receiver);
    // A store that was in trouble while rows came may be well again now that all are there.
    if ((await uploading) !== null) await upload();
    return built;
  } catch (error) {
    if (error instanceof OfAnotherKind) return null;
    throw error;
  } finally {
    // Whoever reads the file hears of it.
    for (const port of task.parts) port.close();
    // An upload that is given up ends when the store has answered: nobody waits for that.
    const cleaning = uploading.then(async () => {
      await file?.close();
      await rm(path, { force: true });
    });
    cleaning.catch(() => {});
  }
}

interface Failure {
  readonly reason: unknown;
}

type ImportedBatch = Extract<ImportPart, { kind: 'rows' }>;

class Segment {
  readonly #chunks = new ChunksWriter();
  readonly #task: BuildImportTask;
  readonly #output: FileOutput;
  readonly #writer: SegmentWriter;

  constructor(file: FileHandle, task: BuildImportTask) {
    this.#task = task;
    this.#output = new FileOutput(file);
    const indexes = [textIndexWriter(), this.#chunks.writer, vectorIndexWriter()];
    this.#writer = new SegmentWriter(task.key, (chunk) => this.#output.write(chunk), { indexes });
  }

  /** Makes it of all parts. Throws what is wrong with them, and whoever copies it hears of that too. */
  async make(receiver: PartsReceiver): Promise<FinishedSegment & ImportedRows> {
    try {
      const imported = await this.#addParts(receiver);
      const finished = await this.#writer.finish();
      await this.#output.end();
      return { ...finished, ...imported };
    } catch (error) {
      await this.#output.end(error);
      throw error;
    }
  }

  /** May be asked for before it is made, and more than once. */
  copyTo(sink: ByteSink): Promise<void> {
    return this.#output.copyTo(sink);
  }

  async #addParts(receiver: PartsReceiver): Promise<ImportedRows> {
    const parts = receiver.parts();
    for (;;) {
      const { done, value } = await parts.next();
      if (done) return value;
      if (value.kind === 'rows') await this.#addRows(value);
      else this.#chunks.add({ ...value, everyKey: () => value.everyKey });
    }
  }

  /** Hot: awaits only where something was written. */
  async #addRows({ bytes, rowCount, blocks }: ImportedBatch): Promise<void> {
    const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const { firstSequence } = this.#task;
    const writer = this.#writer;
    let offset = 0;
    for (let row = 0; row < rowCount; row++) {
      const sent = writer.index(firstSequence + writer.rowCount, buffer, offset);
      if (sent !== undefined) await sent;
      offset += documentEntryLength(buffer, offset);
    }
    for (const block of blocks) await writer.addBlock(block);
    assert(offset === buffer.length, () => `${rowCount} rows take ${offset} of ${buffer.length} bytes`);
  }
}
