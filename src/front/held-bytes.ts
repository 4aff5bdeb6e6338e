import { ApiError } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { ByteGate, type Hold } from '../base/byte-gate.ts';
import type { Clock } from '../base/clock.ts';
import type { Share } from '../base/share.ts';
import type { RecentOwners } from '../router/recent-owners.ts';
import { CHUNKED_BODY } from './http-guards.ts';
import type { HttpExchange, NoteGrowth } from './http-types.ts';
import { IntakeShares } from './intake-shares.ts';

export interface HeldBody {
  readonly bytes: Uint8Array;
  /** The reservation of the body's memory, to be released when the body is dropped; null where it was too small to be held. */
  readonly hold: Hold | null;
}

/** A body is there as it came and, until it is stored, as it is understood. */
const copiesOfBody = 2;
/** A chunked body takes at first, then always as much again as it has. */
const chunkedBytesFirst = 256 * 1024;
const growAgainMs = 100;

/**
 * The memory of requests that are on their way: bodies that come, until their actor has dropped them, and answers, until
 * their last byte has left. All of it goes through one gate, which shares it by owner. Who finds no room waits with the
 * body unread, so that the client is held up and nothing of it is in our memory.
 */
export class HeldBytes {
  /** Holds up who sends more than its part. */
  readonly intake: IntakeShares;
  readonly #gate: ByteGate;
  readonly #clock: Clock;

  /** `memoryBytes`: what the whole process may take (`TIDEBASE_MEMORY_BYTES`); requests hold a part of it. */
  constructor(memoryBytes: number, clock: Clock, recentOwners: Pick<RecentOwners, 'hasOthersThan'>) {
    const max = Math.max(memoryBytes / limits.transfersPart, limits.transferBytesMin);
    this.#gate = new ByteGate({ max, clock, waitersMax: limits.roomWaitersMax });
    this.#clock = clock;
    this.intake = new IntakeShares(clock, recentOwners);
  }

  get gate(): ByteGate {
    return this.#gate;
  }

  /**
   * Reads the body of an exchange. Rejects as `readBody` does, and with 429 `rate_limited` where there is no room for it
   * within `limits.roomWaitMs`.
   */
  async readBody(exchange: HttpExchange, share: Share, limitBytes: number): Promise<HeldBody> {
    const { declaredBytes } = exchange;
    const { owner } = share;
    if (declaredBytes === CHUNKED_BODY) return this.#readChunked(exchange, share, limitBytes);
    if (declaredBytes <= limits.unheldBytesMax || declaredBytes > limitBytes)
      return { bytes: new Uint8Array(await exchange.readBody(limitBytes)), hold: null };
    const amount = copiesOfBody * declaredBytes;
    const hold = await this.#gate.reserveWithin(limits.roomWaitMs, { owner, amount, slow: exchange });
    if (hold === null) throw noRoom();
    try {
      const bytes = new Uint8Array(await exchange.readBody(limitBytes, this.#cameOf(share)));
      hold.settle();
      return { bytes, hold };
    } catch (error) {
      hold.release();
      throw error;
    }
  }

  /** Holds what an answer takes, or answers null where it must not be sent: its reader has too many others unread. */
  holdAnswer(exchange: HttpExchange, { owner }: Share, bytes: number): Hold | null {
    return this.#gate.reserve(owner, bytes, exchange);
  }

  /** Notes what has come of a body, whenever it has grown. */
  #cameOf(share: Share): NoteGrowth {
    let known = 0;
    return (filled) => {
      const bytes = filled - known;
      known = filled;
      return this.intake.came(share, bytes);
    };
  }

  async #readChunked(exchange: HttpExchange, share: Share, limitBytes: number): Promise<HeldBody> {
    const { owner } = share;
    const came = this.#cameOf(share);
    const amount = copiesOfBody * Math.min(chunkedBytesFirst, limitBytes);
    const hold = await this.#gate.reserveWithin(limits.roomWaitMs, { owner, amount, slow: exchange });
    if (hold === null) throw noRoom();
    // More may come while room is made for what came before.
    let room = Promise.resolve();
    try {
      const body = await exchange.readBody(limitBytes, (filled) => {
        const heldUp = came(filled);
        if (copiesOfBody * filled <= hold.amount) return heldUp;
        room = room.then(() => this.#grow(hold, copiesOfBody * filled, copiesOfBody * limitBytes));
        return heldUp === undefined ? room : Promise.all([room, heldUp]).then(() => {});
      });
      hold.settle();
      return { bytes: new Uint8Array(body), hold };
    } catch (error) {
      hold.release();
      throw error;
    }
  }

  /** Grows a hold to the amount that is needed, and on to twice of what it was where that is to be had. */
  async #grow(hold: Hold, needed: number, most: number): Promise<void> {
    if (hold.amount >= needed || hold.grow(Math.min(Math.max(2 * hold.amount, needed), most) - hold.amount))
      return;
    const until = this.#clock.monotonic() + limits.roomWaitMs;
    while (!hold.grow(needed - hold.amount)) {
      if (this.#clock.monotonic() >= until) throw noRoom();
      await this.#clock.sleep(growAgainMs);
    }
  }
}

function noRoom(): ApiError {
  return new ApiError(
    'rate_limited',
    'the memory for request bodies is taken up; nothing was done: send fewer bodies at once, or smaller ones',
    { retryAfter: 1 },
  );
}

export function answersUnread(): ApiError {
  return new ApiError(
    'rate_limited',
    'answers that are not read yet take up your part of the memory: read them, or ask for less with limit or max_bytes',
    { retryAfter: 1 },
  );
}
