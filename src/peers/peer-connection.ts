import { limits } from '../../protocol/limits.ts';
import type { Clock } from '../base/clock.ts';
import type { ByteLink } from './byte-link.ts';
import { FrameReader, frameKinds, type PeerFrame, PeerProtocolError, pings } from './frame.ts';
import { FrameWriter } from './frame-writer.ts';
import { decodeHello, encodeHello, type Hello, sharedVersion, versionsApart } from './hello.ts';

/** One of the two sides of a connection, once both know each other. */
export interface ConnectionSide {
  /** Throws `PeerProtocolError`. */
  take(frame: PeerFrame): void;
  /** The other side has answered the ping that was asked for under this number. */
  pingAnswered?(number: number): void;
  /** Once. */
  close(reason: string): void;
}

/** Why a connection ended, by what follows from it. */
export type ConnectionEnd =
  /** One of the two servers will not have the other: trying again helps when something has changed, as it mostly does by itself. */
  | { readonly kind: 'refused'; readonly reason: string }
  /** This one speaks no version of the protocol that the other speaks. */
  | { readonly kind: 'apart'; readonly reason: string }
  /** The other side does not keep to the protocol. */
  | { readonly kind: 'broken'; readonly reason: string }
  /** It was closed, or nothing came any more. */
  | { readonly kind: 'lost'; readonly reason: string };

export interface ConnectionOptions {
  readonly link: ByteLink;
  readonly clock: Clock;
  /** What this side says, once it knows the other's where it does not speak first. */
  readonly ownHello: (theirs: Hello | null) => Hello;
  readonly speaksFirst: boolean;
  /** A sentence where this server will not have the other one. */
  readonly refusalOf: (theirs: Hello) => string | null;
  /** Both know each other. The greatest version that both speak is what they speak. */
  readonly ready: (theirs: Hello, writer: FrameWriter, version: number) => ConnectionSide;
  /** Once, as the last. */
  readonly ended: (end: ConnectionEnd) => void;
}

/**
 * One connection: who is there, whether they still live, and the frames between. 1. Each side says hello; who is called answers
 * it, or refuses with a sentence, or does both where the caller meant another process. 2. Frames go both ways. 3. Where nothing came for some pings, nobody is there.
 */
export class PeerConnection {
  readonly #options: ConnectionOptions;
  readonly #link: ByteLink;
  readonly #writer: FrameWriter;
  readonly #reader = new FrameReader((frame) => this.#take(frame));
  #side: ConnectionSide | null = null;
  #ended = false;
  #paused = false;
  #heard = true;
  #silentPings = 0;
  #stuckPings = 0;
  #sentBefore = 0;
  #receivedBytes = 0;
  #cancelTimer: () => void;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#link = options.link;
    this.#writer = new FrameWriter(options.link, () => this.#readAgain());
    const { clock } = options;
    this.#cancelTimer = clock.after(limits.peerHandshakeMs, () =>
      this.#end({ kind: 'lost', reason: 'it did not say who it is in time' }, 'at-once'),
    );
    options.link.listen({
      received: (bytes) => this.#received(bytes),
      drained: () => this.#writer.unblock(),
      closed: () => this.#end({ kind: 'lost', reason: 'the connection was closed' }, 'at-once'),
    });
    if (options.speaksFirst) this.#sayHello(null);
  }

  get sentBytes(): number {
    return this.#writer.sentBytes;
  }

  get receivedBytes(): number {
    return this.#receivedBytes;
  }

  /** Tells the other side that no more calls are taken. */
  sayBye(reason: string): void {
    if (!this.#ended) this.#writer.send(frameKinds.bye, 0, Buffer.from(reason));
  }

  /** Sends what waits, as far as the link takes it, and closes. */
  close(reason: string): void {
    this.#end({ kind: 'lost', reason }, 'after-sending');
  }

  #sayHello(theirs: Hello | null): void {
    this.#writer.send(frameKinds.hello, 0, encodeHello(this.#options.ownHello(theirs)));
  }

  #received(bytes: Uint8Array): void {
    if (this.#ended) return;
    this.#heard = true;
    this.#receivedBytes += bytes.byteLength;
    try {
      this.#reader.push(bytes);
    } catch (error) {
      if (!(error instanceof PeerProtocolError)) throw error;
      this.#end({ kind: 'broken', reason: error.message }, 'after-sending');
    }
    // Who does not take its answers asks no more for now.
    if (!this.#ended && !this.#paused && this.#writer.waitingBytes > limits.peerUnsentBytesMax) {
      this.#paused = true;
      this.#link.pause();
    }
  }

  #readAgain(): void {
    if (!this.#paused || this.#writer.waitingBytes > limits.peerUnsentBytesMax / 2) return;
    this.#paused = false;
    this.#link.resume();
  }

  #take(frame: PeerFrame): void {
    if (this.#ended) return;
    if (this.#side === null) this.#greet(frame);
    else if (frame.kind === frameKinds.ping) this.#pinged(frame);
    else this.#side.take(frame);
  }

  #pinged({ id, content }: PeerFrame): void {
    if (content[0] === pings.asked[0]) this.#writer.send(frameKinds.ping, id, pings.answered);
    else if (content[0] === pings.answered[0]) this.#side?.pingAnswered?.(id);
  }

  #greet({ kind, content }: PeerFrame): void {
    if (kind === frameKinds.bye) {
      this.#end({ kind: 'refused', reason: Buffer.from(content).toString() }, 'at-once');
      return;
    }
    if (kind !== frameKinds.hello) throw new PeerProtocolError('its first frame is no hello');
    const theirs = decodeHello(content);
    const { ownHello, refusalOf, ready, speaksFirst } = this.#options;
    const own = ownHello(theirs);
    const version = sharedVersion(own, theirs);
    const refusal = version === null ? versionsApart(own, theirs) : refusalOf(theirs);
    if (version === null || refusal !== null) {
      // The caller means another process, mostly the one before: this tells it whether the same server answers now.
      if (!speaksFirst && version !== null && theirs.wants !== own.logId) this.#sayHello(theirs);
      this.sayBye(refusal ?? '');
      const kind = version === null ? 'apart' : 'refused';
      this.#end({ kind, reason: refusal ?? '' }, 'after-sending');
      return;
    }
    if (!speaksFirst) this.#sayHello(theirs);
    this.#cancelTimer();
    this.#cancelTimer = this.#options.clock.after(limits.peerPingMs, () => this.#ping());
    this.#side = ready(theirs, this.#writer, version);
  }

  #ping(): void {
    // Counted in pings and not in time: a process that slept must first read what came meanwhile.
    this.#silentPings = this.#heard || this.#paused ? 0 : this.#silentPings + 1;
    this.#heard = false;
    const { sentBytes, isBlocked } = this.#writer;
    this.#stuckPings = isBlocked && sentBytes === this.#sentBefore ? this.#stuckPings + 1 : 0;
    if (Math.max(this.#silentPings, this.#stuckPings) >= limits.peerSilentPingsMax) {
      const reason =
        this.#stuckPings > this.#silentPings ? 'it took nothing any more' : 'nothing came from it any more';
      this.#end({ kind: 'lost', reason }, 'at-once');
      return;
    }
    if (sentBytes === this.#sentBefore && !isBlocked) this.#writer.send(frameKinds.ping, 0);
    this.#sentBefore = this.#writer.sentBytes;
    this.#cancelTimer = this.#options.clock.after(limits.peerPingMs, () => this.#ping());
  }

  #end(end: ConnectionEnd, how: 'at-once' | 'after-sending'): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#cancelTimer();
    if (how === 'after-sending') {
      this.#writer.flush();
      this.#link.end();
    } else {
      this.#link.destroy();
    }
    this.#writer.close();
    this.#side?.close(end.reason);
    this.#options.ended(end);
  }
}
