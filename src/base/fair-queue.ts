import type { Share } from './share.ts';

export interface FairQueueOptions {
  /** Items of one tenant that may wait, and of all together. */
  readonly tenantMax: number;
  readonly max: number;
  /**
   * So much, in units of cost and times its weight, an owner that was away may use before it stands behind those who never are; none
   * where it is not said. Whoever wants little and now and then has it at once; whoever wants much gains this much, once.
   */
  readonly burst?: number;
}

export interface Taken<T> {
  readonly share: Share;
  readonly item: T;
}

interface TenantLine<T> {
  time: number;
  readonly items: Taken<T>[];
  /** Items before it were taken. */
  head: number;
}

interface OwnerLine<T> {
  time: number;
  /** The virtual time of its tenants. */
  virtualTime: number;
  readonly tenants: Map<number, TenantLine<T>>;
  waiting: number;
}

/** Lines that nobody waits in are looked through for forgotten ones when there are so many. */
const idleLinesMax = 1_000;
/** A line's array is cut when so many of its items were taken. */
const takenItemsMax = 64;

/**
 * Says who is next where many want something that one has at a time: start-time fair queueing, owners first, and below each
 * owner its tenants.
 *
 * 1. Each owner has a virtual time: what it has used, divided by its weight. The owner with the least is next.
 * 2. An owner that comes back begins at the time of the one that was served last, or earlier by the burst at most, if it used less
 *    meanwhile: it makes up for no more than that, and does not pay for what it used while nobody else wanted it.
 * 3. What something costs is often known only afterwards. Who takes an item may pay an estimate at once; `charge` adds
 *    what was missing, or gives back what was too much.
 * 4. What each tenant may have waiting is bounded.
 *
 * A choice looks at each owner that waits: some nanoseconds each.
 */
export class FairQueue<T> {
  readonly #options: FairQueueOptions;
  readonly #burst: number;
  readonly #owners = new Map<number, OwnerLine<T>>();
  /** Those of whom something waits. */
  readonly #waiting = new Map<number, OwnerLine<T>>();
  #virtualTime = 0;
  #size = 0;

  constructor(options: FairQueueOptions) {
    this.#options = options;
    this.#burst = options.burst ?? 0;
  }

  /** Items that wait. */
  get size(): number {
    return this.#size;
  }

  /** Whether a further item of the share would be refused. */
  isFull({ owner, tenant }: Share): boolean {
    if (this.#size >= this.#options.max) return true;
    const line = this.#owners.get(owner)?.tenants.get(tenant);
    return line !== undefined && line.items.length - line.head >= this.#options.tenantMax;
  }

  /** Answers false where the item may not wait. */
  push(share: Share, item: T): boolean {
    if (this.isFull(share)) return false;
    const owner = this.#ownerOf(share);
    const tenant = this.#tenantOf(owner, share);
    if (owner.waiting === 0) {
      owner.time = Math.max(owner.time, this.#newestTime);
      this.#waiting.set(share.owner, owner);
    }
    if (tenant.head === tenant.items.length)
      tenant.time = Math.max(tenant.time, owner.virtualTime - this.#burst);
    tenant.items.push({ share, item });
    owner.waiting++;
    this.#size++;
    return true;
  }

  /**
   * Takes the item that is next, of the owners that may have one now, and charges the estimate for it. Null where there is
   * none.
   */
  shift(estimate = 0, mayRun: (owner: number) => boolean = always): Taken<T> | null {
    let next: OwnerLine<T> | null = null;
    for (const [owner, line] of this.#waiting) {
      if ((next === null || line.time < next.time) && mayRun(owner)) next = line;
    }
    if (next === null) return null;
    this.#virtualTime = Math.max(this.#virtualTime, next.time);
    const taken = this.#takeFrom(next);
    this.#size--;
    if (next.waiting === 0) this.#waiting.delete(taken.share.owner);
    if (estimate > 0) this.charge(taken.share, estimate);
    return taken;
  }

  /** The share has used so much more; a negative cost gives back what an estimate had too much. */
  charge(share: Share, cost: number): void {
    const owner = this.#ownerOf(share);
    const tenant = this.#tenantOf(owner, share);
    owner.time = Math.max(owner.time, this.#newestTime) + cost / share.weight;
    tenant.time = Math.max(tenant.time, owner.virtualTime - this.#burst) + cost;
    // Nobody else wanted what it used.
    if (this.#size === 0) this.#virtualTime = Math.max(this.#virtualTime, owner.time);
    if (owner.waiting === 0) owner.virtualTime = Math.max(owner.virtualTime, tenant.time);
    if (this.#owners.size > this.#waiting.size + idleLinesMax) this.#forgetIdle();
  }

  /** Whether the owner has some of its burst left: it has used less than whoever was served last. */
  hasBurst(owner: number): boolean {
    const line = this.#owners.get(owner);
    return line === undefined ? this.#burst > 0 : line.time < this.#virtualTime;
  }

  /** Whether somebody waits who has some of the burst left: `shift` takes their items first. */
  get burstWaits(): boolean {
    for (const { time } of this.#waiting.values()) if (time < this.#virtualTime) return true;
    return false;
  }

  /** Takes out everything that waits, in no particular order. */
  clear(): T[] {
    const items: T[] = [];
    for (let taken = this.shift(); taken !== null; taken = this.shift()) items.push(taken.item);
    return items;
  }

  /**
   * Takes out the newest item of the owner who has most waiting, to make room for another owner; null where that other one
   * would then have more waiting.
   */
  dropLongest({ owner: other }: Share): T | null {
    let longest: OwnerLine<T> | null = null;
    let longestOwner = 0;
    for (const [owner, line] of this.#waiting) {
      if (longest === null || line.waiting > longest.waiting) [longest, longestOwner] = [line, owner];
    }
    if (longest === null || longest.waiting <= (this.#waiting.get(other)?.waiting ?? 0) + 1) return null;
    let fullest: TenantLine<T> | null = null;
    for (const tenant of longest.tenants.values()) {
      if (fullest === null || waitingIn(tenant) > waitingIn(fullest)) fullest = tenant;
    }
    const dropped = fullest?.items.pop();
    if (fullest === null || dropped === undefined) return null;
    if (fullest.head >= fullest.items.length) empty(fullest);
    if (--longest.waiting === 0) this.#waiting.delete(longestOwner);
    this.#size--;
    return dropped.item;
  }

  /** Where an owner begins that was never there. */
  get #newestTime(): number {
    return this.#virtualTime - this.#burst;
  }

  #ownerOf({ owner }: Share): OwnerLine<T> {
    const known = this.#owners.get(owner);
    if (known !== undefined) return known;
    const line = { time: this.#newestTime, virtualTime: 0, tenants: new Map(), waiting: 0 };
    this.#owners.set(owner, line);
    return line;
  }

  /** Whoever has all of its burst is where a new one would begin. */
  #forgetIdle(): void {
    for (const [owner, line] of this.#owners) {
      if (line.waiting === 0 && line.time <= this.#virtualTime - this.#burst) this.#owners.delete(owner);
    }
  }

  #tenantOf(owner: OwnerLine<T>, { tenant }: Share): TenantLine<T> {
    const known = owner.tenants.get(tenant);
    if (known !== undefined) return known;
    const newest = owner.virtualTime - this.#burst;
    if (owner.tenants.size >= idleLinesMax) forgetIdleTenants(owner, newest);
    const line = { time: newest, items: [], head: 0 };
    owner.tenants.set(tenant, line);
    return line;
  }

  #takeFrom(owner: OwnerLine<T>): Taken<T> {
    let next: TenantLine<T> | null = null;
    for (const [tenant, line] of owner.tenants) {
      if (line.head === line.items.length) {
        // As new as one that was never there.
        if (line.time <= owner.virtualTime - this.#burst) owner.tenants.delete(tenant);
      } else if (next === null || line.time < next.time) next = line;
    }
    if (next === null) throw new Error('an owner without items waits');
    owner.virtualTime = Math.max(owner.virtualTime, next.time);
    owner.waiting--;
    const taken = next.items[next.head++] as Taken<T>;
    if (next.head === next.items.length) empty(next);
    else if (next.head >= takenItemsMax) {
      next.items.splice(0, next.head);
      next.head = 0;
    }
    return taken;
  }
}

const always = () => true;

function waitingIn<T>({ items, head }: TenantLine<T>): number {
  return items.length - head;
}

function empty<T>(line: TenantLine<T>): void {
  line.items.length = 0;
  line.head = 0;
}

/** Whoever is not later than the newest would be is as new. */
function forgetIdleTenants<T>({ tenants }: OwnerLine<T>, newest: number): void {
  for (const [tenant, line] of tenants) {
    if (line.items.length === 0 && line.time <= newest) tenants.delete(tenant);
  }
}
