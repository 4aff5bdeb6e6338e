import { threadCpuMs, threadWaitedMs } from '../../src/base/thread-cpu.ts';

/** What a thread of a lane answers: `src/router/compute-lane.ts` charges the task's share with the time. */
export interface LaneAnswer<T> {
  readonly result: T;
  /** CPU time of this thread since it answered before, in milliseconds. */
  readonly cpuMs: number;
  /** How long it has waited for a core since then, in milliseconds. */
  readonly waitedMs: number;
}

let toldMs = 0;
let toldWaitedMs = 0;

/** Tells with a result what the thread has used since its last one, its start and its waits among it: nothing is left out. */
export function withCpuTime<T>(result: T): LaneAnswer<T> {
  const nowMs = threadCpuMs();
  const nowWaitedMs = threadWaitedMs();
  const cpuMs = Math.max(0, nowMs - toldMs);
  const waitedMs = Math.max(0, nowWaitedMs - toldWaitedMs);
  toldMs = nowMs;
  toldWaitedMs = nowWaitedMs;
  return { result, cpuMs, waitedMs };
}
