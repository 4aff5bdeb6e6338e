import type { Charges } from '../../src/base/charges.ts';
import type { Clock } from '../../src/base/clock.ts';
import { type Share, upkeepShare } from '../../src/base/share.ts';
import { chargeTurn } from '../../src/base/turns.ts';

export interface TurnParts {
  readonly share: Share;
  /** When it began, on the clock's monotonic scale. Time limits count from here, so that waiting for a turn is part of them. */
  readonly beganAt: number;
  /** What it is, for whoever looks for what holds up a thread: the operation's name. */
  readonly cause: string;
  /** Where charges are added up; null where nobody does. */
  readonly charges: Charges | null;
}

/**
 * One request's claim on its thread, from the moment in which its message is taken: whose it is, when its time began to run,
 * and whether anybody still waits for it. What it uses is charged to its share, stretch by stretch, so that the next slice of
 * the thread goes to whoever has used least.
 */
export class Turn {
  readonly share: Share;
  readonly beganAt: number;
  readonly #cause: string;
  readonly #charges: Charges | null;
  #cancelled = false;

  constructor({ share, beganAt, cause, charges }: TurnParts) {
    this.share = share;
    this.beganAt = beganAt;
    this.#cause = cause;
    this.#charges = charges;
  }

  /** Whether nobody waits for its answer any more: what it does may end at its next yield. */
  get cancelled(): boolean {
    return this.#cancelled;
  }

  cancel(): void {
    this.#cancelled = true;
  }

  /** Charges milliseconds that it has used of the thread without giving way. */
  charge(ms: number): void {
    chargeTurn(this.share, ms);
    this.#charges?.charge(this.share, ms);
    this.#charges?.ran(this.#cause, ms);
  }
}

/** Makes a turn that begins now, for work that the server does for itself, and for tests. */
export function ownTurn(clock: Pick<Clock, 'monotonic'>): Turn {
  return new Turn({ share: upkeepShare, beganAt: clock.monotonic(), cause: 'upkeep', charges: null });
}
