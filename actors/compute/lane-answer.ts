import { type ThreadTimes, threadTimes } from '../../src/base/thread-cpu.ts';

/** What a thread of a lane answers: `src/router/compute-lane.ts` charges the task's share with the time. */
export interface LaneAnswer<T> {
  readonly result: T;
  /** CPU time of this thread since it answered before, in milliseconds. */
  readonly cpuMs: number;
  /** How long it has waited for a core since then, in milliseconds. */
  readonly waitedMs: number;
}

let told: ThreadTimes = { cpuMs: 0, waitedMs: 0 };

/** Tells with a result what the thread has used since its last one, its start and its waits among it: nothing is left out. */
export function withCpuTime<T>(result: T): LaneAnswer<T> {
  const before = told;
  told = threadTimes();
  return {
    result,
    cpuMs: Math.max(0, told.cpuMs - before.cpuMs),
    waitedMs: Math.max(0, told.waitedMs - before.waitedMs),
  };
}
