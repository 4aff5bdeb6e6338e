import { Worker } from 'node:worker_threads';

/** Reads at a set rate, from a thread of their own: the load beside them must not delay their clock. */
export interface OpenLoop {
  readonly url: string;
  readonly key: string;
  /** Asked for in turn. */
  readonly paths: readonly string[];
  readonly ratePerSecond: number;
  readonly seconds: number;
  /** More requests than this at once wait in the client, and their latency grows with it. */
  readonly connections: number;
}

export interface OpenLoopResult {
  /** From the intended start to the whole answer, in the order of the answers. */
  readonly latenciesMs: readonly number[];
  /** When each of them was meant to begin, in seconds since the loop's start. */
  readonly startedAtS: readonly number[];
  /** Anything but a success. */
  readonly failures: number;
}

export function runOpenLoop(loop: OpenLoop): Promise<OpenLoopResult> {
  const thread = new Worker(new URL('./open-loop-worker.js', import.meta.url), { workerData: loop });
  return new Promise((resolve, reject) => {
    thread.once('message', resolve);
    thread.once('error', reject);
  });
}

/** The value under which the given share of the values lies. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/** Median, 99th percentile and longest, for people. */
export function latencyText(latenciesMs: readonly number[]): string {
  const at = (share: number) => percentile(latenciesMs, share).toFixed(1);
  return `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, p99.9 ${at(0.999)} ms, max ${at(1)} ms`;
}
