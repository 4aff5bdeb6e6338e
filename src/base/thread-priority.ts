import { setPriority } from 'node:os';

/**
 * Work that nobody waits for gives way to work that somebody waits for: where the cores are busy, the calling thread gets
 * what the others leave and a little. `steps` from 1 to 19, as of `nice`.
 *
 * On Linux alone, where a priority is a thread's; elsewhere it would be the whole process's.
 */
export function lowerThreadPriority(steps: number): void {
  if (process.platform !== 'linux') return;
  try {
    setPriority(0, steps);
  } catch {
    // A sandbox may forbid it: then all threads are equal, as they were.
  }
}
