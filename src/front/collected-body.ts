import { limits } from '../../protocol/limits.ts';
import { yieldTurn } from '../base/turns.ts';

/** The first bytes of a body lie in a buffer that grows: most bodies are small, and a declared length costs nothing to declare. */
const headBytesMax = 256 * 1024;
/** Bytes that are joined in one turn of the thread: some two milliseconds. */
const joinedBytesMax = 4 * 1024 * 1024;

/**
 * Slabs of memory that large bodies lie in while they come. They are used again: a buffer for each body that stalls and is
 * given up would be garbage of 60 MB, and collecting that garbage takes the thread longer than receiving it.
 */
export class BodySlabs {
  readonly #free: Uint8Array[] = [];
  readonly #keptMax: number;
  #taken = 0;

  /** `keptMax`: slabs that are kept while nobody uses them. */
  constructor(keptMax: number = limits.bodySlabsKept) {
    this.#keptMax = keptMax;
  }

  /** Bytes of the slabs that bodies lie in now. */
  get takenBytes(): number {
    return this.#taken * limits.bodySlabBytes;
  }

  take(): Uint8Array {
    this.#taken++;
    return this.#free.pop() ?? Buffer.allocUnsafeSlow(limits.bodySlabBytes);
  }

  /** What is kept is bounded; the rest is left to the collector. */
  give(slabs: readonly Uint8Array[]): void {
    this.#taken -= slabs.length;
    for (const slab of slabs) {
      if (this.#free.length >= this.#keptMax) return;
      this.#free.push(slab);
    }
  }
}

/** The bytes of one body as they come. They are copied: the caller may reuse its chunks. */
export class CollectedBody {
  readonly #slabs: BodySlabs;
  readonly #declaredBytes: number;
  #head = new Uint8Array(0);
  #taken: Uint8Array[] = [];
  #filled = 0;

  /** `declaredBytes`: what may come; negative where nobody knows. */
  constructor(slabs: BodySlabs, declaredBytes: number) {
    this.#slabs = slabs;
    this.#declaredBytes = declaredBytes;
  }

  get filled(): number {
    return this.#filled;
  }

  /** Throws RangeError where no memory is to be had. `last`: nothing comes after it. */
  append(chunk: Uint8Array, last: boolean): void {
    const toHead = Math.min(chunk.byteLength, headBytesMax - Math.min(this.#filled, headBytesMax));
    if (toHead > 0) this.#appendToHead(toHead === chunk.byteLength ? chunk : chunk.subarray(0, toHead), last);
    for (let from = toHead; from < chunk.byteLength; ) {
      const at = (this.#filled - headBytesMax) % limits.bodySlabBytes;
      if (at === 0) this.#taken.push(this.#slabs.take());
      const slab = this.#taken.at(-1) as Uint8Array;
      const piece = chunk.subarray(from, from + limits.bodySlabBytes - at);
      slab.set(piece, at);
      from += piece.byteLength;
      this.#filled += piece.byteLength;
    }
  }

  #appendToHead(chunk: Uint8Array, last: boolean): void {
    const needed = this.#filled + chunk.byteLength;
    if (needed > this.#head.byteLength) {
      const grown = new Uint8Array(last ? needed : this.#roomFor(needed));
      grown.set(this.#head.subarray(0, this.#filled));
      this.#head = grown;
    }
    this.#head.set(chunk, this.#filled);
    this.#filled = needed;
  }

  #roomFor(neededBytes: number): number {
    const expected = this.#declaredBytes < 0 ? 2 * neededBytes : this.#declaredBytes;
    return Math.max(neededBytes, Math.min(expected, headBytesMax));
  }

  /** Gives the memory back. What is appended later begins a new body. */
  drop(): void {
    this.#slabs.give(this.#taken);
    this.#taken = [];
    this.#head = new Uint8Array(0);
    this.#filled = 0;
  }

  /**
   * Gives the body in a buffer of its own, of exact size, and collects nothing any more. A body over 4 MB is joined in several
   * turns of the thread. Throws, or rejects with, RangeError where no memory is to be had.
   */
  take(): ArrayBuffer | Promise<ArrayBuffer> {
    const head = this.#head;
    const [taken, filled] = [this.#taken, this.#filled];
    this.#taken = [];
    this.drop();
    if (taken.length === 0) return head.byteLength === filled ? head.buffer : head.buffer.slice(0, filled);
    return this.#join(head, taken, filled);
  }

  #join(head: Uint8Array, taken: readonly Uint8Array[], filled: number): ArrayBuffer | Promise<ArrayBuffer> {
    const joined = new Uint8Array(filled);
    joined.set(head);
    const at = joinSome(joined, taken, head.byteLength);
    if (at < filled) return this.#joinRest(joined, taken, at);
    this.#slabs.give(taken);
    return joined.buffer;
  }

  async #joinRest(
    joined: Uint8Array<ArrayBuffer>,
    taken: readonly Uint8Array[],
    from: number,
  ): Promise<ArrayBuffer> {
    for (let at = from; at < joined.byteLength; at = joinSome(joined, taken, at)) await yieldTurn();
    this.#slabs.give(taken);
    return joined.buffer;
  }
}

/** Copies what one turn may from the slabs into `joined`, from the byte `from` on, and answers where it has come to. */
function joinSome(joined: Uint8Array, taken: readonly Uint8Array[], from: number): number {
  let at = from;
  for (const end = Math.min(joined.byteLength, from + joinedBytesMax); at < end; ) {
    const slab = taken[Math.floor((at - headBytesMax) / limits.bodySlabBytes)] as Uint8Array;
    const piece = slab.subarray(0, joined.byteLength - at);
    joined.set(piece, at);
    at += piece.byteLength;
  }
  return at;
}
