import { isUtf8 } from 'node:buffer';
import type { FileHandle } from 'node:fs/promises';
import { limits } from '../../protocol/limits.ts';
import { assert } from '../../src/base/assert.ts';
import { type ViewedBytes, viewed } from '../../src/base/viewed-bytes.ts';
import { problemOfBytes } from './file-signature.ts';
import { wrongFile } from './import-error.ts';

const readBytes = 4 * 1024 * 1024;
/** Bytes of a window: two of the longest rows, or one of them while another read comes. */
const windowBytes = limits.importRowBytesMax + 2 * readBytes;
const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf]);

/** Answers where a file's text begins: behind its byte order mark. */
export async function textStartOf(file: FileHandle): Promise<number> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(byteOrderMark.length), { position: 0 });
  return bytesRead === byteOrderMark.length && buffer.equals(byteOrderMark) ? bytesRead : 0;
}

/** Bytes of a file read front to back: a window of them, of which what is not used yet moves to the front when more are read. UTF-8. */
export class FileWindow {
  readonly #file: FileHandle;
  readonly viewed: ViewedBytes;
  readonly #bytes: Buffer;
  /** Where in the file the window's last byte ends, and where the last one does that is wanted. */
  #filePosition = 0;
  #fileEnd = 0;
  #checked = 0;
  /** Where in `bytes` the next byte to be read lies; `end` is behind the last. */
  position = 0;
  end = 0;

  /** Makes a window in `memory`, of 16 MB and more; without it, in memory of its own. */
  constructor(file: FileHandle, memory = viewed(Buffer.from(new ArrayBuffer(windowBytes)))) {
    this.#file = file;
    assert(memory.bytes.length >= windowBytes, () => 'memory for two of the longest rows');
    this.viewed = memory;
    this.#bytes = memory.bytes;
  }

  get bytes(): Buffer {
    return this.#bytes;
  }

  /** Begins with the bytes of the file from `start` to `end`, which begin and end with a character. */
  open({ start, end }: { readonly start: number; readonly end: number }): void {
    this.#filePosition = start;
    this.#fileEnd = end;
    this.#checked = 0;
    this.position = 0;
    this.end = 0;
  }

  /** Where in the file the next byte to be read lies. */
  get filePosition(): number {
    return this.#filePosition - (this.end - this.position);
  }

  /** Whether nothing comes after the window. */
  get isLast(): boolean {
    return this.#filePosition === this.#fileEnd;
  }

  /** The bytes at `position` and more; throws ApiError 422 where they are no UTF-8. There is more. */
  async fill(): Promise<void> {
    const left = this.end - this.position;
    if (left + readBytes > this.#bytes.length) throw new RangeError('what is used of the window comes first');
    this.#bytes.copyWithin(0, this.position, this.end);
    this.#checked -= this.position;
    this.position = 0;
    this.end = left;
    const wanted = Math.min(readBytes, this.#fileEnd - this.#filePosition);
    for (let read = 0; read < wanted; ) {
      const { bytesRead } = await this.#file.read(this.#bytes, this.end, wanted - read, this.#filePosition);
      if (bytesRead === 0) throw new Error('the received file has become shorter');
      read += bytesRead;
      this.end += bytesRead;
      this.#filePosition += bytesRead;
    }
    this.#check();
  }

  /** A character may be cut at the end: its first bytes are looked at with the rest. */
  #check(): void {
    let end = this.end;
    if (!this.isLast) {
      let back = 1;
      while (back < 4 && back < end && ((this.#bytes[end - back] as number) & 0xc0) === 0x80) back++;
      if ((this.#bytes[end - back] as number) >= 0xc0) end -= back;
    }
    const from = Math.max(0, this.#checked);
    if (!isUtf8(this.#bytes.subarray(from, end))) {
      const problem = this.#filePosition === this.end ? problemOfBytes(this.#bytes.subarray(0, end)) : null;
      if (problem !== null) throw wrongFile(problem);
      const offset = this.#filePosition - this.end + this.#firstWrong(from, end);
      throw wrongFile(`its bytes are no UTF-8 near byte ${offset}: save it as UTF-8`);
    }
    this.#checked = end;
  }

  /** To within a thousand bytes. */
  #firstWrong(from: number, end: number): number {
    let [low, high] = [from, end];
    while (high - low > 1_000) {
      const middle = (low + high) >> 1;
      // A cut character is wrong too, by three bytes at most.
      if (isUtf8(this.#bytes.subarray(low, middle))) low = middle;
      else high = middle;
    }
    return low;
  }
}

/** What the window must have room for beside a read. */
export const windowRowBytesMax = readBytes;
