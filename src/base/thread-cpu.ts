import { readFileSync } from 'node:fs';
import { performance } from 'node:perf_hooks';

/**
 * The CPU time that the calling thread has used so far, in milliseconds: a thread of low priority is on a core for a part of
 * the time that a call of it lasts. Where neither Node nor Linux tells, the time in which it did not wait for events.
 */
export function threadCpuMs(): number {
  return nodeThreadMs() ?? linuxThreadTimes()?.onCoreMs ?? performance.eventLoopUtilization().active;
}

export interface ThreadTimes {
  /** As `threadCpuMs`. */
  readonly cpuMs: number;
  /** How long the thread has waited for a core so far, while it had something to do; 0 where Linux does not tell. */
  readonly waitedMs: number;
}

/** Answers, in milliseconds, how long the calling thread has been on a core so far, and how long it has waited for one. */
export function threadTimes(): ThreadTimes {
  const told = linuxThreadTimes();
  const cpuMs = nodeThreadMs() ?? told?.onCoreMs ?? performance.eventLoopUtilization().active;
  return { cpuMs, waitedMs: told?.waitedMs ?? 0 };
}

/** Answers what newer Nodes tell of the calling thread's CPU time, in milliseconds; null on older ones. */
function nodeThreadMs(): number | null {
  const own = process as unknown as { threadCpuUsage?: () => { user: number; system: number } };
  if (own.threadCpuUsage === undefined) return null;
  const { user, system } = own.threadCpuUsage();
  return (user + system) / 1_000;
}

/** The first two numbers of the kernel's file, which are nanoseconds; reading it takes some 10 µs. */
function linuxThreadTimes(): { readonly onCoreMs: number; readonly waitedMs: number } | null {
  if (process.platform !== 'linux') return null;
  try {
    const [onCore, waited] = readFileSync('/proc/thread-self/schedstat', 'latin1').split(' ').map(Number);
    if (onCore === undefined || waited === undefined || !(onCore > 0)) return null;
    return { onCoreMs: onCore / 1e6, waitedMs: waited / 1e6 };
  } catch {
    // A kernel without it.
    return null;
  }
}
