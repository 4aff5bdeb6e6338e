import { limits } from '../../protocol/limits.ts';
import { LruMap } from '../base/lru.ts';

/** What a request is called in the whole cluster: who first sent it, and which of that process's requests it is. */
export interface RequestName {
  /** The log of the process that asked first. */
  readonly origin: string;
  /** Rises by one with each of its requests, from 1 on. */
  readonly sequence: number;
}

/**
 * The names of requests that have come, so that a second copy is refused, on whichever way it comes. A process's names come
 * nearly in order: a bit for each of the last million tells which have come, and what is older counts as a copy.
 */
export class RequestNames {
  readonly #origins = new LruMap<string, Window>(limits.peerOriginsRemembered);
  readonly #remembered: number;

  constructor(remembered: number = limits.peerRequestsRemembered) {
    this.#remembered = remembered;
  }

  /** Notes the name, and answers whether it is new. */
  admit({ origin, sequence }: RequestName): boolean {
    let window = this.#origins.get(origin);
    if (window === undefined) {
      window = new Window(this.#remembered);
      this.#origins.set(origin, window);
    }
    return window.admit(sequence);
  }
}

class Window {
  readonly #bits: Uint8Array;
  readonly #size: number;
  #highest = 0;

  constructor(size: number) {
    this.#size = size;
    this.#bits = new Uint8Array(Math.ceil(size / 8));
  }

  admit(sequence: number): boolean {
    if (sequence > this.#highest) this.#moveTo(sequence);
    else if (sequence <= this.#highest - this.#size || this.#has(sequence)) return false;
    this.#set(sequence, true);
    return true;
  }

  /** What falls out of the window makes room for names that have not come. */
  #moveTo(sequence: number): void {
    if (sequence - this.#highest >= this.#size) this.#bits.fill(0);
    else for (let next = this.#highest + 1; next < sequence; next++) this.#set(next, false);
    this.#highest = sequence;
  }

  #has(sequence: number): boolean {
    const at = sequence % this.#size;
    return ((this.#bits[at >>> 3] ?? 0) & (1 << (at & 7))) !== 0;
  }

  #set(sequence: number, come: boolean): void {
    const at = sequence % this.#size;
    const byte = this.#bits[at >>> 3] ?? 0;
    this.#bits[at >>> 3] = come ? byte | (1 << (at & 7)) : byte & ~(1 << (at & 7));
  }
}
