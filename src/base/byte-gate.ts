import { assert } from './assert.ts';
import type { Clock } from './clock.ts';

export interface ByteGateOptions {
  readonly max: number;
  readonly clock: Clock;
  /** Waiters at once; one more is refused. */
  readonly waitersMax: number;
  /** What an owner may hold of what is free; a quarter where nothing is said. */
  readonly ownersPart?: number;
}

/** What a gate asks of a holder that could be made to let go. */
export interface Slow {
  /** How long it will go on holding at its present pace; infinite where nothing moves, 0 where that is not known yet. */
  secondsLeft(): number;
  /** Ends what it does. The hold is released by whoever has it, at once or soon. */
  evict(): void;
}

const ownersPartUsual = 1 / 4;
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

interface OwnerState {
  amount: number;
  holds: number;
  waiters: number;
  /** When it last got something. */
  grantedMs: number;
}

/**
 * Bounds what many owners hold at once of one thing that there is little of: bytes of memory, bytes of a disk, places.
 *
 * 1. All together hold at most `max`.
 * 2. An owner may hold a quarter of what is free at that moment, so that one alone may hold much, and many hold little, and
 *    something is always left for who comes next. An owner who holds nothing may hold anything that fits.
 * 3. Who asks for more than may be had now can wait. What becomes free goes to the owner who has waited longest since it last
 *    got something, so that one who asks again and again is behind one who asks once; an owner who has reached its own bound
 *    lets others pass. What the first one waits for is kept free for it once it has waited for `keepAfterMs`: otherwise many
 *    small ones would pass a large one for ever.
 * 4. While somebody waits, holders that are slow are made to let go: first the one that would hold most for longest. Where an
 *    owner waits at its own bound, only its own holders are.
 *
 * Reserve before allocating; release when the thing itself is gone.
 */
export class ByteGate {
  readonly #options: ByteGateOptions;
  readonly #ownersPart: number;
  readonly #holds = new Set<Hold>();
  /** Those who hold something or wait. */
  readonly #owners = new Map<number, OwnerState>();
  readonly #waiters = new Set<Waiter>();
  #total = 0;
  #cancelLook: (() => void) | null = null;
  #evictions = 0;

  constructor(options: ByteGateOptions) {
    this.#options = options;
    this.#ownersPart = options.ownersPart ?? ownersPartUsual;
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
          this.#ownerOf(owner).waiters--;
          this.#forgetIdle(owner);
          resolve(hold);
        },
      };
      this.#waiters.add(waiter);
      this.#ownerOf(owner).waiters++;
      this.#arm();
    });
  }

  /** For `Hold` alone. A single hold of its owner may grow to half of all. */
  mayGrow({ owner, amount }: Hold, more: number): boolean {
    const free = this.#options.max - this.#total;
    if (more > free) return false;
    const held = this.heldBy(owner);
    if (held + more <= free * this.#ownersPart) return true;
    return held === amount && amount + more <= this.#options.max / 2;
  }

  /** For `Hold` alone. */
  changed(owner: number, by: number): void {
    this.#ownerOf(owner).amount += by;
    this.#total += by;
  }

  /** For `Hold` alone. */
  leave(hold: Hold): void {
    if (!this.#holds.delete(hold)) return;
    this.changed(hold.owner, -hold.amount);
    this.#ownerOf(hold.owner).holds--;
    this.#forgetIdle(hold.owner);
    this.#letIn();
  }

  #ownerOf(owner: number): OwnerState {
    const known = this.#owners.get(owner);
    if (known !== undefined) return known;
    const state = { amount: 0, holds: 0, waiters: 0, grantedMs: Number.NEGATIVE_INFINITY };
    this.#owners.set(owner, state);
    return state;
  }

  #forgetIdle(owner: number): void {
    const { holds, waiters, amount } = this.#ownerOf(owner);
    if (holds > 0) return;
    assert(amount === 0, () => `an owner without holds holds ${amount}`);
    if (waiters === 0) this.#owners.delete(owner);
  }

  #hold(owner: number, amount: number, slow: Slow | null): Hold {
    const hold = new Hold(this, owner, amount, slow);
    this.#holds.add(hold);
    this.changed(owner, amount);
    const state = this.#ownerOf(owner);
    state.holds++;
    state.grantedMs = this.#options.clock.monotonic();
    return hold;
  }

  #fits(owner: number, amount: number): boolean {
    const free = this.#options.max - this.#total;
    return amount <= free && !this.#isOverPart(owner, amount);
  }

  /** Whether it is the owner's own bound that is in the way. */
  #isOverPart(owner: number, amount: number): boolean {
    const held = this.#owners.get(owner);
    if (held === undefined || held.holds === 0) return false;
    return held.amount + amount > (this.#options.max - this.#total) * this.#ownersPart;
  }

  /** Whether it would take what somebody has waited for long. */
  #isKept(amount: number): boolean {
    if (this.#waiters.size === 0) return false;
    const first = this.#inOrder().find((waiter) => !this.#isOverPart(waiter.owner, waiter.amount));
    if (first === undefined || this.#options.clock.monotonic() - first.sinceMs < keepAfterMs) return false;
    return this.#total + amount + first.amount > this.#options.max;
  }

  #letIn(): void {
    if (this.#waiters.size === 0) return;
    for (let granted = true; granted; ) {
      granted = false;
      // Each grant changes whose turn it is.
      for (const waiter of this.#inOrder()) {
        const { owner, amount, slow, sinceMs } = waiter;
        if (this.#fits(owner, amount)) {
          waiter.answer(this.#hold(owner, amount, slow));
          granted = true;
          break;
        }
        // Nobody passes the first one whose own bound is not in the way, once it has waited.
        const isKept = this.#options.clock.monotonic() - sinceMs >= keepAfterMs;
        if (isKept && !this.#isOverPart(owner, amount)) return;
      }
    }
  }

  /** Who has waited longest since its owner last got something, first. */
  #inOrder(): Waiter[] {
    const grantedMs = ({ owner }: Waiter) => this.#ownerOf(owner).grantedMs;
    return [...this.#waiters].sort((a, b) => {
      const [first, second] = [grantedMs(a), grantedMs(b)];
      return first === second ? a.sinceMs - b.sinceMs : first - second;
    });
  }

  #arm(): void {
    if (this.#cancelLook !== null || this.#waiters.size === 0) return;
    this.#cancelLook = this.#options.clock.after(lookEveryMs, () => {
      this.#cancelLook = null;
      for (const { owner, amount } of this.#inOrder()) {
        this.#evictFor(owner, amount);
        if (!this.#isOverPart(owner, amount)) break;
      }
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
