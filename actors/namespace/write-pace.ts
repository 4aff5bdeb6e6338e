/**
 * Writers that are faster than flushes are slowed before they are refused: once memtables wait for their flush, answers to
 * writes come no faster than flushes get done. Else writes go in waves, a second of all they can and then none at all, and
 * in the waves everything else on the machine waits for a core.
 *
 * Answers are due one after the other, each as long after the one before as a flush takes for its bytes. Who writes little
 * never waits.
 */
/** Times what flushes get done, by how many memtables wait: they end up between one and two. */
const shares = [Number.POSITIVE_INFINITY, 1.2, 1, 0.8];
/** The longest delay of a write, however far writers are ahead: beyond it they are refused, which they can see. */
const delayMsMax = 1_000;
/** A timer is no more exact. */
const delayMsMin = 2;
/** How much the last flush counts in the mean. */
const newShare = 0.5;

export class WritePace {
  /** Bytes a millisecond; null before the first flush. */
  #flushed: number | null = null;
  /** When the next answer is due. */
  #nextAt = 0;

  /** A flush of so many bytes of documents took so long. */
  noteFlush(bytes: number, ms: number): void {
    if (bytes === 0 || ms <= 0) return;
    const rate = bytes / ms;
    this.#flushed = this.#flushed === null ? rate : this.#flushed * (1 - newShare) + rate * newShare;
  }

  /** How long the answer to a write of `bytes` waits, in milliseconds; `waiting` memtables wait for their flush. */
  delayMs(bytes: number, waiting: number, now: number): number {
    const share = shares[Math.min(waiting, shares.length - 1)] as number;
    if (this.#flushed === null || share === Number.POSITIVE_INFINITY) return 0;
    this.#nextAt = Math.min(Math.max(this.#nextAt, now) + bytes / (this.#flushed * share), now + delayMsMax);
    const delay = this.#nextAt - now;
    return delay < delayMsMin ? 0 : delay;
  }
}
