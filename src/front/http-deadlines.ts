/**
 * One coarse timer for all exchanges that wait. A timer per request would cost more than a warm read; and an exchange
 * that is answered within its turn never comes here.
 */
import type { Clock } from '../base/clock.ts';
import { NumberMap } from '../base/number-map.ts';

/** How often deadlines are looked at, in milliseconds: a deadline of seconds may be late by this much, never early. */
export const sweepMs = 250;

export interface Waiting {
  /** When it expires, on the scale of `Deadlines.soonMs`. */
  readonly dueMs: number;
  /** The number under which `Deadlines` has it; 0 where it is in no list. `Deadlines` alone writes it. */
  listed: number;
  /** Called at each sweep at or after `dueMs` until the exchange leaves the list or moves its `dueMs` on. */
  expire(): void;
}

export class Deadlines {
  readonly #clock: Clock;
  readonly #waiting = new NumberMap<Waiting>();
  #lastNumber = 0;
  #sweptMs = 0;
  #disarm: (() => void) | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The current time, at most one sweep ahead: what lasts `ms` from now is due at `soonMs + ms`. Reads no clock while armed. */
  get soonMs(): number {
    return (this.#disarm === null ? this.#clock.monotonic() : this.#sweptMs) + sweepMs;
  }

  /** The time of the last sweep: never after the true time, so what is due by it is due. */
  get sweptMs(): number {
    return this.#sweptMs;
  }

  add(waiting: Waiting): void {
    if (this.#disarm === null) this.#arm();
    if (waiting.listed !== 0) return;
    waiting.listed = ++this.#lastNumber;
    this.#waiting.set(waiting.listed, waiting);
  }

  delete(waiting: Waiting): void {
    if (waiting.listed === 0) return;
    this.#waiting.delete(waiting.listed);
    waiting.listed = 0;
  }

  close(): void {
    this.#disarm?.();
    this.#disarm = null;
    for (const waiting of this.#waiting.values()) this.delete(waiting);
  }

  #arm(): void {
    this.#sweptMs = this.#clock.monotonic();
    this.#disarm = this.#clock.after(sweepMs, () => this.#sweep());
  }

  #sweep(): void {
    this.#sweptMs = this.#clock.monotonic();
    for (const waiting of this.#waiting.values()) {
      if (waiting.listed !== 0 && waiting.dueMs <= this.#sweptMs) waiting.expire();
    }
    if (this.#waiting.size > 0) this.#arm();
    else this.#disarm = null;
  }
}
