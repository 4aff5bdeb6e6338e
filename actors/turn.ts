import type { Clock } from '../src/base/clock.ts';
import { type Share, upkeepShare } from '../src/base/share.ts';
import { chargeTurn } from '../src/base/turns.ts';

/**
 * One request's claim on its thread, from the moment in which its message is taken: whose it is, when its time began to run,
 * and whether anybody still waits for it. What it uses is charged to its share, slice by slice, so that the next slice of the
 * thread goes to whoever has used least.
 */
export class Turn {
  readonly share: Share;
  /** On the clock's monotonic scale. Time limits count from here, so that waiting for a turn is part of them. */
  readonly beganAt: number;
  readonly #onUsed: (share: Share, ms: number) => void;
  #cancelled = false;

  constructor(share: Share, beganAt: number, onUsed: (share: Share, ms: number) => void = chargeTurn) {
    this.share = share;
    this.beganAt = beganAt;
    this.#onUsed = onUsed;
  }

  /** Nobody waits for its answer any more: what it does may end at its next yield. */
  get cancelled(): boolean {
    return this.#cancelled;
  }

  cancel(): void {
    this.#cancelled = true;
  }

  /** It has used so many milliseconds of the thread. */
  charge(ms: number): void {
    this.#onUsed(this.share, ms);
  }
}

/** For work that the server does for itself, and for tests: it begins now. */
export function ownTurn(clock: Pick<Clock, 'monotonic'>): Turn {
  return new Turn(upkeepShare, clock.monotonic());
}
