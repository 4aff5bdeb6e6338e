/**
 * The order of everything in a simulated world. Events have a virtual time; the earliest runs next, and all promises that
 * it settles run to their end before the one after it. Nothing here looks at a real clock, so a seed decides everything.
 */

/** Whose event it is: one that is dead gets none any more, one that is paused gets them when it goes on. */
export interface Owner {
  readonly dead: boolean;
  readonly pausedUntilMs: number;
}

interface Event {
  atMs: number;
  readonly order: number;
  readonly owner: Owner | null;
  run: (() => void) | null;
}

/** Node reports a rejection that nobody handles only when a turn of its event loop ends: so often one is let end. */
const eventsPerTurn = 64;
/** A world that does more than this in one run has lost its way: the longest seeds take a fifth of it. */
const eventsMaxDefault = 500_000;

/** Moments are multiples of this, which sums and differences keep exact: a timer of what was left of a wait ends it. */
const tickMs = 1 / 1_024;

export class Scheduler {
  #nowMs = 0;
  #order = 0;
  #events = 0;
  readonly #heap: Event[] = [];
  readonly #eventsMax: number;

  constructor(eventsMax = eventsMaxDefault) {
    this.#eventsMax = eventsMax;
  }

  /** Virtual milliseconds since the world began, with fractions. */
  get nowMs(): number {
    return this.#nowMs;
  }

  /** Events so far. */
  get events(): number {
    return this.#events;
  }

  /** Runs `run` in `delayMs`, unless the answer was called before. */
  after(delayMs: number, owner: Owner | null, run: () => void): () => void {
    const event: Event = {
      atMs: this.#nowMs + wholeTicks(Math.max(delayMs, 0)),
      order: this.#order++,
      owner,
      run,
    };
    this.#push(event);
    return () => {
      event.run = null;
    };
  }

  sleep(delayMs: number, owner: Owner | null = null): Promise<void> {
    return new Promise((resolve) => this.after(delayMs, owner, resolve));
  }

  /** Time goes on without an event: everything that is due by then happens at once, as after a machine's sleep. */
  leap(ms: number): void {
    this.#nowMs += wholeTicks(ms);
  }

  /** Runs events until the work has ended; its result. */
  run<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      let ended: (() => void) | null = null;
      work.then(
        (value) => {
          ended = () => resolve(value);
        },
        (error: unknown) => {
          ended = () => reject(error);
        },
      );
      // A tick that is asked for in a microtask comes when no microtask is left, and costs a tenth of an immediate.
      const arm = () => process.nextTick(step);
      const step = () => {
        if (ended !== null) return ended();
        try {
          this.#next();
        } catch (error) {
          return reject(error);
        }
        if (this.#events % eventsPerTurn === 0) setImmediate(step);
        else void settled.then(arm);
      };
      void settled.then(arm);
    });
  }

  #next(): void {
    let event = this.#pop();
    // What was cancelled is not worth a turn of its own.
    while (event !== undefined && (event.run === null || event.owner?.dead === true)) event = this.#pop();
    if (event === undefined) throw new Error('nothing will ever happen again, and the work has not ended');
    if (++this.#events > this.#eventsMax)
      throw new Error(`${this.#eventsMax} events, and the work has not ended`);
    const { owner, run } = event;
    this.#nowMs = Math.max(this.#nowMs, event.atMs);
    if (owner !== null && owner.pausedUntilMs > this.#nowMs) {
      event.atMs = owner.pausedUntilMs;
      this.#push(event);
      return;
    }
    run?.();
  }

  #push(event: Event): void {
    const heap = this.#heap;
    let at = heap.push(event) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = heap[parent] as Event;
      if (isBefore(above, event)) break;
      heap[at] = above;
      at = parent;
    }
    heap[at] = event;
  }

  #pop(): Event | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      const right = heap[child + 1];
      if (right !== undefined && isBefore(right, heap[child] as Event)) child++;
      const below = heap[child] as Event;
      if (isBefore(last, below)) break;
      heap[at] = below;
      at = child;
    }
    heap[at] = last;
    return first;
  }
}

function wholeTicks(ms: number): number {
  return Math.ceil(ms / tickMs) * tickMs;
}

const settled = Promise.resolve();

function isBefore(a: Event, b: Event): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}
