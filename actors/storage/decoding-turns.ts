import { limits } from '../../protocol/limits.ts';
import type { BlockPlace } from './segment-format.ts';

/** Stored bytes that are decoded in a turn: 1 to 2 ms. A GET brings up to 64 times as many at once. */
const decodedBytesPerTurn = 128 * 1024;
/** Stored bytes that another thread is given at once: 2 ms of work. */
const pieceBytesMax = 384 * 1024;
/** Stored bytes below which a piece is decoded by its own thread: a message to another one takes as long. */
const pieceBytesMin = 64 * 1024;
/** The part of the time of decoding a block that keeping it takes, in memory and on the local disk. */
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

  /** Takes part of a turn for so many stored bytes that are to be decoded: answers null where it is this turn, else what to wait for. */
  take(bytes: number): Promise<void> | null {
    if (this.#bytes >= decodedBytesPerTurn) return this.#wait(bytes);
    this.#bytes += bytes;
    return null;
  }

  /** Takes part of a turn as `take` does, for stored bytes that another thread has decoded, which are only to be kept. */
  takeDecoded(bytes: number): Promise<void> | null {
    return this.take(bytes * keptShare);
  }

  /** Stored bytes of blocks that wait for this thread, because `share` answered null for them. */
  get bytesHere(): number {
    return this.#here;
  }

  /** Notes that so many stored bytes of those for which `share` answered null no longer wait. */
  decodedHere(bytes: number): void {
    this.#here -= bytes;
  }

  /**
   * Has a piece decoded elsewhere, where more bytes wait for this thread than others have. Answers null where it is to be decoded here,
   * for nobody else takes it, or whoever took it failed, whatever the reason: then `decodedHere` is told of all its bytes.
   */
  async share<T>(
    { storedBytes, rawBytes }: { readonly storedBytes: number; readonly rawBytes: number },
    decode: () => Promise<T>,
  ): Promise<T | null> {
    const goes =
      storedBytes >= pieceBytesMin &&
      rawBytes <= limits.decodedElsewhereBytesMax &&
      this.#here > this.#elsewhere &&
      this.#tasksElsewhere < limits.decodingsElsewhereMax;
    if (!goes) {
      this.#here += storedBytes;
      return null;
    }
    this.#elsewhere += storedBytes;
    this.#tasksElsewhere++;
    try {
      return await decode();
    } catch {
      this.#here += storedBytes;
      return null;
    } finally {
      this.#elsewhere -= storedBytes;
      this.#tasksElsewhere--;
    }
  }

  async #wait(bytes: number): Promise<void> {
    this.#next ??= this.#yieldTurn().then(() => {
      this.#bytes = 0;
      this.#next = null;
    });
    await this.#next;
    await this.take(bytes);
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
