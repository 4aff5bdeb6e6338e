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

/** Words of 32 bits: enough for some columns of the largest frame. */
const wordsMax = 131_072;

/**
 * Memory for the arrays of one frame after another: each frame's are given up when the next one begins. Without it a query over a million
 * rows leaves ten megabytes of garbage outside of the heap, for which V8 collects all of it every few queries. Arrays that find no room
 * get memory of their own.
 */
export class FrameMemory implements Arrays {
  readonly #room: Room;
  #buffer: ArrayBuffer | null = null;
  #used = 0;

  /** `room`: where the memory is taken from, once the first frame begins. */
  constructor(room: Room) {
    this.#room = room;
  }

  /** The next frame begins: nobody looks at arrays of the one before any more. */
  begin(): void {
    this.#used = 0;
    this.#buffer ??= this.#room.grown(new Int32Array(0), wordsMax, wordsMax).buffer;
  }

  bytes(count: number): Uint8Array {
    const place = this.#take(count);
    return place === null ? newArrays.bytes(count) : new Uint8Array(place.buffer, place.at, count);
  }

  shorts(count: number): Uint16Array {
    const place = this.#take(count * 2);
    return place === null ? newArrays.shorts(count) : new Uint16Array(place.buffer, place.at, count);
  }

  words(count: number): Uint32Array {
    const place = this.#take(count * 4);
    return place === null ? newArrays.words(count) : new Uint32Array(place.buffer, place.at, count);
  }

  codes(count: number): Int32Array {
    const place = this.#take(count * 4);
    return place === null ? newArrays.codes(count) : new Int32Array(place.buffer, place.at, count);
  }

  doubles(count: number): Float64Array {
    const place = this.#take(count * 8);
    return place === null ? newArrays.doubles(count) : new Float64Array(place.buffer, place.at, count);
  }

  bigs(count: number): BigInt64Array {
    const place = this.#take(count * 8);
    return place === null ? newArrays.bigs(count) : new BigInt64Array(place.buffer, place.at, count);
  }

  /** Answers where so many bytes may stand, from a multiple of 8 on; null where there is no room for them. */
  #take(count: number): { readonly buffer: ArrayBuffer; readonly at: number } | null {
    const at = this.#used;
    const end = at + ((count + 7) & ~7);
    if (this.#buffer === null || end > wordsMax * 4) return null;
    this.#used = end;
    return { buffer: this.#buffer, at };
  }
}
