import { limits } from '../../protocol/limits.ts';
import { PeerProtocolError } from './frame.ts';
import { BodyLost, IncomingBody } from './incoming-body.ts';
import { decodeEnvelope, envelopeBytes, wrongLength } from './message.ts';

export interface IncomingEvents {
  /** The head is there; the body comes. */
  begun(said: unknown, body: IncomingBody | null): void;
  /** So many bytes were taken in: as many more may come. */
  read(bytes: number): void;
  /** Nobody wants the rest. */
  enough(): void;
  /** It has come whole and was read, or it never will. */
  settled(): void;
}

/** A message of more than one frame while it comes. Holds its head, and what of its body nobody has read yet. */
export class IncomingMessage {
  readonly #events: IncomingEvents;
  #head: Uint8Array | null = new Uint8Array(0);
  #body: IncomingBody | null = null;
  /** Bytes that came and were not told as read. */
  #unread = 0;
  #bodyBytes = 0;
  #bodyBytesWanted: number | null = null;
  #ended = false;
  #settled = false;

  constructor(events: IncomingEvents) {
    this.#events = events;
  }

  /** The bytes are the caller's. Throws `PeerProtocolError`. */
  take(bytes: Uint8Array, last: boolean): void {
    if (this.#ended) throw new PeerProtocolError('a message goes on after its end');
    this.#ended = last;
    this.#unread += bytes.byteLength;
    if (this.#unread > limits.peerCreditBytes)
      throw new PeerProtocolError('a message is sent without credit');
    if (this.#head === null) this.#takeBody(bytes.slice());
    else this.#takeHead(bytes);
    if (!last) return;
    if (this.#head !== null) throw new PeerProtocolError('a message ends within its head');
    if (this.#bodyBytesWanted !== null && this.#bodyBytes !== this.#bodyBytesWanted) throw wrongLength();
    this.#body?.end();
    this.#settleIfRead();
  }

  /** The rest does not come. */
  lose(reason: string): void {
    // What has come whole can still be read.
    if (!this.#ended) this.#body?.end(new BodyLost(reason));
    this.#ended = true;
    this.#settle();
  }

  #takeHead(bytes: Uint8Array): void {
    const head = Buffer.concat([this.#head ?? new Uint8Array(0), bytes]);
    const whole = envelopeBytes(head);
    if (whole === null || whole > head.byteLength) {
      this.#head = head;
      return;
    }
    this.#head = null;
    const { said, hasBody, bodyBytes } = decodeEnvelope(head, whole);
    this.#bodyBytesWanted = hasBody ? bodyBytes : 0;
    this.#body = hasBody ? this.#newBody(bodyBytes) : null;
    this.#read(whole);
    this.#events.begun(said, this.#body);
    if (whole < head.byteLength) this.#takeBody(head.subarray(whole));
  }

  #takeBody(bytes: Uint8Array): void {
    if (bytes.byteLength === 0) return;
    this.#bodyBytes += bytes.byteLength;
    const wanted = this.#bodyBytesWanted;
    if (this.#body === null || (wanted !== null && this.#bodyBytes > wanted)) throw wrongLength();
    this.#body.push(bytes);
  }

  #newBody(bytes: number | null): IncomingBody {
    return new IncomingBody(bytes, {
      read: (read) => this.#read(read),
      closed: () => {
        if (this.#settled) return;
        if (!this.#ended || this.#unread > 0) this.#events.enough();
        this.#settle();
      },
    });
  }

  #read(bytes: number): void {
    if (this.#settled) return;
    this.#unread -= bytes;
    this.#events.read(bytes);
    this.#settleIfRead();
  }

  #settleIfRead(): void {
    if (this.#ended && this.#unread === 0) this.#settle();
  }

  #settle(): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#events.settled();
  }
}
