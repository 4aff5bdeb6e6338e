/**
 * The door to Piscina, which owns every worker thread: starts them, restarts one that died, ends them.
 *
 * Resident threads are pools of one thread with one task that lasts as long as the server, and get their requests over
 * message ports; only short compute tasks go through Piscina's queue. `atomics: 'disabled'` because the default freezes
 * the timers of an idle worker. Resident tasks get no abort signal: Piscina ends the thread of an aborted task.
 */
import type { MessagePort } from 'node:worker_threads';
import { Piscina } from 'piscina';
import type { LaneResult } from './compute-lane.ts';

/** Both sides of the house meet here: the worker side is only ever named, never imported. */
const entryOf = (name: string) => new URL(`../../actors/${name}.js`, import.meta.url).href;
export const workerEntries = {
  actor: entryOf('worker'),
  log: entryOf('log/log-worker'),
  compute: entryOf('compute/compute-worker'),
  hash: entryOf('compute/hash-worker'),
} as const;

/** A thread with one long-running task. */
export class ResidentThread {
  readonly #pool: Piscina;

  constructor(entry: string) {
    this.#pool = new Piscina({
      filename: entry,
      minThreads: 1,
      maxThreads: 1,
      concurrentTasksPerWorker: 1,
      atomics: 'disabled',
    });
    this.#pool.on('error', outliveIdleThread);
  }

  /** Resolves when the task ends, rejects when its thread dies; may then be called again, on a new thread. */
  run(task: object, ports: readonly MessagePort[]): Promise<void> {
    return this.#pool.run(task, { transferList: [...ports] }) as Promise<void>;
  }

  async end(): Promise<void> {
    await this.#pool.destroy();
  }
}

export interface TaskPoolOptions {
  readonly entry: string;
  readonly threads: number;
  /** What each thread is started with. */
  readonly data: object;
  /** More than one for tasks that mostly wait for others. */
  readonly tasksPerThread: number;
}

/** Threads for short tasks, started on first use. It is given only what runs at once: nothing waits in it. */
export class TaskPool {
  readonly #options: TaskPoolOptions;
  #pool: Piscina | null = null;

  constructor(options: TaskPoolOptions) {
    this.#options = options;
  }

  /** Tasks that run at once. */
  get slots(): number {
    return this.#options.threads * this.#options.tasksPerThread;
  }

  /** Rejects with what the task throws, and where its thread dies. */
  run(task: object, moved: readonly (ArrayBuffer | MessagePort)[]): Promise<LaneResult> {
    this.#pool ??= this.#start();
    return this.#pool.run(task, { transferList: [...moved] }) as Promise<LaneResult>;
  }

  async end(): Promise<void> {
    await this.#pool?.destroy();
  }

  #start(): Piscina {
    const { entry, threads, data, tasksPerThread } = this.#options;
    const pool = new Piscina({
      filename: entry,
      workerData: data,
      minThreads: 0,
      maxThreads: threads,
      concurrentTasksPerWorker: tasksPerThread,
      idleTimeout: 30_000,
      atomics: 'disabled',
    });
    pool.on('error', outliveIdleThread);
    return pool;
  }
}

/**
 * A thread that dies with a task rejects its promise. One that dies without is only announced, and an announcement
 * that nobody hears ends the process; Piscina starts another thread for the next task by itself.
 */
function outliveIdleThread(): void {}
