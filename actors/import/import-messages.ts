/**
 * From the thread that reads a file to the one that makes its segment: entries and columns, which are moved, not copied. The
 * reader is a few parts ahead at most: each part that was taken is a credit for another, and the memory of its entries comes back.
 */
import type { MessagePort } from 'node:worker_threads';
import { ApiError } from '../../protocol/errors.ts';
import { type ApiErrorWire, apiErrorFromWire, apiErrorToWire } from '../../protocol/messages.ts';
import { describeError } from '../../src/base/log.ts';
import type { ImportedRows, RestartingSink } from './import-csv.ts';
import { batchBytes, type ColumnsChunk, type RowsBatch } from './row-writer.ts';

export type ImportPart =
  | { readonly kind: 'rows'; readonly bytes: Uint8Array<ArrayBuffer>; readonly rowCount: number }
  | ({ readonly kind: 'chunk' } & ColumnsChunk)
  /** Begins anew: all parts before it are void. */
  | { readonly kind: 'restart' }
  | { readonly kind: 'end'; readonly imported: ImportedRows }
  | { readonly kind: 'failed'; readonly error: ApiErrorWire };

interface PartTaken {
  /** The memory of entries that nobody uses any more, for the next ones. */
  readonly buffer: ArrayBuffer | null;
}

/** 2 MB each, and a chunk's columns now and then. */
const partsAheadMax = 8;

/** The reader's end. */
export class PartsSender implements RestartingSink {
  readonly #port: MessagePort;
  readonly #spare: ArrayBuffer[] = [];
  #ahead = 0;
  #wake = () => {};
  #isOver = false;

  constructor(port: MessagePort) {
    this.#port = port;
    port.on('message', ({ buffer }: PartTaken) => {
      if (buffer?.byteLength === batchBytes) this.#spare.push(buffer);
      this.#ahead--;
      this.#wake();
    });
    // The other thread has failed, and says so to who asked for it.
    port.on('close', () => {
      this.#isOver = true;
      this.#wake();
    });
  }

  batchBuffer(): ArrayBuffer {
    return this.#spare.pop() ?? new ArrayBuffer(batchBytes);
  }

  async rows({ buffer, rowCount }: RowsBatch): Promise<void> {
    await this.#send({ kind: 'rows', bytes: buffer, rowCount }, [buffer.buffer]);
  }

  async chunk(chunk: ColumnsChunk): Promise<void> {
    const buffers = chunk.columns.map(({ raw }) => raw.buffer as ArrayBuffer);
    await this.#send({ kind: 'chunk', ...chunk }, [...new Set(buffers)]);
  }

  restart(): Promise<void> {
    return this.#send({ kind: 'restart' }, []);
  }

  end(imported: ImportedRows): Promise<void> {
    return this.#send({ kind: 'end', imported }, []);
  }

  /** Tells what is wrong with the file, and ends the parts: nothing is sent after it. */
  fail(error: unknown): void {
    const known =
      error instanceof ApiError
        ? error
        : new ApiError('internal', `the file could not be read: ${describeError(error)}`);
    this.#port.postMessage({ kind: 'failed', error: apiErrorToWire(known) } satisfies ImportPart);
  }

  /** Resolves when the other end has taken what was sent. */
  async closed(): Promise<void> {
    while (!this.#isOver)
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
  }

  async #send(part: ImportPart, moved: readonly ArrayBuffer[]): Promise<void> {
    while (this.#ahead >= partsAheadMax && !this.#isOver)
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    if (this.#isOver) throw new PartsRefused();
    this.#ahead++;
    this.#port.postMessage(part, [...moved]);
  }
}

/** Who makes the segment has ended before the file did. */
export class PartsRefused extends Error {
  override name = 'PartsRefused';
}

/** The other end: parts as they come, until the last one. Throws what the reader could not do. */
export async function* receivedParts(port: MessagePort): AsyncGenerator<ImportPart, void, void> {
  const waiting: ImportPart[] = [];
  let wake = () => {};
  let isClosed = false;
  port.on('message', (part: ImportPart) => {
    waiting.push(part);
    wake();
  });
  port.on('close', () => {
    isClosed = true;
    wake();
  });
  for (;;) {
    const part = waiting.shift();
    if (part === undefined) {
      if (isClosed) throw new Error('the thread that reads the file has ended');
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
      continue;
    }
    if (part.kind === 'failed') throw apiErrorFromWire(part.error);
    yield part;
    const buffer = part.kind === 'rows' ? part.bytes.buffer : null;
    port.postMessage({ buffer } satisfies PartTaken, buffer === null ? [] : [buffer]);
    if (part.kind === 'end') return;
  }
}
