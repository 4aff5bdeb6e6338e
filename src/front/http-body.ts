/**
 * Collects one request body, whichever engine delivers it. The bytes are copied: uWebSockets takes its buffers back
 * after each call, and the result must be an ArrayBuffer of exact size that can be moved to another thread.
 */
import { ApiError } from '../../protocol/errors.ts';
import { assert } from '../base/assert.ts';
import { letGo } from '../base/garbage.ts';
import { CHUNKED_BODY } from './http-guards.ts';
import type { TakeChunk } from './http-types.ts';

/**
 * What a declared length reserves before its bytes arrive. A declaration costs the client nothing, so the rest
 * is reserved only once this much came; one copy of 256 KB is the price.
 */
const reservedBytes = 256 * 1024;

interface Reader {
  /** Takes pieces as they come; null where the whole body is asked for. */
  readonly take: TakeChunk | null;
  readonly resolve: (body: ArrayBuffer) => void;
  readonly reject: (error: Error) => void;
}

const nothing = new ArrayBuffer(0);

export class BodyIntake {
  /** All bytes that came, also those that were thrown away after a refusal. */
  receivedBytes = 0;
  /** True once the client sent the whole body. */
  complete = false;
  readonly #declaredBytes: number;
  #bytes = new Uint8Array(0);
  #filled = 0;
  #limitBytes = Number.POSITIVE_INFINITY;
  #reader: Reader | null = null;
  #failure: Error | null = null;
  #heldUp: Promise<void> | null = null;
  readonly #onFree: () => void;

  /** `declaredBytes` as `checkHead` gives it; `onFree` is called when the body's taker is no more held up. */
  constructor(declaredBytes: number, onFree: () => void = () => {}) {
    this.#declaredBytes = declaredBytes;
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
      ? Math.max(reservedBytes, 2 * this.receivedBytes)
      : this.#declaredBytes;
  }

  /** Rejects with ApiError 413 past the limit, else with what `fail` gives. What arrives before is kept for the reader. */
  read(limitBytes: number): Promise<ArrayBuffer> {
    return this.#read(limitBytes, null);
  }

  /** As `read`, handing pieces over; answers how many bytes there were. */
  async stream(limitBytes: number, take: TakeChunk): Promise<number> {
    await this.#read(limitBytes, take);
    return this.receivedBytes;
  }

  #read(limitBytes: number, take: TakeChunk | null): Promise<ArrayBuffer> {
    assert(this.#limitBytes === Number.POSITIVE_INFINITY, () => 'the body of an exchange is read once');
    this.#limitBytes = limitBytes;
    return new Promise((resolve, reject) => {
      this.#reader = { take, resolve, reject };
      if (this.#failure !== null) this.fail(this.#failure);
      else if (this.#declaredBytes > limitBytes || this.#filled > limitBytes)
        this.fail(bodyTooLarge(limitBytes));
      else {
        if (take !== null) this.#handOverCollected(take);
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
    const bytes = take === null ? this.#filled + chunk.byteLength : this.receivedBytes;
    if (bytes > this.#limitBytes) {
      this.fail(bodyTooLarge(this.#limitBytes));
      return;
    }
    if (take !== null) {
      if (chunk.byteLength > 0) this.#handOver(take, Uint8Array.from(chunk));
      if (last) this.#finish();
      return;
    }
    try {
      this.#append(chunk, last);
    } catch (cause) {
      // The one way to fail is a refused allocation: the request is answered, the process lives.
      this.fail(
        new ApiError('unavailable', 'No memory for the request body now; try again.', {
          retryAfter: 1,
          cause,
        }),
      );
      return;
    }
    if (last && this.#reader !== null) this.#finish();
  }

  /** Drops what was collected and what still comes, and rejects the reader's promise with `error`. */
  fail(error: Error): void {
    this.#failure = error;
    // Bodies of clients that stall are ended one after the other: V8 would collect them far too late.
    letGo(this.#bytes.byteLength);
    this.#bytes = new Uint8Array(0);
    this.#filled = 0;
    const reader = this.#reader;
    this.#reader = null;
    reader?.reject(error);
  }

  #handOverCollected(take: TakeChunk): void {
    const bytes = this.#bytes.subarray(0, this.#filled);
    this.#bytes = new Uint8Array(0);
    this.#filled = 0;
    if (bytes.byteLength > 0) this.#handOver(take, bytes);
  }

  #handOver(take: TakeChunk, chunk: Uint8Array): void {
    const held = take(chunk);
    if (held === undefined) return;
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

  #append(chunk: Uint8Array, last: boolean): void {
    const needed = this.#filled + chunk.byteLength;
    if (needed > this.#bytes.byteLength) this.#grow(needed, last);
    this.#bytes.set(chunk, this.#filled);
    this.#filled = needed;
  }

  #grow(neededBytes: number, last: boolean): void {
    const grown = new Uint8Array(this.#roomFor(neededBytes, last));
    grown.set(this.#bytes.subarray(0, this.#filled));
    this.#bytes = grown;
  }

  #roomFor(neededBytes: number, last: boolean): number {
    if (last) return neededBytes;
    if (this.#declaredBytes === CHUNKED_BODY) {
      return Math.max(neededBytes, Math.min(2 * neededBytes, this.#limitBytes));
    }
    if (neededBytes > reservedBytes) return Math.max(neededBytes, this.#declaredBytes);
    return Math.max(neededBytes, Math.min(this.#declaredBytes, reservedBytes));
  }

  #deliver(): void {
    const bytes = this.#bytes;
    const reader = this.#reader;
    this.#bytes = new Uint8Array(0);
    this.#reader = null;
    reader?.resolve(bytes.byteLength === this.#filled ? bytes.buffer : bytes.buffer.slice(0, this.#filled));
  }
}

/** 413 for a body that is longer than its operation takes. */
export function bodyTooLarge(limitBytes: number): ApiError {
  return new ApiError('too_large', `the request body is over the limit of ${limitBytes} bytes`);
}
