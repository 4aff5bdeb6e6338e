import { limits } from '../../protocol/limits.ts';
import { type FramePlace, PeerProtocolError } from './frame.ts';
import type { StreamedBody } from './message.ts';

export interface StreamEvents {
  /** There may be something to send again. */
  ready(): void;
  /** The body's source has failed: the rest does not come. */
  failed(cause: unknown): void;
  /** All of it was sent and read, or nobody wants the rest. */
  settled(): void;
}

/** Bytes that are read ahead of a body's source: two frames, so that one is there when the other goes. */
const aheadBytesMax = 2 * limits.peerFrameBytesMax;

/** A message of more than one frame on its way out. It is sent as far as there is credit; its source waits meanwhile. */
export class OutgoingStream {
  readonly id: number;
  readonly #events: StreamEvents;
  readonly #parts: Uint8Array[];
  readonly #source: AsyncIterator<Uint8Array> | null;
  /** The place of the next byte to send in the first part. */
  #offset = 0;
  #queuedBytes: number;
  #credit = limits.peerCreditBytes;
  #sourceEnded: boolean;
  #firstSent = false;
  #lastSent = false;
  #settled = false;
  #reading = false;

  constructor(
    id: number,
    envelope: Uint8Array,
    body: Uint8Array | StreamedBody | null,
    events: StreamEvents,
  ) {
    this.id = id;
    this.#events = events;
    this.#parts = body instanceof Uint8Array ? [envelope, body] : [envelope];
    this.#queuedBytes = this.#parts.reduce((sum, part) => sum + part.byteLength, 0);
    this.#source = body === null || body instanceof Uint8Array ? null : body.chunks[Symbol.asyncIterator]();
    this.#sourceEnded = this.#source === null;
    this.#readAhead();
  }

  /** Whether anything of it has left. */
  get hasLeft(): boolean {
    return this.#firstSent;
  }

  /** Whether its last byte has left. */
  get isSent(): boolean {
    return this.#lastSent;
  }

  get isStopped(): boolean {
    return this.#settled;
  }

  /** Bytes that it holds here. */
  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  /** Whether a frame can go now. */
  get isReady(): boolean {
    if (this.#lastSent || this.#settled) return false;
    return this.#queuedBytes > 0 ? this.#credit > 0 : this.#sourceEnded;
  }

  /** Bytes of the next frame. */
  get frameBytes(): number {
    return Math.min(this.#queuedBytes, this.#credit, limits.peerFrameBytesMax);
  }

  /** Copies the next frame's bytes; answers where it stands. */
  copyFrame(target: Uint8Array, at: number, bytes: number): FramePlace {
    const first = !this.#firstSent;
    this.#firstSent = true;
    for (let copied = 0; copied < bytes; ) {
      const part = this.#parts[0];
      if (part === undefined) throw new Error('a frame has more bytes than its message');
      const taken = Math.min(part.byteLength - this.#offset, bytes - copied);
      target.set(part.subarray(this.#offset, this.#offset + taken), at + copied);
      copied += taken;
      this.#offset += taken;
      if (this.#offset === part.byteLength) {
        this.#parts.shift();
        this.#offset = 0;
      }
    }
    this.#queuedBytes -= bytes;
    this.#credit -= bytes;
    this.#lastSent = this.#queuedBytes === 0 && this.#sourceEnded;
    this.#readAhead();
    return { first, last: this.#lastSent };
  }

  /** The other side has read so much. */
  grant(bytes: number): void {
    if (this.#settled) return;
    if (this.#credit + bytes > limits.peerCreditBytes)
      throw new PeerProtocolError('credit for more than was sent');
    this.#credit += bytes;
    if (this.#lastSent && this.#credit === limits.peerCreditBytes) this.#settle();
    else this.#events.ready();
  }

  /** Nothing more of it is sent. */
  stop(): void {
    if (this.#settled) return;
    this.#parts.length = 0;
    this.#queuedBytes = 0;
    if (!this.#sourceEnded) {
      this.#sourceEnded = true;
      // Whoever made the source hears that nobody reads it; what that answers is for nobody.
      this.#source?.return?.().catch(() => {});
    }
    this.#settle();
  }

  #readAhead(): void {
    if (this.#source === null || this.#reading || this.#sourceEnded) return;
    if (this.#queuedBytes >= aheadBytesMax) return;
    this.#reading = true;
    this.#source.next().then(
      ({ done, value }) => {
        this.#reading = false;
        if (this.#settled) return;
        if (done === true) this.#sourceEnded = true;
        else if (value.byteLength > 0) {
          this.#parts.push(value);
          this.#queuedBytes += value.byteLength;
        }
        this.#events.ready();
        this.#readAhead();
      },
      (cause: unknown) => {
        this.#sourceEnded = true;
        if (this.#settled) return;
        this.#events.failed(cause);
        this.stop();
      },
    );
  }

  #settle(): void {
    this.#settled = true;
    this.#events.settled();
  }
}
