import type { ByteLink, LinkListener } from '../../src/peers/byte-link.ts';
import type { DialEvents, PeerTransport, PortEvents } from '../../src/peers/transport.ts';

/** How a pair of links in memory treats what is sent through it, from one end to the other. */
export interface LinkRules {
  /** Cuts what arrives: the length of the next piece. */
  readonly pieceBytes?: () => number;
  /** The connection is lost after so many bytes of this direction have arrived. */
  readonly cutAfterBytes?: number;
  /** Bytes that the link takes before it says that it is full. */
  readonly aheadBytesMax?: number;
}

const unlimited = () => Number.POSITIVE_INFINITY;

/** One end of a connection in memory. What is written arrives at the other end in a later turn. */
export class MemoryLink implements ByteLink {
  readonly #rules: LinkRules;
  #other: MemoryLink | null = null;
  #listener: LinkListener | null = null;
  /** What was written and has not arrived. */
  readonly #way: Uint8Array[] = [];
  #wayBytes = 0;
  #arrivedBytes = 0;
  #armed = false;
  #full = false;
  #closed = false;
  #ending = false;
  #paused = false;
  /** Nothing arrives at the other end while this is set, and nobody hears why: a cable that was pulled. */
  isDead = false;

  private constructor(rules: LinkRules) {
    this.#rules = rules;
  }

  static pair(there: LinkRules = {}, back: LinkRules = {}): readonly [MemoryLink, MemoryLink] {
    const [one, other] = [new MemoryLink(there), new MemoryLink(back)];
    one.#other = other;
    other.#other = one;
    return [one, other];
  }

  /** Bytes that this end has written and the other has not got. */
  get wayBytes(): number {
    return this.#wayBytes;
  }

  listen(listener: LinkListener): void {
    this.#listener = listener;
    this.#other?.deliver();
  }

  write(bytes: Uint8Array): boolean {
    if (this.#closed || this.#ending) return true;
    this.#way.push(bytes);
    this.#wayBytes += bytes.byteLength;
    this.#full = this.#wayBytes > (this.#rules.aheadBytesMax ?? 0);
    this.deliver();
    return !this.#full;
  }

  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
    this.#other?.deliver();
  }

  end(): void {
    this.#ending = true;
    this.deliver();
  }

  destroy(): void {
    this.#lose();
    const other = this.#other;
    if (other !== null && !this.isDead) setImmediate(() => other.#lose());
  }

  /** Brings what is on its way to the other end, a piece a turn. */
  deliver(): void {
    if (this.#armed) return;
    this.#armed = true;
    setImmediate(() => {
      this.#armed = false;
      this.#bring();
    });
  }

  #bring(): void {
    const other = this.#other;
    if (other === null || this.isDead || this.#closed || other.#paused || other.#listener === null) return;
    const { pieceBytes = unlimited, cutAfterBytes = Number.POSITIVE_INFINITY } = this.#rules;
    const first = this.#way[0];
    if (first !== undefined) {
      const room = cutAfterBytes - this.#arrivedBytes;
      const piece = first.subarray(0, Math.min(first.byteLength, Math.max(1, pieceBytes()), room));
      if (piece.byteLength === first.byteLength) this.#way.shift();
      else this.#way[0] = first.subarray(piece.byteLength);
      this.#wayBytes -= piece.byteLength;
      this.#arrivedBytes += piece.byteLength;
      if (piece.byteLength > 0) other.#listener.received(piece);
    }
    if (this.#arrivedBytes >= cutAfterBytes) return this.destroy();
    if (this.#way.length > 0) this.deliver();
    else if (this.#ending) this.destroy();
    if (this.#full && this.#wayBytes <= (this.#rules.aheadBytesMax ?? 0)) {
      this.#full = false;
      this.#listener?.drained();
    }
  }

  #lose(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#way.length = 0;
    this.#listener?.closed();
  }
}

/** Ports in memory. What a connection does to its bytes is asked for each. */
export class MemoryTransport implements PeerTransport {
  readonly #ports = new Map<number, PortEvents>();
  readonly #rules: () => readonly [LinkRules, LinkRules];
  /** Every connection that was made: the end of who dialled and the other one. */
  readonly links: (readonly [MemoryLink, MemoryLink])[] = [];
  /** The port to which each of them was dialled. */
  readonly ports: number[] = [];
  #nextPort = 1;

  constructor(rules: () => readonly [LinkRules, LinkRules] = () => [{}, {}]) {
    this.#rules = rules;
  }

  dial({ port }: { readonly port: number }, events: DialEvents): () => void {
    let givenUp = false;
    setImmediate(() => {
      if (givenUp) return;
      const listening = this.#ports.get(port);
      if (listening === undefined) return events.failed('refused', 'nothing listens');
      const pair = MemoryLink.pair(...this.#rules());
      this.links.push(pair);
      this.ports.push(port);
      listening.accepted(pair[1], 'memory');
      events.secured(pair[0]);
    });
    return () => {
      givenUp = true;
    };
  }

  async listen(_: unknown, events: PortEvents): Promise<{ readonly port: number; close(): void }> {
    const port = this.#nextPort++;
    this.#ports.set(port, events);
    return { port, close: () => this.#ports.delete(port) };
  }
}
