import type { Share } from './share.ts';
import { hasBurst, yieldTurn } from './turns.ts';

/** Time as a component, so that tests and the simulation own it. The only place that reads a clock. */
export interface Clock {
  /** Milliseconds since 1970, UTC; may jump when the machine's clock is set. */
  now(): number;
  /** Milliseconds since some start; never goes back. For durations and deadlines. */
  monotonic(): number;
  /** Resolves after at least `ms` milliseconds. */
  sleep(ms: number): Promise<void>;
  /** Calls `run` once after `ms` milliseconds unless the returned function was called before. Does not keep the process alive. */
  after(ms: number, run: () => void): () => void;
  /**
   * Resolves after everything that is ready to run on this thread has had its turn, and, where several gave way, when it is
   * the share's. Without a share it is the server's own work.
   */
  yieldTurn(share?: Share): Promise<void>;
  /** Whether the share's owner has used less of this thread than whoever went on last: it need not give way to those who use much. */
  hasBurst(share: Share): boolean;
}

/** A moment by both clocks: what has passed since is the larger one of what they say, for one may stand still and the other be set. */
export interface Moment {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

export function momentOf(clock: Pick<Clock, 'now' | 'monotonic'>): Moment {
  return { monotonicMs: clock.monotonic(), wallMs: clock.now() };
}

/** How far the two clocks may disagree on what has passed, in milliseconds: they are read one after the other, and one of them is slewed. */
const clocksApartMsMax = 100;

/**
 * How long before `later` a moment was, in milliseconds; negative where it came after. Infinite where the wall clock was set back
 * meanwhile: the other one may have stood still, and nothing tells for how long.
 */
export function msBetween(earlier: Moment, later: Moment): number {
  const isSetBack =
    later.wallMs - earlier.wallMs < later.monotonicMs - earlier.monotonicMs - clocksApartMsMax;
  if (isSetBack) return Number.POSITIVE_INFINITY;
  return Math.max(later.monotonicMs - earlier.monotonicMs, later.wallMs - earlier.wallMs);
}

/** Before every other one. */
export const noMoment: Moment = {
  monotonicMs: Number.NEGATIVE_INFINITY,
  wallMs: Number.NEGATIVE_INFINITY,
};

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  // Node cuts what is behind the point: a quarter of a second would be over a millisecond early.
  sleep: (ms) => new Promise((resolve) => setTimeout(resolve, Math.ceil(ms))),
  after(ms, run) {
    const timer = setTimeout(run, Math.ceil(ms));
    timer.unref();
    return () => clearTimeout(timer);
  },
  yieldTurn,
  hasBurst,
};
