import { limits } from '../../protocol/limits.ts';
import type { BlockPlace } from './segment-format.ts';

/** Stored bytes that are decoded in a turn: 1 to 2 ms. A GET brings up to 64 times as many at once. */
const decodedBytesPerTurn = 128 * 1024;
/** Stored bytes that another thread is given at once: 2 ms of work. */
const pieceBytesMax = 384 * 1024;
/** Fewer are decoded here: a message to another thread takes as long. */
const pieceBytesMin = 64 * 1024;
/** What keeping a block takes, in memory and on the local disk, beside decoding it. */
const keptShare = 1 / 4;

/** Spreads the decoding of what came from the store over the thread's turns, and over other threads. */
export class DecodingTurns {
  readonly #yieldTurn: () => Promise<void>;
  #bytes = 0;
  #next: Promise<void> | null = null;
  /** Stored bytes that are to be decoded here, and those that others decode. */
  #here = 0;
  #elsewhere = 0;
  #tasksElsewhere = 0;

  constructor(yieldTurn: () => Promise<void>) {
    this.#yieldTurn = yieldTurn;
  }

  /** Null where so many bytes may be decoded at once. */
  take(bytes: number): Promise<void> | null {
    if (this.#bytes >= decodedBytesPerTurn) return this.#wait(bytes, bytes);
    this.#spend(bytes, bytes);
    return null;
  }

  /** The same for bytes that another thread has decoded: they are only kept. */
  takeDecoded(bytes: number): Promise<void> | null {
    const cost = bytes * keptShare;
    if (this.#bytes >= decodedBytesPerTurn) return this.#wait(cost, 0);
    this.#spend(cost, 0);
    return null;
  }

  /**
   * Has so many bytes decoded elsewhere, where more than others have is to be decoded here. Answers null where they are to be decoded
   * here, because nobody else would.
   */
  async share<T>(bytes: number, decode: () => Promise<T>): Promise<T | null> {
    const goes =
      bytes >= pieceBytesMin &&
      this.#here > this.#elsewhere &&
      this.#tasksElsewhere < limits.decodingsElsewhereMax;
    if (!goes) {
      this.#here += bytes;
      return null;
    }
    this.#elsewhere += bytes;
    this.#tasksElsewhere++;
    try {
      return await decode();
    } catch {
      this.#here += bytes;
      return null;
    } finally {
      this.#elsewhere -= bytes;
      this.#tasksElsewhere--;
    }
  }

  async #wait(cost: number, here: number): Promise<void> {
    do {
      this.#next ??= this.#yieldTurn().then(() => {
        this.#bytes = 0;
        this.#next = null;
      });
      await this.#next;
    } while (this.#bytes >= decodedBytesPerTurn);
    this.#spend(cost, here);
  }

  #spend(cost: number, here: number): void {
    this.#bytes += cost;
    this.#here = Math.max(0, this.#here - here);
  }
}

/** Cuts places of one GET, ascending, into pieces that are decoded at once, with what lies between them; one that is larger is a piece by itself. */
export function decodingPieces(places: readonly BlockPlace[]): BlockPlace[][] {
  const pieces: BlockPlace[][] = [];
  let first = 0;
  for (const place of places) {
    const last = pieces.at(-1);
    if (last !== undefined && place.offset + place.length - first <= pieceBytesMax) last.push(place);
    else {
      pieces.push([place]);
      first = place.offset;
    }
  }
  return pieces;
}
