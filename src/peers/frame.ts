/**
 * What a connection between servers is made of: 12 bytes of header, then up to 64 KB.
 *
 * | bytes | what |
 * |---|---|
 * | 1 | the kind; its highest bit is set in the last frame of a message, the next one in the first |
 * | 3 | the length of what follows the header |
 * | 8 | the call that it is about, 0 where it is about none |
 *
 * All numbers have their lowest byte first.
 */
import { limits } from '../../protocol/limits.ts';

export const frameKinds = {
  /** Who speaks: the first frame each way, see hello.ts. */
  hello: 0,
  /** A part of a message: the caller's parts are a request, the other side's its answer. */
  message: 1,
  /** So many bytes of a message were read: as many more may be sent. */
  credit: 2,
  /** Nobody waits for the answer any more. */
  cancel: 3,
  /** The rest of a message does not come; of an answer that has not begun: there will be none. */
  abort: 4,
  /** The rest of a message is not wanted. */
  enough: 5,
  /** A request was not begun: the reason. */
  refused: 6,
  /** Alive. With content, one of `pings`, it is asked for under a number, which its id is, or answers that. */
  ping: 7,
  /** No more calls are taken, those that are under way are answered: the reason. */
  bye: 8,
} as const;

/** What a ping with content says. */
export const pings = { asked: Uint8Array.of(0), answered: Uint8Array.of(1) } as const;

export type FrameKind = (typeof frameKinds)[keyof typeof frameKinds];

export const frameHeaderBytes = 12;
const lastBit = 0x80;
const firstBit = 0x40;
const twoTo32 = 2 ** 32;

/** The other side does not keep to what was agreed: the connection ends. */
export class PeerProtocolError extends Error {
  override name = 'PeerProtocolError';
}

/** A frame's place in its message: first, last, or both where it is all of it. */
export interface FramePlace {
  readonly first: boolean;
  readonly last: boolean;
}

export const wholeMessage: FramePlace = { first: true, last: true };
/** The place of a frame that is no part of a message. */
export const noPlace: FramePlace = { first: false, last: false };

/** Writes a frame's header; answers where its content goes. */
export function writeFrameHeader(
  target: Buffer,
  at: number,
  frame: {
    readonly kind: FrameKind;
    readonly place: FramePlace;
    readonly id: number;
    readonly bytes: number;
  },
): number {
  const { first, last } = frame.place;
  target[at] = frame.kind | (last ? lastBit : 0) | (first ? firstBit : 0);
  target[at + 1] = frame.bytes & 0xff;
  target[at + 2] = (frame.bytes >>> 8) & 0xff;
  target[at + 3] = (frame.bytes >>> 16) & 0xff;
  target.writeUInt32LE(frame.id % twoTo32, at + 4);
  target.writeUInt32LE(Math.floor(frame.id / twoTo32), at + 8);
  return at + frameHeaderBytes;
}

/** One frame that came. */
export interface PeerFrame {
  /** One of `frameKinds`, or one that this version does not know. */
  readonly kind: number;
  readonly place: FramePlace;
  readonly id: number;
  /** The taker's until it returns. */
  readonly content: Uint8Array;
}

/** Cuts bytes into frames, however they come. Holds at most one frame. Throws `PeerProtocolError` for one that is too long. */
export class FrameReader {
  readonly #take: (frame: PeerFrame) => void;
  #held: Buffer | null = null;
  #heldBytes = 0;

  constructor(take: (frame: PeerFrame) => void) {
    this.#take = take;
  }

  push(bytes: Uint8Array): void {
    let at = 0;
    while (at < bytes.byteLength) {
      const whole = this.#heldBytes === 0 ? wholeFrameBytes(bytes, at) : 0;
      if (whole > 0) {
        this.#give(bytes, at, whole);
        at += whole;
      } else {
        at += this.#hold(bytes, at);
      }
    }
  }

  /** Keeps what belongs to the frame that is not whole yet; answers how much it was. */
  #hold(bytes: Uint8Array, at: number): number {
    this.#held ??= Buffer.allocUnsafeSlow(frameHeaderBytes + limits.peerFrameBytesMax);
    const wanted =
      this.#heldBytes < frameHeaderBytes ? frameHeaderBytes : frameHeaderBytes + contentBytes(this.#held, 0);
    const taken = Math.min(wanted - this.#heldBytes, bytes.byteLength - at);
    this.#held.set(bytes.subarray(at, at + taken), this.#heldBytes);
    this.#heldBytes += taken;
    if (this.#heldBytes >= frameHeaderBytes) {
      const whole = frameHeaderBytes + contentBytes(this.#held, 0);
      if (this.#heldBytes === whole) {
        this.#heldBytes = 0;
        this.#give(this.#held, 0, whole);
      }
    }
    return taken;
  }

  #give(bytes: Uint8Array, at: number, whole: number): void {
    const kind = bytes[at] ?? 0;
    const id = uint32At(bytes, at + 4) + uint32At(bytes, at + 8) * twoTo32;
    this.#take({
      kind: kind & ~lastBit & ~firstBit,
      place: { first: (kind & firstBit) !== 0, last: (kind & lastBit) !== 0 },
      id,
      // No Buffer, whose `slice` would be a view on memory that the next frame takes.
      content: new Uint8Array(
        bytes.buffer,
        bytes.byteOffset + at + frameHeaderBytes,
        whole - frameHeaderBytes,
      ),
    });
  }
}

/** The length of the frame that begins there with its header, 0 where it is not all there. */
function wholeFrameBytes(bytes: Uint8Array, at: number): number {
  if (bytes.byteLength - at < frameHeaderBytes) return 0;
  const whole = frameHeaderBytes + contentBytes(bytes, at);
  return bytes.byteLength - at < whole ? 0 : whole;
}

function contentBytes(bytes: Uint8Array, at: number): number {
  const length = uint32At(bytes, at) >>> 8;
  if (length <= limits.peerFrameBytesMax) return length;
  throw new PeerProtocolError(`a frame has ${length} bytes, and may have ${limits.peerFrameBytesMax}`);
}

function uint32At(bytes: Uint8Array, at: number): number {
  const [a = 0, b = 0, c = 0, d = 0] = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
  return (a | (b << 8) | (c << 16) | (d << 24)) >>> 0;
}
