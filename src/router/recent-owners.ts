import type { Clock } from '../base/clock.ts';

/** Requests count for so many milliseconds at least, and for twice as many at most. */
const recentMs = 1_000;
/** Owners that are told apart; a server with more has many all the same. */
const ownersMax = 1_000;

/** Counts the owners for whom this server works just now: what background work or the taking in of bodies of one of them takes, it takes from the others. */
export class RecentOwners {
  readonly #clock: Pick<Clock, 'monotonic'>;
  #now = new Set<number>();
  #before = new Set<number>();
  #since: number;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
    this.#since = clock.monotonic();
  }

  /** Notes that the owner has sent a request; what belongs to nobody does not count. It looks at no clock: every read comes this way. */
  note(owner: number): void {
    if (owner > 0 && this.#now.size < ownersMax) this.#now.add(owner);
  }

  /** Whether owners besides this one have sent requests as recently as those that `othersThan` counts. */
  hasOthersThan(owner: number): boolean {
    this.#forgetOld();
    return isMoreThan(this.#now, owner) || isMoreThan(this.#before, owner);
  }

  /** How many owners besides this one have sent requests within the last second or two, or since the last look, if that is longer ago. */
  othersThan(owner: number): number {
    this.#forgetOld();
    let count = 0;
    for (const other of this.#now) if (other !== owner) count++;
    for (const other of this.#before) if (other !== owner && !this.#now.has(other)) count++;
    return count;
  }

  #forgetOld(): void {
    const now = this.#clock.monotonic();
    if (now - this.#since < recentMs) return;
    this.#before = this.#now;
    this.#now = new Set();
    this.#since = now;
  }
}

function isMoreThan(owners: ReadonlySet<number>, owner: number): boolean {
  return owners.size > Number(owners.has(owner));
}
