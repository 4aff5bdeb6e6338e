import { ApiError } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { type Clock, momentOf, msBetween, noMoment } from '../../src/base/clock.ts';
import type { LogClient } from '../log/log-client.ts';

/**
 * When this process's log was last surely open, so that nobody else owned what it owns. A read of a process that others may have
 * removed is answered with evidence that is not older than a second, looked at after the answer was made: who takes over waits
 * longer than that. While there are reads it is renewed before it is old, so that hardly any of them waits for it.
 *
 * Its age is the larger one of what both clocks say has passed: one of them stands still while the machine sleeps.
 */
export class ReadEvidence {
  readonly #clock: Clock;
  readonly #log: Pick<LogClient, 'seenOpen'>;
  #seen = noMoment;
  #renewing: Promise<boolean> | null = null;

  constructor(clock: Clock, log: Pick<LogClient, 'seenOpen'>) {
    this.#clock = clock;
    this.#log = log;
  }

  /** Whether what was read in this turn, or before, may be answered. */
  isFresh(): boolean {
    const ageMs = msBetween(this.#seen, momentOf(this.#clock));
    // A failure is told to whoever has to wait.
    if (ageMs > limits.readEvidenceRenewMs) this.#renew().catch(() => {});
    return ageMs <= limits.readEvidenceMsMax;
  }

  /** Resolves where what was read before may be answered; rejects with 503 where another process may own it. */
  async confirm(): Promise<void> {
    let readAt = momentOf(this.#clock);
    // A look that is on its way may tell of a moment long before; however long the next one takes, it tells of one after.
    // Where the wall clock was set forward meanwhile, it says of a look that began later that it began too late to tell.
    const isAfter = () => this.#seen.monotonicMs > readAt.monotonicMs;
    while (!isAfter() && msBetween(this.#seen, readAt) > limits.readEvidenceMsMax) {
      if (!(await this.#renew())) throw removed();
      // Where the wall clock was set back meanwhile, no look would ever tell of what it said before.
      readAt = { ...readAt, wallMs: Math.min(readAt.wallMs, this.#clock.now()) };
    }
  }

  /** False where the log is sealed. */
  #renew(): Promise<boolean> {
    this.#renewing ??= this.#look().finally(() => {
      this.#renewing = null;
    });
    return this.#renewing;
  }

  async #look(): Promise<boolean> {
    const { monotonicMs, wallMs } = momentOf(this.#clock);
    const ageMs = await this.#log.seenOpen();
    if (ageMs === null) return false;
    this.#seen = { monotonicMs: monotonicMs - ageMs, wallMs: wallMs - ageMs };
    return true;
  }
}

function removed(): ApiError {
  return new ApiError('unavailable', 'this data has moved to another server; nothing was written', {
    retryAfter: 1,
  });
}
