import { threadCpuMs } from '../../src/base/thread-cpu.ts';

/** What a thread of a lane answers: `src/router/compute-lane.ts` charges the task's share with the time. */
export interface LaneAnswer<T> {
  readonly result: T;
  /** CPU time of this thread since it answered before, in milliseconds. */
  readonly cpuMs: number;
}

let toldMs = 0;

/** Tells with a result what the thread has used since its last one, its start and its waits among it: nothing is left out. */
export function withCpuTime<T>(result: T): LaneAnswer<T> {
  const nowMs = threadCpuMs();
  const cpuMs = Math.max(0, nowMs - toldMs);
  toldMs = nowMs;
  return { result, cpuMs };
}
