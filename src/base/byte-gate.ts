import { assert } from './assert.ts';
import type { Clock } from './clock.ts';

/**
 * Bounds what many owners hold at once of one thing that there is little of: bytes of memory, bytes of a disk, places.
 *
 * 1. All together hold at most `max`.
 * 2. An owner may hold a quarter of what is free at that moment, so that one alone may hold much, and many hold little, and
 *    something is always left for who comes next. An owner who holds nothing may hold anything that fits.
 * 3. Who asks for more than may be had now can wait. Those who wait get what becomes free in the order in which they came,
 *    except that an owner who has reached its own bound lets others pass. What the oldest one waits for is kept free for it
 *    once it has waited for `keepAfterMs`: otherwise many small ones would pass a large one for ever.
 * 4. While somebody waits, holders that are slow are made to let go: first the one that would hold most for longest. Where an
 *    owner waits at its own bound, only its own holders are.
 *
 * Reserve before allocating; release when the thing itself is gone.
 */
export interface ByteGateOptions {
  readonly max: number;
  readonly clock: Clock;
  /** Waiters at once; one more is refused. */
  readonly waitersMax: number;
}

/** What a gate asks of a holder that could be made to let go. */
export interface Slow {
  /** How long it will go on holding at its present pace; infinite where nothing moves, 0 where that is not known yet. */
  secondsLeft(): number;
  /** Ends what it does. The hold is released by whoever has it, at once or soon. */
  evict(): void;
}

/** What an owner's bound is of what is free. */
const ownersPart = 1 / 4;
/** How often those who wait are looked at again: what is slow now may not have been before. */
const lookEveryMs = 250;
/** A holder that will be done sooner is let be: there is hardly anything to be had by ending it. */
const slowSecondsMin = 2;
const keepAfterMs = 1_000;

export class Hold {
  readonly owner: number;
  readonly #gate: ByteGate;
  #amount: number;
  #slow: Slow | null;
  #released = false;

  /** Made by `ByteGate` alone. */
  constructor(gate: ByteGate, owner: number, amount: number, slow: Slow | null) {
    this.owner = owner;
    this.#gate = gate;
    this.#amount = amount;
    this.#slow = slow;
  }

  get amount(): number {
    return this.#amount;
  }

  /** Null where it can't be made to let go. */
  get slow(): Slow | null {
    return this.#slow;
  }

  /** From now on it is not made to let go: what it holds for is beyond its holder's pace. */
  settle(): void {
    this.#slow = null;
  }

  /** Takes more, or answers false and holds what it held. */
  grow(more: number): boolean {
    assert(!this.#released, () => 'a hold that was released grows');
    if (!this.#gate.mayGrow(this, more)) return false;
    this.#amount += more;
    this.#gate.changed(this.owner, more);
    return true;
  }

  /** Gives all of it back. Later calls do nothing. */
  release(): void {
    if (this.#released) return;
    this.#released = true;
    this.#gate.leave(this);
  }
}

interface Waiter {
  readonly owner: number;
  readonly amount: number;
  readonly slow: Slow | null;
  readonly sinceMs: number;
  readonly answer: (hold: Hold | null) => void;
}

interface Held {
  amount: number;
  holds: number;
}

export class ByteGate {
  readonly #options: ByteGateOptions;
  readonly #holds = new Set<Hold>();
  /** By owner; those who hold nothing have no entry. */
  readonly #owners = new Map<number, Held>();
  readonly #waiters = new Set<Waiter>();
  #total = 0;
  #cancelLook: (() => void) | null = null;
  #evictions = 0;

  constructor(options: ByteGateOptions) {
    this.#options = options;
  }

  /** What all hold together. */
  get held(): number {
    return this.#total;
  }

  get waiting(): number {
    return this.#waiters.size;
  }

  /** Holders that were made to let go since the start. */
  get evictions(): number {
    return this.#evictions;
  }

  heldBy(owner: number): number {
    return this.#owners.get(owner)?.amount ?? 0;
  }

  /** Holds the amount from now on, or answers null where it may not be had. Slow holders make room where that helps. */
  reserve(owner: number, amount: number, slow: Slow | null = null): Hold | null {
    if (!this.#fits(owner, amount) || this.#isKept(amount)) this.#evictFor(owner, amount);
    if (!this.#fits(owner, amount) || this.#isKept(amount)) return null;
    return this.#hold(owner, amount, slow);
  }

  /** As `reserve`, waiting up to `waitMs` milliseconds. Null after that, or where too many wait, or it could never fit. */
  reserveWithin(
    waitMs: number,
    {
      owner,
      amount,
      slow = null,
    }: { readonly owner: number; readonly amount: number; readonly slow?: Slow | null },
  ): Promise<Hold | null> {
    const { max, clock, waitersMax } = this.#options;
    const now = this.reserve(owner, amount, slow);
    if (now !== null || amount > max || this.#waiters.size >= waitersMax) return Promise.resolve(now);
    return new Promise((resolve) => {
      const cancel = clock.after(waitMs, () => waiter.answer(null));
      const waiter: Waiter = {
        owner,
        amount,
        slow,
        sinceMs: clock.monotonic(),
        answer: (hold) => {
          cancel();
          this.#waiters.delete(waiter);
          resolve(hold);
        },
      };
      this.#waiters.add(waiter);
      this.#arm();
    });
  }

  /** For `Hold` alone. A single hold of its owner may grow to half of all. */
  mayGrow({ owner, amount }: Hold, more: number): boolean {
    const free = this.#options.max - this.#total;
    if (more > free) return false;
    const held = this.heldBy(owner);
    if (held + more <= free * ownersPart) return true;
    return held === amount && amount + more <= this.#options.max / 2;
  }

  /** For `Hold` alone. */
  changed(owner: number, by: number): void {
    const held = this.#owners.get(owner) ?? { amount: 0, holds: 0 };
    held.amount += by;
    this.#owners.set(owner, held);
    this.#total += by;
  }

  /** For `Hold` alone. */
  leave(hold: Hold): void {
    if (!this.#holds.delete(hold)) return;
    this.changed(hold.owner, -hold.amount);
    const held = this.#owners.get(hold.owner);
    if (held !== undefined && --held.holds === 0) {
      assert(held.amount === 0, () => `an owner without holds holds ${held.amount}`);
      this.#owners.delete(hold.owner);
    }
    this.#letIn();
  }

  #hold(owner: number, amount: number, slow: Slow | null): Hold {
    const hold = new Hold(this, owner, amount, slow);
    this.#holds.add(hold);
    this.changed(owner, amount);
    (this.#owners.get(owner) as Held).holds++;
    return hold;
  }

  #fits(owner: number, amount: number): boolean {
    const free = this.#options.max - this.#total;
    return amount <= free && !this.#isOverPart(owner, amount);
  }

  /** Whether it is the owner's own bound that is in the way. */
  #isOverPart(owner: number, amount: number): boolean {
    const held = this.#owners.get(owner);
    if (held === undefined) return false;
    return held.amount + amount > (this.#options.max - this.#total) * ownersPart;
  }

  /** Whether it would take what somebody has waited for long. */
  #isKept(amount: number): boolean {
    const [oldest] = this.#waiters;
    if (oldest === undefined || this.#isOverPart(oldest.owner, oldest.amount)) return false;
    if (this.#options.clock.monotonic() - oldest.sinceMs < keepAfterMs) return false;
    return this.#total + amount + oldest.amount > this.#options.max;
  }

  #letIn(): void {
    for (const waiter of this.#waiters) {
      const { owner, amount, slow } = waiter;
      const [oldest] = this.#waiters;
      if (!this.#fits(owner, amount) || (waiter !== oldest && this.#isKept(amount))) continue;
      waiter.answer(this.#hold(owner, amount, slow));
    }
  }

  #arm(): void {
    if (this.#cancelLook !== null || this.#waiters.size === 0) return;
    this.#cancelLook = this.#options.clock.after(lookEveryMs, () => {
      this.#cancelLook = null;
      for (const { owner, amount } of this.#waiters) this.#evictFor(owner, amount);
      this.#letIn();
      this.#arm();
    });
  }

  #evictFor(owner: number, amount: number): void {
    const own = this.#isOverPart(owner, amount);
    const free = this.#options.max - this.#total;
    let missing = own ? amount : amount - free;
    if (missing <= 0) return;
    for (const hold of this.#slowest((other) => (other.owner === owner) === own)) {
      if (missing <= 0) return;
      missing -= hold.amount;
      this.#evictions++;
      const { slow } = hold;
      hold.settle();
      slow?.evict();
    }
  }

  /** Those that would hold most for longest, first. */
  #slowest(isMeant: (hold: Hold) => boolean): Hold[] {
    const found: { hold: Hold; cost: number }[] = [];
    for (const hold of this.#holds) {
      const seconds = hold.slow !== null && isMeant(hold) ? hold.slow.secondsLeft() : 0;
      if (seconds >= slowSecondsMin)
        found.push({ hold, cost: hold.amount * Math.min(seconds, secondsLeftMax) });
    }
    return found.sort((a, b) => b.cost - a.cost).map(({ hold }) => hold);
  }
}

/** Compares what does not move at all by its size. */
const secondsLeftMax = 1e9;
