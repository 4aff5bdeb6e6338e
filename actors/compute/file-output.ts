import type { FileHandle } from 'node:fs/promises';
import { sharedBriefly } from '../../src/base/garbage.ts';
import type { ByteSink } from '../../src/object-store/put-once.ts';
import { folderPieceBytes } from '../../src/object-store/uploads.ts';

/** Bytes that are written, and read, at once. The folder store takes pieces of its own length without a copy. */
const pieceBytes = folderPieceBytes;

/**
 * A file that is written front to back, and may be read behind its writing. Small pieces are gathered: a system call for each would
 * take longer than they do. Whoever gets a promise of `write` awaits it.
 */
export class FileOutput {
  readonly #file: FileHandle;
  readonly #waiting = Buffer.allocUnsafeSlow(pieceBytes);
  #waitingBytes = 0;
  /** What the file has. */
  #size = 0;
  #end: { readonly failure: unknown } | null = null;
  readonly #readers = new Set<() => void>();

  constructor(file: FileHandle) {
    this.#file = file;
  }

  write(chunk: Uint8Array): void | Promise<void> {
    if (this.#waitingBytes + chunk.byteLength > pieceBytes) return this.#writeLater(chunk);
    this.#waiting.set(chunk, this.#waitingBytes);
    this.#waitingBytes += chunk.byteLength;
  }

  /** The last bytes are written, or `failure` says why there are none. */
  async end(failure: unknown = null): Promise<void> {
    try {
      if (failure === null) await this.#flush();
      this.#end = { failure };
    } catch (error) {
      this.#end = { failure: error };
      throw error;
    } finally {
      this.#wake();
    }
  }

  /** All of it, as far as it is there and then as it comes. Throws what `end` was told. */
  async copyTo(sink: ByteSink): Promise<void> {
    for (let position = 0; ; ) {
      const ended = this.#end;
      if (ended !== null && ended.failure !== null) throw ended.failure;
      const waiting = this.#size - position;
      // While the file is still written, only whole pieces are read.
      if (waiting >= pieceBytes || (ended !== null && waiting > 0)) {
        const bytes = sharedBriefly(Math.min(pieceBytes, waiting));
        const { bytesRead } = await this.#file.read(bytes, 0, bytes.length, position);
        if (bytesRead === 0) throw new Error('a segment file has become shorter');
        position += bytesRead;
        await sink(bytes.subarray(0, bytesRead));
      } else if (ended !== null) return;
      else await new Promise<void>((resolve) => this.#readers.add(resolve));
    }
  }

  async #writeLater(chunk: Uint8Array): Promise<void> {
    await this.#flush();
    if (chunk.byteLength > pieceBytes) await this.#writeAll(chunk);
    else this.write(chunk);
  }

  async #flush(): Promise<void> {
    const bytes = this.#waitingBytes;
    this.#waitingBytes = 0;
    await this.#writeAll(this.#waiting.subarray(0, bytes));
  }

  async #writeAll(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length; ) {
      const { bytesWritten } = await this.#file.write(bytes, at, bytes.length - at, this.#size);
      at += bytesWritten;
      this.#size += bytesWritten;
    }
    this.#wake();
  }

  #wake(): void {
    for (const reader of this.#readers) reader();
    this.#readers.clear();
  }
}
