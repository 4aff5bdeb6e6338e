import type { Clock } from '../../src/base/clock.ts';
import { describeError, type Logger } from '../../src/base/log.ts';
import type { BlockCache } from '../storage/block-fetch.ts';
import type { FreshObjects } from '../storage/fresh-objects.ts';
import { ActorClosed } from '../storage/manifest-store.ts';
import type { KnownShares } from '../thread/known-shares.ts';
import type { MemoryBudget } from '../thread/memory-budget.ts';
import { type Evictee, evictionOrder } from './eviction-order.ts';

/**
 * The open actors of a thread, and the order in which memory is given back when its budget is used up:
 *
 * 1. the block cache shrinks to its least share, then small segments that are kept as they were stored are forgotten (`FreshObjects`);
 * 2. actors that nobody uses at this moment are put away, in the order of eviction-order.ts. One that holds records which only the log has is
 *    flushed first, some at a time; those behind it are put away meanwhile;
 * 3. actors in use that hold large memtables are flushed and stay open;
 * 4. what is still missing is the writers' to wait for: the host refuses those who hold most while `isFullFor` them.
 *
 * Before it is used up, where large memtables that nobody writes to take a quarter of it, they are flushed already (`#flushEarly`).
 *
 * An actor is never put away under a request: whoever works with one holds it, which counts. The count rises in the
 * same turn in which the slot is found, so there is no moment in between. What was put away is opened again
 * by the next call, once for all who ask meanwhile, because the slot is in the map before its opening begins.
 */
export interface Evictable {
  readonly closed: boolean;
  /** Whether nothing is under way in it: no write, no flush, no compaction. */
  readonly isIdle: boolean;
  /** Whether durable objects contain all that it knows. */
  readonly isFlushed: boolean;
  /** What putting it away gives back. */
  readonly residentBytes: number;
  /** What a flush alone gives back. */
  readonly flushableBytes: number;
  flush(): Promise<void>;
  close(): void;
}

export interface Slot<Actor> {
  readonly opening: Promise<Actor>;
  /** The open actor; null while it opens. */
  actor: Actor | null;
  lastUsedMs: number;
  /** Calls that hold it. */
  users: number;
  /** A flush that memory asked for is under way. */
  flushing: boolean;
  /** No early flush before this moment: the last one failed, or gave nothing back. */
  flushEarlyAfterMs: number;
  /** It moved to another server while it opened. */
  moved: boolean;
}

/** The open actors of one kind, by key. */
export class OpenActors<Actor extends Evictable> {
  readonly #slots = new Map<string, Slot<Actor>>();
  readonly #clock: Clock;
  readonly #onPutAway: (actor: Actor) => void;

  constructor(clock: Clock, onPutAway: (actor: Actor) => void = () => {}) {
    this.#clock = clock;
    this.#onPutAway = onPutAway;
  }

  get size(): number {
    return this.#slots.size;
  }

  get(key: string): Slot<Actor> | undefined {
    return this.#slots.get(key);
  }

  slots(): IterableIterator<[string, Slot<Actor>]> {
    return this.#slots.entries();
  }

  /** The one under the key; opened where there is none. A failed opening leaves nothing behind. */
  openOnce(key: string, open: () => Promise<Actor>): Slot<Actor> {
    const known = this.#slots.get(key);
    if (known !== undefined) return known;
    const slot: Slot<Actor> = {
      opening: open(),
      actor: null,
      lastUsedMs: this.#clock.monotonic(),
      users: 0,
      flushing: false,
      flushEarlyAfterMs: Number.NEGATIVE_INFINITY,
      moved: false,
    };
    this.#slots.set(key, slot);
    slot.opening.then(
      (actor) => {
        slot.actor = actor;
        if (slot.moved) actor.close();
      },
      () => this.delete(key, slot),
    );
    return slot;
  }

  /** Forgets the slot, unless another one has taken its place. */
  delete(key: string, slot: Slot<Actor>): void {
    if (this.#slots.get(key) === slot) this.#slots.delete(key);
  }

  /** Closes what has moved to another server, whoever holds it; what they have begun ends by itself. */
  giveUp(hasMoved: (key: string) => boolean): void {
    for (const [key, slot] of [...this.#slots]) {
      if (!hasMoved(key)) continue;
      slot.moved = true;
      this.#slots.delete(key);
      slot.actor?.close();
    }
  }

  putAway(key: string, slot: Slot<Actor>): void {
    if (slot.actor === null) return;
    this.delete(key, slot);
    slot.actor.close();
    this.#onPutAway(slot.actor);
  }
}

/** Drains all of them, those too that are still opening; settles when each has ended. */
export function drainAll<Actor extends Evictable & { drain(): Promise<void> }>(
  actors: OpenActors<Actor>,
): Promise<PromiseSettledResult<void>[]> {
  return Promise.allSettled([...actors.slots()].map(async ([, slot]) => (await slot.opening).drain()));
}

/** An open actor in somebody's hands: it is not put away before `release`, which is called once. */
export interface Held<Actor> {
  readonly actor: Actor;
  release(): void;
}

/** Holds the slot's actor, so that it is not put away. Call it in the turn in which the slot was found. */
export async function hold<Actor>(slot: Slot<Actor>, clock: Clock): Promise<Held<Actor>> {
  const release = () => {
    slot.users--;
    slot.lastUsedMs = clock.monotonic();
  };
  slot.users++;
  slot.lastUsedMs = clock.monotonic();
  try {
    const actor = await slot.opening;
    if (slot.moved) throw new ActorClosed('it has moved to another server');
    return { actor, release };
  } catch (error) {
    release();
    throw error;
  }
}

/** Runs work with an actor that is held until the work has ended. */
export async function withHeld<Actor, T>(
  held: Held<Actor>,
  work: (actor: Actor) => T | Promise<T>,
): Promise<T> {
  try {
    return await work(held.actor);
  } finally {
    held.release();
  }
}

export interface EvictionComponents {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly memory: MemoryBudget;
  readonly blocks: BlockCache;
  /** Small segments as they were stored; null where none are kept. */
  readonly fresh: FreshObjects | null;
  readonly shares: Pick<KnownShares, 'of'>;
}

/** Room is made for this share of the budget more than is missing, so that it is made seldom. */
const slackShare = 1 / 32;
/** How many flushes memory asks for at a time: each is a PUT or the build of a segment. */
const flushesMax = 8;
/** The pause after a look that found too little: a look walks all open actors. */
const lookAgainMs = 20;
/** The part of the budget that owners who did not use it up may have waiting to be stored. */
const smallWritersPart = 1 / 4;
/** A flush of less gives back too little to be worth an object. */
const flushBytesMin = 1024 * 1024;
/**
 * The part of the budget that large memtables which nobody writes to may take before they are flushed, so many at a time: what is
 * stored is put away at once when room is needed, what is not keeps its place, and its writers, waiting.
 */
const earlyFlushPart = 1 / 4;
const earlyFlushesMax = 2;
/** The pause after a look for large memtables, where no flush gave anything back meanwhile. */
const lookForLargeMs = 1_000;
/** The pause before the next early flush of a namespace after one that failed, or gave nothing back. */
const flushAgainAfterMs = 30_000;

/** What eviction sees of one kind of actor. */
interface Kind {
  readonly size: number;
  slots(): Iterable<[string, Slot<Evictable>]>;
  putAway(key: string, slot: Slot<Evictable>): void;
}

/** A slot with its actor, as all kinds look from here. */
interface Candidate extends Evictee {
  readonly slot: Slot<Evictable>;
  readonly actor: Evictable;
  readonly putAway: () => void;
}

/** Answers the key under which a name's actor is kept; an empty name is the tenant's own. */
export function slotKey(tenantId: number, namespace: string): string {
  return `${tenantId}/${namespace}`;
}

/** The placement key of what is kept under a slot's key. */
export function placementKeyOfSlot(key: string): string {
  return key.endsWith('/') ? key.slice(0, -1) : key;
}

function tenantOfSlot(key: string): number {
  return Number.parseInt(key, 10);
}

export class Eviction {
  readonly #components: EvictionComponents;
  readonly #kinds: readonly Kind[];
  /** What the flushes under way will give back. */
  #coming = 0;
  #flushes = 0;
  #nextLookMs = Number.NEGATIVE_INFINITY;
  #nextLookForLargeMs = Number.NEGATIVE_INFINITY;
  #putAway = 0;
  #unstored: { readonly atMs: number; readonly byOwner: ReadonlyMap<number, number> } = {
    atMs: Number.NEGATIVE_INFINITY,
    byOwner: new Map(),
  };

  constructor(components: EvictionComponents, kinds: readonly Kind[]) {
    this.#components = components;
    this.#kinds = kinds;
  }

  /** Actors put away since the start. */
  get count(): number {
    return this.#putAway;
  }

  /**
   * Whether this tenant's writers must wait: the budget is used up, and its owner has more that waits to be stored than an equal
   * part of a quarter of it. So those who fill the memory wait, and a neighbour's small writes do not. Cheap where the budget is
   * not used up.
   */
  isFullFor(tenantId: number): boolean {
    this.makeRoom();
    const { memory, shares } = this.#components;
    if (memory.over === 0) return false;
    const unstored = this.#unstoredBytes();
    const own = unstored.get(shares.of(tenantId).owner) ?? 0;
    return own > (memory.bytesMax * smallWritersPart) / Math.max(1, unstored.size);
  }

  /** Adds up, by owner, what namespaces hold that a flush would store; a few times a second at most. */
  #unstoredBytes(): ReadonlyMap<number, number> {
    const now = this.#components.clock.monotonic();
    if (now - this.#unstored.atMs < lookAgainMs) return this.#unstored.byOwner;
    const byOwner = new Map<number, number>();
    for (const { owner, cost } of this.#candidates(this.#kinds, ({ flushableBytes }) => flushableBytes))
      if (cost > 0) byOwner.set(owner, (byOwner.get(owner) ?? 0) + cost);
    this.#unstored = { atMs: now, byOwner };
    return byOwner;
  }

  /** Makes room where the budget is used up, and flushes before that where memtables take much of it; cheap where they do not. */
  makeRoom(): void {
    const { memory, blocks, fresh, clock } = this.#components;
    if (memory.over === 0) {
      this.#flushEarly();
      return;
    }
    const slack = memory.bytesMax * slackShare;
    blocks.giveBack(slack);
    if (memory.over > 0) fresh?.giveBack(memory.over);
    if (memory.over === 0 || clock.monotonic() < this.#nextLookMs) return;
    this.#free(memory.over + slack);
    if (memory.over > 0) this.#nextLookMs = clock.monotonic() + lookAgainMs;
  }

  /** Puts some of one kind away until one more may be opened; as many as can be had. */
  makeRoomFor(kind: Kind, openMax: number): void {
    if (kind.size < openMax) return;
    let toPutAway = kind.size - openMax + 1 + Math.floor(openMax * slackShare);
    for (const candidate of this.#inOrder([kind], () => 1)) {
      if (toPutAway === 0) return;
      if (!isUnused(candidate) || !candidate.actor.isFlushed) continue;
      this.#end(candidate);
      toPutAway--;
    }
  }

  #free(bytes: number): void {
    let missing = bytes - this.#coming;
    for (const candidate of this.#inOrder(this.#kinds, ({ residentBytes }) => residentBytes)) {
      if (missing <= 0) return;
      if (!isUnused(candidate)) continue;
      const { actor } = candidate;
      if (!actor.isFlushed && this.#flushes >= flushesMax) continue;
      missing -= actor.residentBytes;
      if (actor.isFlushed) this.#end(candidate);
      else this.#flushFor(candidate, actor.residentBytes, () => this.#endIfUnused(candidate));
    }
    if (missing > 0) this.#flushInTurn(this.#largeMemtables(), missing, flushesMax);
  }

  /** Flushes large memtables that nobody writes to. It looks at all open actors at most once a second, and again after a flush that gave back what it promised. */
  #flushEarly(): void {
    const { memory, clock } = this.#components;
    const most = memory.bytesMax * earlyFlushPart;
    const now = clock.monotonic();
    if (
      memory.line('memtables') <= most ||
      this.#flushes >= earlyFlushesMax ||
      now < this.#nextLookForLargeMs
    )
      return;
    this.#nextLookForLargeMs = now + lookForLargeMs;
    // What is being written fills up and is flushed by itself; tails of manifests, and copies, no flush gives back.
    const resting = this.#largeMemtables().filter(
      ({ slot, actor }) => actor.isIdle && !slot.flushing && slot.flushEarlyAfterMs <= now,
    );
    const bytes = resting.reduce((sum, { cost }) => sum + cost, 0);
    this.#flushInTurn(resting, bytes - most, earlyFlushesMax);
  }

  /** Lists the actors whose flush would give back a megabyte and more, the largest first. */
  #largeMemtables(): Candidate[] {
    const large: Candidate[] = [];
    for (const candidate of this.#candidates(this.#kinds, ({ flushableBytes }) => flushableBytes))
      if (candidate.cost >= flushBytesMin) large.push(candidate);
    return large.sort((a, b) => b.cost - a.cost);
  }

  /** Flushes actors in the order of the list until so many bytes are on their way to the store, and so many flushes under way. */
  #flushInTurn(candidates: readonly Candidate[], bytes: number, atOnceMax: number): void {
    let missing = bytes;
    for (const candidate of candidates) {
      const { slot, actor, cost } = candidate;
      if (missing <= 0 || this.#flushes >= atOnceMax) return;
      if (slot.flushing || actor.closed) continue;
      missing -= cost;
      this.#flushFor(candidate, cost, () => {});
    }
  }

  #inOrder(kinds: readonly Kind[], costOf: (actor: Evictable) => number): Iterable<Candidate> {
    return evictionOrder(this.#candidates(kinds, costOf), this.#components.clock.monotonic());
  }

  *#candidates(kinds: readonly Kind[], costOf: (actor: Evictable) => number): Generator<Candidate> {
    const { shares } = this.#components;
    for (const kind of kinds) {
      for (const [key, slot] of kind.slots()) {
        const { actor, lastUsedMs } = slot;
        if (actor === null) continue;
        const { owner, weight } = shares.of(tenantOfSlot(key));
        const putAway = () => kind.putAway(key, slot);
        yield { slot, actor, putAway, owner, weight, lastUsedMs, cost: costOf(actor) };
      }
    }
  }

  /** Flushes in the background. A flush that fails is tried again when memory asks for it again. */
  #flushFor({ slot, actor }: Candidate, bytes: number, then: () => void): void {
    const { memory, clock } = this.#components;
    const before = memory.bytes;
    const residentBefore = actor.residentBytes;
    slot.flushing = true;
    this.#flushes++;
    this.#coming += bytes;
    actor
      .flush()
      .catch((error: unknown) => {
        this.#components.logger.error('a flush that memory asked for failed', {
          error: describeError(error),
        });
      })
      .finally(() => {
        slot.flushing = false;
        this.#flushes--;
        this.#coming -= bytes;
        const now = clock.monotonic();
        // Rows that were replaced stay where a manifest takes the few living ones; and the store may be away.
        if (residentBefore - actor.residentBytes < bytes / 2)
          slot.flushEarlyAfterMs = now + flushAgainAfterMs;
        else this.#nextLookForLargeMs = Math.min(this.#nextLookForLargeMs, now + lookAgainMs);
        then();
        // One that gave nothing back would be asked again at once, for ever: the next call looks again in time.
        if (memory.bytes >= before) return;
        this.#nextLookMs = Number.NEGATIVE_INFINITY;
        this.makeRoom();
      });
  }

  #endIfUnused(candidate: Candidate): void {
    if (isUnused(candidate) && candidate.actor.isFlushed) this.#end(candidate);
  }

  #end(candidate: Candidate): void {
    candidate.putAway();
    this.#putAway++;
  }
}

function isUnused({ slot, actor }: Candidate): boolean {
  return slot.users === 0 && !slot.flushing && !actor.closed && actor.isIdle;
}
