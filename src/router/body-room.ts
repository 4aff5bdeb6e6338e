import { limits } from '../../protocol/limits.ts';
import type { ByteGate, Hold } from '../base/byte-gate.ts';
import type { IncomingBody } from '../peers/incoming-body.ts';
import type { StreamedBody } from '../peers/message.ts';

/** A body that came whole, and the room that it takes until it is released. */
export interface HeldWhole {
  readonly bytes: Uint8Array;
  readonly hold: Hold;
}

/** What is left of a body that was taken. */
const noBytes = new Uint8Array(0);

/**
 * Memory for bodies between servers that are longer than a frame. Shorter ones are bounded by the number of calls; a longer one has to be
 * in one piece for the thread or the client that it goes to, so its room is had before it is read.
 */
export class BodyRoom {
  readonly #gate: ByteGate;

  constructor(gate: ByteGate) {
    this.#gate = gate;
  }

  /** Memory that is taken. */
  get heldBytes(): number {
    return this.#gate.held;
  }

  /**
   * Reads a body to its end, which then lies in an array of its own. `copies`: how often it will be there at once. Null where there is no room
   * within `limits.roomWaitMs`, or its length is not told; it is closed then. Throws `BodyLost` where it ends early.
   */
  async read(
    body: IncomingBody,
    { owner, copies }: { readonly owner: number; readonly copies: number },
  ): Promise<HeldWhole | null> {
    const hold =
      body.bytes === null
        ? null
        : await this.#gate.reserveWithin(limits.roomWaitMs, { owner, amount: copies * body.bytes });
    if (hold === null) {
      body.close();
      return null;
    }
    try {
      return { bytes: await wholeOf(body, body.bytes ?? 0), hold };
    } catch (error) {
      hold.release();
      throw error;
    }
  }

  /** Makes a stream of a body, which holds its room until the last of it was taken, or nobody takes the rest. Null where there is no room. */
  give(bytes: Uint8Array, owner: number): StreamedBody | null {
    const hold = this.#gate.reserve(owner, bytes.byteLength);
    return hold === null ? null : { bytes: bytes.byteLength, chunks: new GivenBody(bytes, hold) };
  }
}

async function wholeOf(body: IncomingBody, length: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(length);
  let at = 0;
  for await (const chunk of body) {
    bytes.set(chunk, at);
    at += chunk.byteLength;
  }
  return bytes;
}

/** A whole body in pieces: one iteration. No generator, since one that nobody has begun to read would not hear that nobody will. */
class GivenBody implements AsyncIterable<Uint8Array>, AsyncIterator<Uint8Array, void> {
  readonly #hold: Hold;
  #rest: Uint8Array;

  constructor(bytes: Uint8Array, hold: Hold) {
    this.#rest = bytes;
    this.#hold = hold;
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array, void> {
    return this;
  }

  async next(): Promise<IteratorResult<Uint8Array, void>> {
    if (this.#rest.byteLength === 0) return this.return();
    const value = this.#rest.subarray(0, limits.peerFrameBytesMax);
    this.#rest = this.#rest.subarray(value.byteLength);
    return { done: false, value };
  }

  async return(): Promise<IteratorResult<Uint8Array, void>> {
    this.#rest = noBytes;
    this.#hold.release();
    return { done: true, value: undefined };
  }
}
