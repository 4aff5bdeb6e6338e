import { limits } from '../../protocol/limits.ts';
import { BytePipe } from '../base/byte-pipe.ts';

/** A body ends before its end: the other side gave it up, or the connection is lost. */
export class BodyLost extends Error {
  override name = 'BodyLost';
}

/** What a body tells the connection that it comes on. */
export interface BodyEvents {
  /** So many bytes were read: as many more may come. */
  read(bytes: number): void;
  /** Nobody reads what is still to come. */
  closed(): void;
}

/** So many bytes are read before the sender hears of it: a frame of credit for each frame. */
const creditStepBytes = limits.peerFrameBytesMax;

/**
 * A body that comes in pieces: one iteration, by one reader. No more than `peerCreditBytes` wait unread, since the sender
 * has to be told of what was read. Whoever takes it reads it, or closes it.
 */
export class IncomingBody implements AsyncIterable<Uint8Array> {
  /** How many bytes there are; null where that is not known before the end. */
  readonly bytes: number | null;
  /** The same by the name that a body to send has: it can be passed on as it is. */
  readonly chunks: AsyncIterable<Uint8Array> = this;
  readonly #pipe = new BytePipe(Number.POSITIVE_INFINITY);
  readonly #events: BodyEvents;
  #readBytes = 0;
  #ended = false;
  #closed = false;

  constructor(bytes: number | null, events: BodyEvents) {
    this.bytes = bytes;
    this.#events = events;
  }

  /** Takes bytes that have come for the body, which keeps them. The connection calls it. */
  push(bytes: Uint8Array): void {
    if (!this.#closed) void this.#pipe.write(bytes);
  }

  /** Ends the body: no more comes, or what comes is lost. The connection calls it. */
  end(failure: BodyLost | null = null): void {
    this.#ended = true;
    this.#pipe.end(failure);
  }

  /** Nobody reads it any more. Not needed after an iteration, however that ended. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#pipe.close();
    this.#events.closed();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, void> {
    try {
      for await (const chunk of this.#pipe) {
        this.#readBytes += chunk.byteLength;
        if (this.#readBytes >= creditStepBytes || this.#ended) this.#tellRead();
        yield chunk;
      }
    } finally {
      this.#tellRead();
      this.close();
    }
  }

  #tellRead(): void {
    if (this.#readBytes === 0) return;
    this.#events.read(this.#readBytes);
    this.#readBytes = 0;
  }
}
