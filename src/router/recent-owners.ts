import type { Clock } from '../base/clock.ts';

/** Work of the last so many milliseconds counts, and up to twice as many. */
const recentMs = 1_000;
/** Owners that are told apart; a server with more has many all the same. */
const ownersMax = 1_000;

/** How many owners this server has worked for just now: what background work of one of them takes, it takes from the others. */
export class RecentOwners {
  readonly #clock: Pick<Clock, 'monotonic'>;
  #now = new Set<number>();
  #before = new Set<number>();
  #since: number;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
    this.#since = clock.monotonic();
  }

  /** The owner has sent a request. What belongs to nobody does not count. On the path of every read: it looks at no clock. */
  note(owner: number): void {
    if (owner > 0 && this.#now.size < ownersMax) this.#now.add(owner);
  }

  get count(): number {
    const now = this.#clock.monotonic();
    const passedMs = now - this.#since;
    if (passedMs >= recentMs) {
      this.#before = passedMs >= 2 * recentMs ? new Set() : this.#now;
      this.#now = new Set();
      this.#since = now;
    }
    let count = this.#now.size;
    for (const owner of this.#before) if (!this.#now.has(owner)) count++;
    return count;
  }
}
