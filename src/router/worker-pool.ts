/**
 * The door to Piscina, which owns every worker thread: starts them, restarts one that died, ends them.
 *
 * Resident threads are pools of one thread with one task that lasts as long as the server, and get their requests over
 * message ports; only short compute tasks go through Piscina's queue. `atomics: 'disabled'` because the default freezes
 * the timers of an idle worker. Resident tasks get no abort signal: Piscina ends the thread of an aborted task.
 */
import type { MessagePort } from 'node:worker_threads';
import { Piscina } from 'piscina';
import { limits } from '../../protocol/limits.ts';
import { systemClock } from '../base/clock.ts';
import { settledWithin } from '../base/settled-within.ts';
import type { LaneResult } from './compute-lane.ts';

/** Both sides of the house meet here: the worker side is only ever named, never imported. */
const entryOf = (name: string) => new URL(`../../actors/${name}.js`, import.meta.url).href;
export const workerEntries = {
  actor: entryOf('worker'),
  log: entryOf('log/log-worker'),
  compute: entryOf('compute/compute-worker'),
  hash: entryOf('compute/hash-worker'),
} as const;

/** A thread with one long-running task. It loads its code from the moment it is made, whenever its task comes. */
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

/** The threads that last as long as the server. */
export interface ResidentThreads {
  readonly log: ResidentThread;
  readonly actors: readonly ResidentThread[];
}

/** Starts the threads, which load their code at once and wait for their tasks. */
export function beginThreads(actorThreads: number): ResidentThreads {
  return {
    log: new ResidentThread(workerEntries.log),
    actors: Array.from({ length: actorThreads }, () => new ResidentThread(workerEntries.actor)),
  };
}

export interface TaskPoolOptions {
  readonly entry: string;
  readonly threads: number;
  /** What each thread is started with. */
  readonly data: object;
  /** More than one for tasks that mostly wait for others. */
  readonly tasksPerThread: number;
  /**
   * Its threads are ended between two tasks. Native code of packages on Node's C++ interface takes the process down where its thread
   * is ended within a call.
   */
  readonly endsBetweenTasks?: boolean;
}

/** Threads for short tasks, started on first use. It is given only what runs at once: nothing waits in it. */
export class TaskPool {
  readonly #options: TaskPoolOptions;
  /** Read by the threads: see ComputeThreadData. */
  readonly #ending = new Int32Array(new SharedArrayBuffer(4));
  readonly #running = new Set<Promise<unknown>>();
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
    if (this.#isEnding) return Promise.reject(new Error('the server ends'));
    this.#pool ??= this.#start();
    const running = this.#pool.run(task, { transferList: [...moved] }) as Promise<LaneResult>;
    if (this.#options.endsBetweenTasks === true) {
      this.#running.add(running);
      const forget = () => this.#running.delete(running);
      running.then(forget, forget);
    }
    return running;
  }

  async end(): Promise<void> {
    Atomics.store(this.#ending, 0, 1);
    await settledWithin(systemClock, Promise.allSettled(this.#running), limits.laneEndMs);
    await this.#pool?.destroy();
  }

  get #isEnding(): boolean {
    return Atomics.load(this.#ending, 0) !== 0;
  }

  #start(): Piscina {
    const { entry, threads, data, tasksPerThread } = this.#options;
    const pool = new Piscina({
      filename: entry,
      workerData: { ...data, ending: this.#ending },
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
