/**
 * Collects one request body, whichever engine delivers it. The bytes are copied: uWebSockets takes its buffers back
 * after each call, and the result must be an ArrayBuffer of exact size that can be moved to another thread.
 */
import { ApiError } from '../../protocol/errors.ts';
import { assert } from '../base/assert.ts';
import { type BodySlabs, CollectedBody } from './collected-body.ts';
import { CHUNKED_BODY } from './http-guards.ts';
import type { NoteGrowth, TakeChunk } from './http-types.ts';

/** How long a body is taken to be at first that comes in chunks. */
const expectedBytesMin = 256 * 1024;

interface Reader {
  /** Takes pieces as they come; null where the whole body is asked for. */
  readonly take: TakeChunk | null;
  /** Is told how many bytes were collected; null where nobody wants to know. */
  readonly grown: NoteGrowth | null;
  readonly resolve: (body: ArrayBuffer | Promise<ArrayBuffer>) => void;
  readonly reject: (error: Error) => void;
}

const nothing = new ArrayBuffer(0);

export class BodyIntake {
  /** All bytes that came, also those that were thrown away after a refusal. */
  receivedBytes = 0;
  /** True once the client sent the whole body. */
  complete = false;
  readonly #declaredBytes: number;
  readonly #collected: CollectedBody;
  #limitBytes = Number.POSITIVE_INFINITY;
  #reader: Reader | null = null;
  #failure: Error | null = null;
  #heldUp: Promise<void> | null = null;
  readonly #onFree: () => void;

  /** `declaredBytes` as `checkHead` gives it; `onFree` is called when the body's taker is no more held up. */
  constructor(declaredBytes: number, slabs: BodySlabs, onFree: () => void = () => {}) {
    this.#declaredBytes = declaredBytes;
    this.#collected = new CollectedBody(slabs, declaredBytes === CHUNKED_BODY ? -1 : declaredBytes);
    this.#onFree = onFree;
  }

  /** Whether the client should send no more for now. */
  get isHeldUp(): boolean {
    return this.#heldUp !== null;
  }

  /** True while a reader waits for more bytes. */
  get waiting(): boolean {
    return this.#reader !== null;
  }

  /** How long the body will be; where it comes in chunks, an estimate that grows with it. */
  get expectedBytes(): number {
    return this.#declaredBytes === CHUNKED_BODY
      ? Math.max(expectedBytesMin, 2 * this.receivedBytes)
      : this.#declaredBytes;
  }

  /** Rejects with ApiError 413 past the limit, else with what `fail` gives. What arrives before is kept for the reader. */
  read(limitBytes: number, grown: NoteGrowth | null = null): Promise<ArrayBuffer> {
    return this.#read(limitBytes, { take: null, grown });
  }

  /** Hands the body over piece by piece and answers how many bytes there were. Rejects as `read` does. */
  async stream(limitBytes: number, take: TakeChunk): Promise<number> {
    await this.#read(limitBytes, { take, grown: null });
    return this.receivedBytes;
  }

  #read(limitBytes: number, { take, grown }: Pick<Reader, 'take' | 'grown'>): Promise<ArrayBuffer> {
    assert(this.#limitBytes === Number.POSITIVE_INFINITY, () => 'the body of an exchange is read once');
    this.#limitBytes = limitBytes;
    return new Promise((resolve, reject) => {
      this.#reader = { take, grown, resolve, reject };
      if (this.#failure !== null) this.fail(this.#failure);
      else if (this.#declaredBytes > limitBytes || this.#collected.filled > limitBytes)
        this.fail(bodyTooLarge(limitBytes));
      else {
        if (take !== null) this.#handOverCollected(take);
        else this.#noteGrowth();
        if (this.complete) this.#finish();
      }
    });
  }

  /** The chunk may be reused by the caller afterwards. */
  take(chunk: Uint8Array, last: boolean): void {
    this.receivedBytes += chunk.byteLength;
    if (last) this.complete = true;
    if (this.#failure !== null) return;
    const take = this.#reader?.take ?? null;
    const bytes = take === null ? this.#collected.filled + chunk.byteLength : this.receivedBytes;
    if (bytes > this.#limitBytes) {
      this.fail(bodyTooLarge(this.#limitBytes));
      return;
    }
    if (take !== null) {
      if (chunk.byteLength > 0) this.#handOver(take, chunk);
      if (last) this.#finish();
      return;
    }
    try {
      this.#collected.append(chunk, last);
    } catch (cause) {
      this.fail(noMemory(cause));
      return;
    }
    this.#noteGrowth();
    if (last && this.#reader !== null) this.#finish();
  }

  /** Drops what was collected and what still comes, and rejects the reader's promise with `error`. */
  fail(error: Error): void {
    this.#failure = error;
    this.#collected.drop();
    const reader = this.#reader;
    this.#reader = null;
    reader?.reject(error);
  }

  #handOverCollected(take: TakeChunk): void {
    if (this.#collected.filled === 0) return;
    const bytes = this.#collected.take();
    // No more than one piece of the socket comes before the body is asked for, and that is joined at once.
    assert(bytes instanceof ArrayBuffer, () => 'a body of many pieces was collected before it was asked for');
    this.#handOver(take, new Uint8Array(bytes));
  }

  #handOver(take: TakeChunk, chunk: Uint8Array): void {
    const held = take(chunk);
    if (held !== undefined) this.#holdUp(held);
  }

  #noteGrowth(): void {
    const held = this.#reader?.grown?.(this.#collected.filled);
    if (held !== undefined) this.#holdUp(held);
  }

  /** Holds the client up while the promise is open; the body fails where it rejects. */
  #holdUp(held: Promise<void>): void {
    const both: Promise<void> = (this.#heldUp === null ? held : Promise.all([this.#heldUp, held])).then(
      () => this.#free(both),
      (error: Error) => {
        this.fail(error);
        this.#free(both);
      },
    );
    this.#heldUp = both;
  }

  #free(held: Promise<void>): void {
    if (this.#heldUp !== held) return;
    this.#heldUp = null;
    if (this.complete) this.#finish();
    this.#onFree();
  }

  /** The body is complete. */
  #finish(): void {
    if (this.#heldUp !== null) return;
    if (this.#reader?.take == null) return this.#deliver();
    const { resolve } = this.#reader;
    this.#reader = null;
    resolve(nothing);
  }

  #deliver(): void {
    const reader = this.#reader;
    this.#reader = null;
    if (reader === null) return;
    try {
      reader.resolve(this.#collected.take());
    } catch (cause) {
      reader.reject(noMemory(cause));
    }
  }
}

/** The one way to fail is a refused allocation: the request is answered, the process lives. */
function noMemory(cause: unknown): ApiError {
  return new ApiError('unavailable', 'there is no memory for the request body now: try again', {
    retryAfter: 1,
    cause,
  });
}

/** 413 for a body that is longer than its operation takes. */
export function bodyTooLarge(limitBytes: number): ApiError {
  return new ApiError('too_large', `the request body is over the limit of ${limitBytes} bytes`);
}
