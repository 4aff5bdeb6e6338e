import { limits } from '../../protocol/limits.ts';
import { atEndOfTurn } from '../base/turns.ts';
import type { ByteLink } from './byte-link.ts';
import {
  type FrameKind,
  type FramePlace,
  frameHeaderBytes,
  frameKinds,
  noPlace,
  writeFrameHeader,
} from './frame.ts';
import type { OutgoingStream } from './outgoing-stream.ts';

/** One frame that goes as a whole. */
export interface WholeFrame {
  readonly kind: FrameKind;
  readonly place: FramePlace;
  readonly id: number;
  /** Its content, in one or two pieces. */
  readonly content: Uint8Array;
  readonly rest: Uint8Array | null;
  /** Set once nobody wants it sent any more. */
  dropped: boolean;
  /** Set once it was given to the connection. */
  left: boolean;
}

const nothing = new Uint8Array(0);

/** A frame of a stream in a batch that is being made. */
interface Part {
  readonly stream: OutgoingStream;
  readonly bytes: number;
}

/**
 * Puts frames on a connection, one write for all that a turn has to send, and no write before the last one was taken. Short
 * frames go in their order; of long messages each sends a frame in turn, in what the short ones leave of a batch, which is
 * a quarter at least: a long message delays a short one by a batch at most, and short ones never keep a long one waiting.
 */
export class FrameWriter {
  readonly #link: ByteLink;
  readonly #drained: () => void;
  #whole: WholeFrame[] = [];
  #wholeBytes = 0;
  /** In the order of their turns. */
  readonly #streams = new Set<OutgoingStream>();
  #blocked = false;
  #armed = false;
  #closed = false;
  #sentBytes = 0;
  readonly #flush = () => {
    this.#armed = false;
    this.#pump();
  };

  /** `drained` is called when less waits than before. */
  constructor(link: ByteLink, drained: () => void) {
    this.#link = link;
    this.#drained = drained;
  }

  /** Bytes of whole frames that were not taken yet. */
  get waitingBytes(): number {
    return this.#wholeBytes;
  }

  /** Bytes that were given to the connection. */
  get sentBytes(): number {
    return this.#sentBytes;
  }

  /** Whether the connection takes nothing for now. */
  get isBlocked(): boolean {
    return this.#blocked;
  }

  send(kind: FrameKind, id: number, content: Uint8Array = nothing): void {
    this.sendWhole({ kind, place: noPlace, id, content, rest: null, dropped: false, left: false });
  }

  sendWhole(frame: WholeFrame): void {
    if (this.#closed) return;
    this.#whole.push(frame);
    this.#wholeBytes += wholeFrameBytes(frame);
    this.#arm();
  }

  /** The stream has something to send, now or later. */
  sendStream(stream: OutgoingStream): void {
    if (this.#closed) return;
    this.#streams.add(stream);
    this.#arm();
  }

  removeStream(stream: OutgoingStream): void {
    this.#streams.delete(stream);
  }

  /** The connection takes more. */
  unblock(): void {
    this.#blocked = false;
    this.#pump();
  }

  /** Sends what waits for this turn's end, as far as the connection takes it. */
  flush(): void {
    this.#pump();
  }

  close(): void {
    this.#closed = true;
    this.#whole = [];
    this.#wholeBytes = 0;
    this.#streams.clear();
  }

  #arm(): void {
    if (this.#armed || this.#blocked) return;
    this.#armed = true;
    if (this.#link.atEndOfTurn === undefined) atEndOfTurn(this.#flush);
    else this.#link.atEndOfTurn(this.#flush);
  }

  #pump(): void {
    while (!this.#blocked && !this.#closed) {
      const batch = this.#nextBatch();
      if (batch === null) return;
      this.#sentBytes += batch.byteLength;
      this.#blocked = !this.#link.write(batch);
      this.#drained();
    }
  }

  #nextBatch(): Uint8Array | null {
    const parts = this.#nextParts();
    const partBytes = parts.reduce((sum, part) => sum + frameHeaderBytes + part.bytes, 0);
    const whole = this.#nextWhole(limits.peerBatchBytes - partBytes);
    const bytes = whole.bytes + partBytes;
    if (bytes === 0) return null;
    const batch = Buffer.allocUnsafe(bytes);
    let at = 0;
    for (const frame of whole.frames) at = copyWhole(batch, at, frame);
    for (const { stream, bytes } of parts) {
      const place = stream.copyFrame(batch, at + frameHeaderBytes, bytes);
      at = writeFrameHeader(batch, at, { kind: frameKinds.message, place, id: stream.id, bytes }) + bytes;
    }
    return batch;
  }

  /** Takes whole frames from the front, one at least. */
  #nextWhole(bytesMax: number): { readonly frames: readonly WholeFrame[]; readonly bytes: number } {
    if (this.#whole.length === 0) return { frames: this.#whole, bytes: 0 };
    let count = 0;
    let bytes = 0;
    for (const frame of this.#whole) {
      const more = frame.dropped ? 0 : wholeFrameBytes(frame);
      if (bytes > 0 && bytes + more > bytesMax) break;
      bytes += more;
      this.#wholeBytes -= wholeFrameBytes(frame);
      count++;
    }
    const taken = count === this.#whole.length ? this.#whole : this.#whole.splice(0, count);
    if (taken === this.#whole) this.#whole = [];
    return { frames: taken, bytes };
  }

  /** Chooses what streams send, each a frame at most, in what whole frames leave. Who sends goes to the end of the line. */
  #nextParts(): readonly Part[] {
    if (this.#streams.size === 0) return noParts;
    const room = Math.max(limits.peerBatchBytes / 4, limits.peerBatchBytes - this.#wholeBytes);
    const parts: Part[] = [];
    let bytes = 0;
    for (const stream of [...this.#streams]) {
      if (!stream.isReady) continue;
      if (bytes > 0 && bytes + stream.frameBytes > room) break;
      parts.push({ stream, bytes: stream.frameBytes });
      bytes += stream.frameBytes;
      this.#streams.delete(stream);
      this.#streams.add(stream);
    }
    return parts;
  }
}

const noParts: readonly Part[] = [];

function wholeFrameBytes({ content, rest }: WholeFrame): number {
  return frameHeaderBytes + content.byteLength + (rest === null ? 0 : rest.byteLength);
}

function copyWhole(batch: Buffer, start: number, frame: WholeFrame): number {
  if (frame.dropped) return start;
  const { kind, place, id, content, rest } = frame;
  frame.left = true;
  const bytes = content.byteLength + (rest === null ? 0 : rest.byteLength);
  const at = writeFrameHeader(batch, start, { kind, place, id, bytes });
  batch.set(content, at);
  if (rest !== null) batch.set(rest, at + content.byteLength);
  return at + bytes;
}
