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
  /** Resolves after everything that is ready to run on this thread has had its turn. */
  yieldTurn(): Promise<void>;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
  after(ms, run) {
    const timer = setTimeout(run, ms);
    timer.unref();
    return () => clearTimeout(timer);
  },
  yieldTurn: () =>
    new Promise((resolve) => {
      if (yielding.push(resolve) === 1) setImmediate(resumeOne);
    }),
};

/** Who gave way, in order. */
const yielding: (() => void)[] = [];

/**
 * One goes on in each turn of the event loop, and messages that came meanwhile are handled before the next one. If all
 * went on in the same turn, a read would wait for a slice of every write that is under way on its thread.
 */
function resumeOne(): void {
  yielding[0]?.();
  yielding.shift();
  if (yielding.length > 0) setImmediate(resumeOne);
}
