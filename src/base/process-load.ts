/** How busy a thread and its process are, as the runtime and the kernel count it. */
import { readdir, readFile } from 'node:fs/promises';
import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks';
import { counter, type Family, gauge, type Summary } from './exposition.ts';

/** Seconds that the calling thread has not waited for anything. */
export function busySeconds(): number {
  return performance.eventLoopUtilization().active / 1_000;
}

const resolutionMs = 20;
const nanosecond = 1e-9;

/** Watches the delays of the calling thread's turns from now on: a timer every 20 ms. */
export class TurnDelays {
  readonly #histogram: IntervalHistogram = monitorEventLoopDelay({ resolution: resolutionMs });
  #sum = 0;
  #count = 0;

  constructor() {
    this.#histogram.enable();
  }

  /** Delays in seconds; the quantiles are those since the last call. */
  take(): Summary {
    const { count, mean } = this.#histogram;
    const quantiles = [0.5, 0.99, 1].map((quantile) => ({
      quantile,
      value: lateness(this.#histogram.percentile(quantile * 100)),
    }));
    // The mean of nothing is not a number.
    if (count > 0) this.#sum += lateness(mean) * count;
    this.#count += count;
    this.#histogram.reset();
    return { quantiles, sum: this.#sum, count: this.#count };
  }

  stop(): void {
    this.#histogram.disable();
  }
}

/** Seconds beyond the timer's own, of nanoseconds between two of its turns. */
function lateness(nanoseconds: number): number {
  return Math.max(0, nanoseconds * nanosecond - resolutionMs / 1_000);
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
  const bounds = await readFile('/proc/self/limits', 'utf8').catch(() => '');
  const [, openMax] = /^Max open files +(\d+)/m.exec(bounds) ?? [];
  if (openMax !== undefined)
    families.push(gauge('process_max_fds', 'File descriptors that may be open', Number(openMax)));
  return families;
}
