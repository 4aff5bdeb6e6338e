import { limits } from '../../protocol/limits.ts';
import { frameHeaderBytes, frameKinds, type PeerFrame, PeerProtocolError, wholeMessage } from './frame.ts';
import type { FrameWriter, WholeFrame } from './frame-writer.ts';
import type { IncomingBody } from './incoming-body.ts';
import { IncomingMessage } from './incoming-message.ts';
import { decodeWholeMessage, encodeEnvelope, type ReceivedBody, type SentBody } from './message.ts';
import { OutgoingStream } from './outgoing-stream.ts';

/** What the messages of a connection tell the side of it that they belong to. */
export interface MessageEvents {
  /** Whether a message may begin with this id; where not, it is passed over. Throws `PeerProtocolError`. */
  mayBegin(id: number): boolean;
  /** A message's head is there, and its body, or what is to come of it. */
  came(id: number, said: unknown, body: ReceivedBody): void;
  /** The other side gave up its message. */
  aborted(id: number): void;
  /** The other side wants nothing more of the message that goes to it. */
  unwanted(id: number): void;
  /** The source of a body that was being sent failed, and so the message ends here. */
  sourceFailed(id: number, cause: unknown): void;
}

/** What is being sent under an id. */
export interface Sending {
  /** Whether any byte of it was given to the connection. */
  readonly hasLeft: boolean;
  /** Nothing more of it is sent. True where the other side has to be told. */
  stop(): boolean;
}

/** The messages of one connection, both ways, whole ones and those of many frames. */
export class Messages {
  readonly #writer: FrameWriter;
  readonly #events: MessageEvents;
  readonly #outgoing = new Map<number, OutgoingStream>();
  readonly #incoming = new Map<number, IncomingMessage>();
  /** Streams that begin when one before them has ended. */
  readonly #waiting: (() => void)[] = [];
  #closed = false;

  constructor(writer: FrameWriter, events: MessageEvents) {
    this.#writer = writer;
    this.#events = events;
  }

  get isIdle(): boolean {
    return this.#outgoing.size === 0 && this.#incoming.size === 0;
  }

  /** Bytes of the message where it fits one frame; null where it takes many. */
  static wholeBytes(envelope: Uint8Array, body: SentBody): number | null {
    if (body !== null && !(body instanceof Uint8Array)) return null;
    const bytes = frameHeaderBytes + envelope.byteLength + (body === null ? 0 : body.byteLength);
    return bytes - frameHeaderBytes <= limits.peerFrameBytesMax ? bytes : null;
  }

  /** Throws `HeadTooLarge`. */
  send(id: number, said: unknown, body: SentBody): Sending {
    const envelope = encodeEnvelope(said, body);
    if (Messages.wholeBytes(envelope, body) !== null)
      return this.#sendWhole(id, envelope, body as Uint8Array);
    return this.#sendStream(id, envelope, body);
  }

  /** Takes the frames that are about messages; false for the others. Throws `PeerProtocolError`. */
  take(frame: PeerFrame): boolean {
    const { kind, id, content } = frame;
    switch (kind) {
      case frameKinds.message:
        this.#takeMessage(frame);
        return true;
      case frameKinds.credit:
        this.#outgoing.get(id)?.grant(creditOf(content));
        return true;
      case frameKinds.enough:
        this.#outgoing.get(id)?.stop();
        this.#events.unwanted(id);
        return true;
      case frameKinds.abort:
        this.#incoming.get(id)?.lose('the other server gave it up');
        this.#events.aborted(id);
        return true;
      default:
        return false;
    }
  }

  /** Whatever still comes of the message is passed over. */
  lose(id: number, reason: string): void {
    this.#incoming.get(id)?.lose(reason);
  }

  close(reason: string): void {
    this.#closed = true;
    this.#waiting.length = 0;
    for (const stream of [...this.#outgoing.values()]) stream.stop();
    for (const message of [...this.#incoming.values()]) message.lose(reason);
  }

  #sendWhole(id: number, envelope: Uint8Array, body: Uint8Array | null): Sending {
    const frame: WholeFrame = {
      kind: frameKinds.message,
      place: wholeMessage,
      id,
      content: envelope,
      rest: body,
      dropped: false,
      left: false,
    };
    this.#writer.sendWhole(frame);
    return {
      get hasLeft() {
        return frame.left;
      },
      stop() {
        frame.dropped = true;
        return frame.left;
      },
    };
  }

  #sendStream(id: number, envelope: Uint8Array, body: SentBody): Sending {
    const stream = new OutgoingStream(id, envelope, body, {
      ready: () => {
        if (this.#outgoing.has(id)) this.#writer.sendStream(stream);
      },
      failed: (cause) => {
        if (stream.hasLeft) this.#writer.send(frameKinds.abort, id);
        this.#events.sourceFailed(id, cause);
      },
      settled: () => this.#settled(stream),
    });
    const begin = () => {
      this.#outgoing.set(id, stream);
      this.#writer.sendStream(stream);
    };
    if (this.#outgoing.size < limits.peerStreamsMax) begin();
    else this.#waiting.push(() => (stream.isStopped ? this.#beginNext() : begin()));
    return {
      get hasLeft() {
        return stream.hasLeft;
      },
      stop() {
        const goesOn = stream.hasLeft && !stream.isSent;
        stream.stop();
        return goesOn;
      },
    };
  }

  #settled(stream: OutgoingStream): void {
    this.#writer.removeStream(stream);
    if (this.#outgoing.delete(stream.id)) this.#beginNext();
  }

  #beginNext(): void {
    if (!this.#closed) this.#waiting.shift()?.();
  }

  #takeMessage({ place, id, content }: PeerFrame): void {
    const known = this.#incoming.get(id);
    if (!place.first) {
      known?.take(content, place.last);
      return;
    }
    if (known !== undefined) throw new PeerProtocolError('a message begins twice');
    if (!this.#events.mayBegin(id)) return;
    if (place.last) {
      const { said, body } = decodeWholeMessage(content);
      this.#events.came(id, said, body);
      return;
    }
    if (this.#incoming.size >= limits.peerStreamsMax)
      throw new PeerProtocolError('too many messages at once');
    const message = new IncomingMessage({
      begun: (said: unknown, body: IncomingBody | null) => this.#events.came(id, said, body),
      read: (bytes) => this.#writer.send(frameKinds.credit, id, creditContent(bytes)),
      enough: () => this.#writer.send(frameKinds.enough, id),
      settled: () => this.#incoming.delete(id),
    });
    this.#incoming.set(id, message);
    message.take(content, false);
  }
}

function creditContent(bytes: number): Uint8Array {
  const content = Buffer.allocUnsafe(4);
  content.writeUInt32LE(bytes, 0);
  return content;
}

function creditOf(content: Uint8Array): number {
  if (content.byteLength !== 4) throw new PeerProtocolError('credit of another shape');
  return new DataView(content.buffer, content.byteOffset).getUint32(0, true);
}
