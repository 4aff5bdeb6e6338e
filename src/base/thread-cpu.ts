import { readFileSync } from 'node:fs';
import { performance } from 'node:perf_hooks';

/**
 * The CPU time that the calling thread has used so far, in milliseconds: a thread of low priority is on a core for a part of
 * the time that a call of it lasts. Where neither Node nor Linux tells, the time in which it did not wait for events.
 */
export function threadCpuMs(): number {
  const own = process as unknown as { threadCpuUsage?: () => { user: number; system: number } };
  if (own.threadCpuUsage !== undefined) {
    const { user, system } = own.threadCpuUsage();
    return (user + system) / 1_000;
  }
  return linuxThreadMs() ?? performance.eventLoopUtilization().active;
}

/** Nanoseconds on a core are the first number of the kernel's file; reading it takes some 10 µs. */
function linuxThreadMs(): number | null {
  if (process.platform !== 'linux') return null;
  try {
    const nanoseconds = Number(readFileSync('/proc/thread-self/schedstat', 'latin1').split(' ')[0]);
    return nanoseconds > 0 ? nanoseconds / 1e6 : null;
  } catch {
    // A kernel without it.
    return null;
  }
}
