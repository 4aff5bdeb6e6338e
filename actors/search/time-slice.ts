import { limits } from '../../protocol/limits.ts';
import type { Clock } from '../../src/base/clock.ts';
import { settledWithin } from '../../src/base/settled-within.ts';
import { type MeasuredWork, rests, runs, turnMs } from '../../src/base/turns.ts';
import type { ReadDeadline, Reader } from '../storage/read-deadline.ts';
import { ownTurn, type Turn } from '../thread/turn.ts';

/**
 * Shares the thread: long work asks `due()` often and awaits `giveWay()` when it is, so that another request of the
 * thread waits at most about one slice. Adds up the time that the work itself took: what it waits for is not counted, and
 * neither is what others do on the thread meanwhile, however many reads of the query are under way at once.
 */
export class TimeSlice implements MeasuredWork, Reader {
  readonly #clock: Clock;
  readonly #turn: Turn;
  readonly #deadline: ReadDeadline;
  #isRunning = false;
  #sliceBegan = 0;
  #spentMs = 0;

  /** Begins to run. `deadline`: when the query must have answered; it tells the slice when a read has come. `turn`: whose work it is. */
  constructor(clock: Clock, deadline: ReadDeadline, turn: Turn = ownTurn(clock)) {
    this.#clock = clock;
    this.#turn = turn;
    this.#deadline = deadline;
    deadline.tell(this);
    this.goOn();
  }

  /** Whether the work should end: its time is over, or nobody waits for it any more. */
  get timedOut(): boolean {
    return this.#turn.cancelled || this.#deadline.isOver;
  }

  /**
   * Whether it has run for a slice, or this turn of the thread has been one, with the work of others; the latter is nothing to an owner
   * who uses less than they do. Work that asks runs, even where nobody said that what it had waited for was there.
   */
  due(): boolean {
    if (!this.#isRunning) this.goOn();
    const now = this.#clock.monotonic();
    if (now - this.#sliceBegan >= limits.timeSliceMs) return true;
    return turnMs(now) >= limits.timeSliceMs && !this.#clock.hasBurst(this.#turn.share);
  }

  async giveWay(): Promise<void> {
    this.waits();
    await this.#clock.yieldTurn(this.#turn.share);
    this.goOn();
  }

  /**
   * Waits for work on what is read, which goes on in this slice: what it waits for is not counted, what it does is. Throws
   * `ReadTimedOut` where it is not done at the deadline.
   */
  async waitFor<T>(work: Promise<T>): Promise<T> {
    try {
      return await this.#deadline.waitUntold(work);
    } finally {
      this.goOn();
    }
  }

  /** Waits for work until the deadline, and answers 'late' then: the work goes on without anybody who waits for it. */
  async waitUntilDeadline<T>(work: Promise<T>): Promise<T | 'late'> {
    this.waits();
    const isSettled = await settledWithin(this.#clock, work, this.#deadline.leftMs);
    this.goOn();
    return isSettled ? work : 'late';
  }

  /** Counts what another thread did for this query, in milliseconds of CPU time. The queue of that thread has charged the share. */
  charge(cpuMs: number): void {
    this.#spentMs += cpuMs;
  }

  /** The work has ended: the turn pays for its last stretch. */
  end(): void {
    this.waits();
  }

  /** Nothing is to be done until what it waits for is there. */
  waits(): void {
    rests(this);
    this.rest();
  }

  /** A stretch of work begins, unless one is under way: what was waited for is there. */
  goOn(): void {
    if (this.#isRunning) return;
    const now = this.#clock.monotonic();
    runs(this, now);
    this.#isRunning = true;
    this.#sliceBegan = now;
  }

  /** A stretch of work ends here: it is counted, and paid for. Called by the thread's turn, too, when other work runs. */
  rest(): void {
    if (!this.#isRunning) return;
    this.#isRunning = false;
    const ms = this.#clock.monotonic() - this.#sliceBegan;
    this.#spentMs += ms;
    this.#turn.charge(ms);
  }

  /** Milliseconds of work so far. */
  get cpuMs(): number {
    return this.#spentMs + (this.#isRunning ? this.#clock.monotonic() - this.#sliceBegan : 0);
  }
}

/** Whether the deadline has come; gives way where the slice is over. */
export async function isOver(slice: TimeSlice): Promise<boolean> {
  if (!slice.due()) return false;
  await slice.giveWay();
  return slice.timedOut;
}
