import type { Share } from './share.ts';
import { yieldTurn } from './turns.ts';

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
}

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
};
