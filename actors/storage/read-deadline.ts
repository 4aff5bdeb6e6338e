import type { Clock } from '../../src/base/clock.ts';
import { settledWithin } from '../../src/base/settled-within.ts';
import { StoreError } from '../../src/object-store/object-store.ts';

/** A query that has waited so long in vain for one read calls the store away; where reads come, the query is what takes long. */
const silentMsMin = 3_000;

/** A read that had not come when the time of the query that waited for it was over. The read itself may go on for others. */
export class ReadTimedOut extends StoreError {
  override name = 'ReadTimedOut';
  /** Whether the store was silent (503 `unavailable`); else the query asked for too much (422 `query_timeout`). */
  readonly isSilent: boolean;

  constructor(isSilent: boolean) {
    const cause = new Error('the time of the query is over');
    super('get', 'what a query waits for', 'not-applied', 'timeout', { cause });
    this.isSilent = isSilent;
  }
}

/** Whoever waits for reads, and does something with what has come before it waits again. */
export interface Reader {
  /** It has nothing to do until a read has come. */
  waits(): void;
  /** A read that it waited for has come. */
  goOn(): void;
}

/** The moment at which a query must have answered. It goes with the query's reads, so that none is waited for any longer. */
export class ReadDeadline {
  readonly #clock: Clock;
  readonly #limitMs: number;
  readonly #dueAt: number;
  #reader: Reader | null = null;
  /** How many reads were begun, how many of them are waited for now, and since when nothing has come of these. */
  #begun = 0;
  #waiting = 0;
  #silentSince = 0;

  /** Makes the deadline that lies `limitMs` after `beganAt`, which is on the monotonic scale, or after now. */
  constructor(clock: Clock, limitMs: number, beganAt = clock.monotonic()) {
    this.#clock = clock;
    this.#limitMs = limitMs;
    this.#dueAt = beganAt + limitMs;
  }

  /** Milliseconds left; 0 where the time is over. */
  get leftMs(): number {
    return Math.max(0, this.#dueAt - this.#clock.monotonic());
  }

  get isOver(): boolean {
    return this.leftMs === 0;
  }

  /** Tells `reader` from now on when it waits and when it goes on. */
  tell(reader: Reader): void {
    this.#reader = reader;
  }

  /** Waits for work as long as there is time, then throws `ReadTimedOut`; the work goes on and nobody hears how it ends. */
  async wait<T>(work: Promise<T>): Promise<T> {
    this.#reader?.waits();
    this.#begun++;
    if (this.#waiting++ === 0) this.#silentSince = this.#clock.monotonic();
    try {
      if (await settledWithin(this.#clock, work, this.leftMs)) return await work;
      throw this.#timedOut(this.#silentSince);
    } finally {
      this.#waiting--;
      this.#silentSince = this.#clock.monotonic();
      this.#reader?.goOn();
    }
  }

  /**
   * Waits as `wait` does, for work that has reads of its own and says when it waits for them. The store was silent where one of
   * these was: reads that came, and what was done with them, may have taken all of the time.
   */
  async waitUntold<T>(work: Promise<T>): Promise<T> {
    const beganAt = this.#clock.monotonic();
    const begun = this.#begun;
    if (await settledWithin(this.#clock, work, this.leftMs)) return work;
    if (this.#waiting > 0) throw this.#timedOut(this.#silentSince);
    // Work without a read of its own has waited for somebody else's.
    throw this.#timedOut(this.#begun === begun ? beganAt : this.#clock.monotonic());
  }

  #timedOut(silentSince: number): ReadTimedOut {
    const silentMs = this.#clock.monotonic() - silentSince;
    return new ReadTimedOut(silentMs >= Math.min(silentMsMin, this.#limitMs / 2));
  }
}
