import { limits } from '../../protocol/limits.ts';
import type { Clock } from '../../src/base/clock.ts';
import { settledWithin } from '../../src/base/settled-within.ts';
import { ReadDeadline } from '../storage/read-deadline.ts';
import { ownTurn, type Turn } from '../thread/turn.ts';

/**
 * Shares the thread: long work asks `due()` often and awaits `giveWay()` when it is, so that another request of the
 * thread waits at most about one slice. Adds up the time that the work itself took.
 */
export class TimeSlice {
  readonly #clock: Clock;
  readonly #turn: Turn;
  readonly #deadline: ReadDeadline;
  #sliceBegan: number;
  #spentMs = 0;

  /** `deadlineMs` from now; `turn`: whose work it is. */
  constructor(clock: Clock, deadlineMs: number, turn: Turn = ownTurn(clock)) {
    this.#clock = clock;
    this.#turn = turn;
    this.#sliceBegan = clock.monotonic();
    this.#deadline = new ReadDeadline(clock, deadlineMs);
  }

  /** Whether the work should end: its time is over, or nobody waits for it any more. */
  get timedOut(): boolean {
    return this.#turn.cancelled || this.#deadline.isOver;
  }

  due(): boolean {
    return this.#clock.monotonic() - this.#sliceBegan >= limits.timeSliceMs;
  }

  async giveWay(): Promise<void> {
    this.#pause();
    await this.#clock.yieldTurn(this.#turn.share);
    this.#sliceBegan = this.#clock.monotonic();
  }

  /**
   * Waits for a read without counting the wait as work; what it gives way from is counted. Throws `ReadTimedOut` where the
   * read has not come at the deadline.
   */
  async waitFor<T>(work: Promise<T>): Promise<T> {
    this.#pause();
    try {
      return await this.#deadline.wait(work);
    } finally {
      this.#sliceBegan = this.#clock.monotonic();
    }
  }

  /** As `waitFor`, but no longer than the deadline; then what was waited for goes on without anybody. */
  async waitUntilDeadline<T>(work: Promise<T>): Promise<T | 'late'> {
    this.#pause();
    const isSettled = await settledWithin(this.#clock, work, this.#deadline.leftMs);
    this.#sliceBegan = this.#clock.monotonic();
    return isSettled ? work : 'late';
  }

  /** Counts what another thread did for this query, in milliseconds of CPU time. The queue of that thread has charged the share. */
  charge(cpuMs: number): void {
    this.#spentMs += cpuMs;
  }

  /** The work has ended: the turn pays for its last stretch. */
  end(): void {
    this.#pause();
  }

  /** A stretch of work ends here: it is counted, and paid for. */
  #pause(): void {
    const now = this.#clock.monotonic();
    const ms = now - this.#sliceBegan;
    this.#sliceBegan = now;
    this.#spentMs += ms;
    this.#turn.charge(ms);
  }

  /** Milliseconds of work so far. */
  get cpuMs(): number {
    return this.#spentMs + (this.#clock.monotonic() - this.#sliceBegan);
  }
}
