import { readdir } from 'node:fs/promises';
import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks';
import { counter, type Family, gauge } from './exposition.ts';

/** How busy a thread and its process are, as the runtime and the kernel count it. */

/** Seconds that the calling thread has not waited for anything. */
export function busySeconds(): number {
  return performance.eventLoopUtilization().active / 1_000;
}

const resolutionMs = 20;
const nanosecond = 1e-9;

/** Watches the delays of the calling thread's turns from now on: a timer every 20 ms. */
export class TurnDelays {
  readonly #histogram: IntervalHistogram = monitorEventLoopDelay({ resolution: resolutionMs });

  constructor() {
    this.#histogram.enable();
  }

  /** Since the last call, in seconds. */
  take(): readonly { readonly quantile: number; readonly seconds: number }[] {
    const delays = [0.5, 0.99, 1].map((quantile) => ({
      quantile,
      seconds: Math.max(0, this.#histogram.percentile(quantile * 100) * nanosecond - resolutionMs / 1_000),
    }));
    this.#histogram.reset();
    return delays;
  }

  stop(): void {
    this.#histogram.disable();
  }
}

/** Under the names that every Prometheus client uses. The heap is the calling thread's, the rest the process's. */
export async function processFamilies(): Promise<Family[]> {
  const { user, system } = process.cpuUsage();
  const memory = process.memoryUsage();
  const startedSeconds = Date.now() / 1_000 - process.uptime();
  const families = [
    counter('process_cpu_seconds_total', 'User and system CPU time of all threads', (user + system) / 1e6),
    gauge('process_resident_memory_bytes', 'Resident memory of the process', memory.rss),
    gauge('process_start_time_seconds', 'When the process started, in seconds since 1970', startedSeconds),
    gauge('nodejs_heap_size_used_bytes', "The main thread's used JavaScript heap", memory.heapUsed),
    gauge('nodejs_heap_size_total_bytes', "The main thread's JavaScript heap", memory.heapTotal),
    gauge('nodejs_external_memory_bytes', "Buffers of the main thread's JavaScript objects", memory.external),
  ];
  // Only Linux tells.
  const open = await readdir('/proc/self/fd').catch(() => null);
  if (open !== null) families.push(gauge('process_open_fds', 'Open file descriptors', open.length));
  return families;
}
