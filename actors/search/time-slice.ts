import { limits } from '../../protocol/limits.ts';
import type { Clock } from '../../src/base/clock.ts';
import { settledWithin } from '../../src/base/settled-within.ts';

/**
 * Shares the thread: long work asks `due()` often and awaits `giveWay()` when it is, so that another request of the
 * thread waits at most about one slice. Adds up the time that the work itself took.
 */
export class TimeSlice {
  readonly #clock: Clock;
  readonly #deadlineAt: number;
  #sliceBegan: number;
  #spentMs = 0;
  #cancelled = false;

  /** `deadlineMs` from now. */
  constructor(clock: Clock, deadlineMs: number) {
    this.#clock = clock;
    this.#sliceBegan = clock.monotonic();
    this.#deadlineAt = this.#sliceBegan + deadlineMs;
  }

  /** Nobody waits for the answer any more: the work ends at its next yield. */
  cancel(): void {
    this.#cancelled = true;
  }

  get timedOut(): boolean {
    return this.#cancelled || this.#clock.monotonic() >= this.#deadlineAt;
  }

  due(): boolean {
    return this.#clock.monotonic() - this.#sliceBegan >= limits.timeSliceMs;
  }

  async giveWay(): Promise<void> {
    this.#spentMs += this.#clock.monotonic() - this.#sliceBegan;
    await this.#clock.yieldTurn();
    this.#sliceBegan = this.#clock.monotonic();
  }

  /** Waits for something else without counting the wait as work; what it gives way from is counted. */
  async waitFor<T>(work: Promise<T>): Promise<T> {
    this.#spentMs += this.#clock.monotonic() - this.#sliceBegan;
    this.#sliceBegan = this.#clock.monotonic();
    try {
      return await work;
    } finally {
      this.#sliceBegan = this.#clock.monotonic();
    }
  }

  /** As `waitFor`, but no longer than the deadline; then what was waited for goes on without anybody. */
  async waitUntilDeadline<T>(work: Promise<T>): Promise<T | 'late'> {
    work.catch(() => {});
    const leftMs = Math.max(0, this.#deadlineAt - this.#clock.monotonic());
    let settled = false;
    const done = work.finally(() => {
      settled = true;
    });
    await this.waitFor(settledWithin(this.#clock, done, leftMs));
    return settled ? work : 'late';
  }

  /** Milliseconds of work so far. */
  get cpuMs(): number {
    return this.#spentMs + (this.#clock.monotonic() - this.#sliceBegan);
  }
}
