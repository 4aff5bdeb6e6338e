import type { ByteGate, Hold } from '../../src/base/byte-gate.ts';

/**
 * The memory that one query's answer takes while it is made: taken from the thread's gate hit by hit, so that many large
 * answers at once become shorter ones, each with a cursor for the rest, and never more than the thread can hold.
 */
export interface AnswerRoom {
  /** Takes room for so many bytes of JSON more, or answers false where there is none. */
  take(bytes: number): boolean;
  /** Lets go so many of the bytes that were taken, for others of this answer. */
  give(bytes: number): void;
}

/** Hits are there as strings, joined, and as bytes, before they leave the thread. */
const copies = 3;
/** Smaller answers are let be: the requests in flight bound them. */
const unheldBytesMax = 64 * 1024;
/** Room is taken in steps, so that most hits cost one comparison. */
const stepBytes = 256 * 1024;

export class GatedRoom implements AnswerRoom {
  readonly #gate: ByteGate;
  readonly #owner: number;
  #hold: Hold | null = null;
  #bytes = 0;
  #room = unheldBytesMax;

  constructor(gate: ByteGate, owner: number) {
    this.#gate = gate;
    this.#owner = owner;
  }

  take(bytes: number): boolean {
    this.#bytes += bytes;
    if (this.#bytes <= this.#room || this.#grow(this.#bytes - this.#room)) return true;
    this.#bytes -= bytes;
    return false;
  }

  give(bytes: number): void {
    this.#bytes -= bytes;
  }

  /** The answer has left the thread, or none was made. */
  release(): void {
    this.#hold?.release();
    this.#hold = null;
  }

  #grow(missing: number): boolean {
    for (const bytes of [Math.max(missing, stepBytes), missing]) {
      if (this.#hold === null) this.#hold = this.#gate.reserve(this.#owner, copies * bytes);
      else if (!this.#hold.grow(copies * bytes)) continue;
      if (this.#hold === null) continue;
      this.#room += bytes;
      return true;
    }
    return false;
  }
}

/** Room without an end, for answers that nobody else competes with. */
export const unboundedRoom: AnswerRoom = { take: () => true, give() {} };
