import { getPriority, setPriority } from 'node:os';

/** What no priority is below. */
const stepsMax = 19;

/**
 * Work that nobody waits for gives way to work that somebody waits for: where the cores are busy, the calling thread gets
 * what the others leave and a little. `steps` as of `nice`, below the process's own.
 *
 * On Linux alone, where a priority is a thread's; elsewhere it would be the whole process's.
 */
export function lowerThreadPriority(steps: number): void {
  if (process.platform !== 'linux') return;
  try {
    setPriority(0, Math.min(stepsMax, Math.max(0, getPriority(0)) + steps));
  } catch {
    // A sandbox may forbid it: then all threads are equal, as they were.
  }
}
