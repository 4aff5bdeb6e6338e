import type { Clock } from '../../src/base/clock.ts';
import type { Share } from '../../src/base/share.ts';

interface Timer {
  readonly atMs: number;
  readonly order: number;
  readonly run: () => void;
}

/** Event-loop turns after which a message between two ports has surely arrived. */
const turnsToSettle = 6;
/** Rounds of turns in which nothing asks for time before the work counts as stuck. */
const idleRoundsMax = 1_000;

/**
 * Time that stands still until a test moves it. Timers fire in the order of their times, and everything that became
 * ready runs before the next one does. Several processes share one clock; each has a view of it that can be stopped.
 */
export class FakeClock implements Clock {
  #nowMs: number;
  readonly #startedMs: number;
  readonly #timers = new Set<Timer>();
  #order = 0;

  constructor(startMs = 1_700_000_000_000) {
    this.#nowMs = startMs;
    this.#startedMs = startMs;
  }

  now(): number {
    return this.#nowMs;
  }

  monotonic(): number {
    return this.#nowMs - this.#startedMs;
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.after(ms, resolve));
  }

  after(ms: number, run: () => void): () => void {
    const timer = { atMs: this.#nowMs + Math.max(ms, 0), order: this.#order++, run };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  yieldTurn(): Promise<void> {
    return new Promise((resolve) => setImmediate(resolve));
  }

  hasBurst(): boolean {
    return false;
  }

  get timers(): number {
    return this.#timers.size;
  }

  /** Moves time without letting anything run: for what a synchronous piece of work is supposed to take. */
  jump(ms: number): void {
    this.#nowMs += ms;
  }

  /** Lets everything run that needs no time. */
  async settle(): Promise<void> {
    for (let turn = 0; turn < turnsToSettle; turn++) await this.yieldTurn();
  }

  /** Moves time on by `ms`, with every timer of that span in its turn. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms;
    await this.settle();
    for (let next = this.#next(); next !== null && next.atMs <= untilMs; next = this.#next())
      await this.#fire(next);
    this.#nowMs = untilMs;
    await this.settle();
  }

  /** The work's result; time moves on whenever nothing else can. Fails after `limitMs` of that time. */
  async run<T>(work: Promise<T>, limitMs = 120_000): Promise<T> {
    let settled = false;
    const mark = () => {
      settled = true;
    };
    work.then(mark, mark);
    const untilMs = this.#nowMs + limitMs;
    for (let idleRounds = 0; ; ) {
      for (let turn = 0; turn < turnsToSettle && !settled; turn++) await this.yieldTurn();
      if (settled) return work;
      const next = this.#next();
      // Work that gives way again and again needs turns, not time.
      if (next === null && ++idleRounds < idleRoundsMax) continue;
      if (next === null || next.atMs > untilMs) throw new Error(`the work did not end within ${limitMs} ms`);
      await this.#fire(next);
    }
  }

  #next(): Timer | null {
    let next: Timer | null = null;
    for (const timer of this.#timers) {
      const earlier =
        next === null || timer.atMs < next.atMs || (timer.atMs === next.atMs && timer.order < next.order);
      if (earlier) next = timer;
    }
    return next;
  }

  async #fire(timer: Timer): Promise<void> {
    this.#timers.delete(timer);
    this.#nowMs = Math.max(this.#nowMs, timer.atMs);
    timer.run();
    await this.settle();
  }
}

/** One process's view of a clock: after `stop` none of its timers fires any more, as in a process that was killed. */
export class ProcessClock implements Clock {
  readonly #clock: Clock;
  #stopped = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  stop(): void {
    this.#stopped = true;
  }

  now(): number {
    return this.#clock.now();
  }

  monotonic(): number {
    return this.#clock.monotonic();
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.after(ms, resolve));
  }

  after(ms: number, run: () => void): () => void {
    return this.#clock.after(ms, () => {
      if (!this.#stopped) run();
    });
  }

  yieldTurn(): Promise<void> {
    return this.#clock.yieldTurn();
  }

  hasBurst(share: Share): boolean {
    return this.#clock.hasBurst(share);
  }
}
