import type { Room } from '../room.ts';

/** Makes arrays of so many elements, in which anything may stand. */
export interface Arrays {
  bytes(count: number): Uint8Array;
  shorts(count: number): Uint16Array;
  words(count: number): Uint32Array;
  codes(count: number): Int32Array;
  doubles(count: number): Float64Array;
  bigs(count: number): BigInt64Array;
}

/** Arrays with memory of their own, for whoever keeps them. */
export const newArrays: Arrays = {
  bytes: (count) => new Uint8Array(count),
  shorts: (count) => new Uint16Array(count),
  words: (count) => new Uint32Array(count),
  codes: (count) => new Int32Array(count),
  doubles: (count) => new Float64Array(count),
  bigs: (count) => new BigInt64Array(count),
};

/** Bytes that are kept at most: enough for some columns of a frame of 16,384 rows. */
const bytesMax = 524_288;

/**
 * Memory for the arrays of one frame after another: each frame's are given up when the next one begins. Without it a query over a million
 * rows leaves ten megabytes of garbage outside of the heap, for which V8 collects all of it every few queries. The first frame's arrays have
 * memory of their own, which tells how much the next ones need; so have arrays that find no room.
 */
export class FrameMemory implements Arrays {
  readonly #room: Room;
  #memory: Int32Array = new Int32Array(0);
  #used = 0;
  /** Bytes that the arrays of this frame take, with those that found no room. */
  #wanted = 0;

  /** `room`: where the memory is taken from. */
  constructor(room: Room) {
    this.#room = room;
  }

  /** The next frame begins: nobody looks at arrays of the one before any more. */
  begin(): void {
    const words = Math.min(this.#wanted, bytesMax) / 4;
    this.#memory = this.#room.grown(this.#memory, words, words);
    this.#used = 0;
    this.#wanted = 0;
  }

  bytes(count: number): Uint8Array {
    return this.#made(Uint8Array, count);
  }

  shorts(count: number): Uint16Array {
    return this.#made(Uint16Array, count);
  }

  words(count: number): Uint32Array {
    return this.#made(Uint32Array, count);
  }

  codes(count: number): Int32Array {
    return this.#made(Int32Array, count);
  }

  doubles(count: number): Float64Array {
    return this.#made(Float64Array, count);
  }

  bigs(count: number): BigInt64Array {
    return this.#made(BigInt64Array, count);
  }

  /** Makes an array in the memory, from a multiple of 8 on, or, where that has no room for it, in memory of its own. */
  #made<T>(kind: Kind<T>, count: number): T {
    const length = (count * kind.BYTES_PER_ELEMENT + 7) & ~7;
    this.#wanted += length;
    const at = this.#used;
    if (at + length > this.#memory.byteLength) return new kind(new ArrayBuffer(length), 0, count);
    this.#used = at + length;
    return new kind(this.#memory.buffer, at, count);
  }
}

/** A kind of array. */
interface Kind<T> {
  readonly BYTES_PER_ELEMENT: number;
  new (buffer: ArrayBufferLike, at: number, count: number): T;
}
