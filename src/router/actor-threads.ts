/** One actor thread and the ports to it. One that dies is started again; what it was asked meanwhile is refused. */
import { MessageChannel, MessagePort } from 'node:worker_threads';
import { ApiError } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { apiErrorToWire } from '../../protocol/messages.ts';
import type { Owners, Standing } from '../../protocol/placement.ts';
import type {
  ActorControl,
  ActorStatistics,
  ActorWorkerTask,
  ComputeLaneName,
  LanesControl,
  LogControl,
} from '../../protocol/worker-tasks.ts';
import { systemClock } from '../base/clock.ts';
import { exposeControl, moved, type Remote, wrapControl } from '../base/control.ts';
import { sawShared, sawSharedBriefly, sawSharedIn } from '../base/garbage.ts';
import { describeError, type Logger } from '../base/log.ts';
import { type ChannelHandler, PortChannel } from '../base/port-channel.ts';
import { settledWithin } from '../base/settled-within.ts';
import { createPulse, type Watchdog } from '../base/watchdog.ts';
import { type ComputeLane, NotRun } from './compute-lane.ts';
import type { ResidentThread } from './worker-pool.ts';

export type ActorTaskSettings = Omit<
  ActorWorkerTask,
  'control' | 'front' | 'log' | 'lanes' | 'pulse' | 'index' | 'threads' | 'cacheFolder'
> & {
  readonly cacheFolder: string;
};

export interface ActorThreadOptions {
  readonly thread: ResidentThread;
  readonly index: number;
  readonly count: number;
  readonly settings: ActorTaskSettings;
  readonly log: Remote<LogControl>;
  readonly lanes: Readonly<Record<ComputeLaneName, ComputeLane>>;
  readonly logger: Logger;
  readonly watchdog: Watchdog;
  /** Calls that actors make: to other actors, and to the front. */
  readonly handler: ChannelHandler;
}

/** A drained thread has only its cache to close. */
const taskEndMsMax = 5_000;

export class ActorThread {
  readonly #options: ActorThreadOptions;
  readonly #thread: ResidentThread;
  #channel: PortChannel | null = null;
  #control: Remote<ActorControl> | null = null;
  /** Controls the thread from the moment it begins to start; `#control` only does once it is ready. */
  #begunControl: Remote<ActorControl> | null = null;
  /** The newest standing that was to be told to the thread; null while that of its start is the newest. */
  #standing: Standing | null = null;
  #ending = false;
  /** Resolves when the thread's task has ended, however. */
  #task: Promise<void> = Promise.resolve();
  /**
   * Gives up each question that the thread has not answered. Waiting for the task's promise would keep something of every answer for as long as
   * the thread lives.
   */
  readonly #unanswered = new Set<() => void>();
  /** Settles when the newest start has ended, however. */
  #started: Promise<void> = Promise.resolve();

  constructor(options: ActorThreadOptions) {
    this.#options = options;
    this.#thread = options.thread;
  }

  /** Null while the thread starts or restarts. */
  get channel(): PortChannel | null {
    return this.#channel;
  }

  /** Resolves once everything durable was replayed to it. */
  start(): Promise<void> {
    const starting = this.#begin();
    this.#started = starting.catch(() => {});
    return starting;
  }

  async #begin(): Promise<void> {
    const { index, count, settings, log, watchdog, handler } = this.#options;
    const pulse = createPulse();
    const control = new MessageChannel();
    const front = new MessageChannel();
    const toLog = new MessageChannel();
    const lanes = new MessageChannel();
    exposeControl(this.#lanesControl(), lanes.port1);
    const task: ActorWorkerTask = {
      ...settings,
      index,
      threads: count,
      cacheFolder: `${settings.cacheFolder}/${index}`,
      control: control.port2,
      front: front.port2,
      log: toLog.port2,
      lanes: lanes.port2,
      pulse,
    };
    const stopWatching = watchdog.watch(`actor-${index}`, pulse);
    const running = this.#thread.run(task, [control.port2, front.port2, toLog.port2, lanes.port2]);
    this.#task = running.catch(() => {}).finally(stopWatching);
    const died = running.then(
      () => this.#onEnd(null),
      (error: unknown) => this.#onEnd(error),
    );
    const remote = wrapControl<ActorControl>(control.port1);
    this.#begunControl = remote;
    const channel = new PortChannel(front.port1, handler, limits.messageInlineBytesMax);
    await log.attach(moved(toLog.port1, [toLog.port1]), { index, count });
    // What the thread before it was told, this one may not have heard: it would answer for what others own by now.
    await this.#tell();
    // A thread that dies before it is ready would leave this call unanswered for ever.
    await Promise.race([
      remote.ready(),
      died.then(() => Promise.reject(new Error(`actor thread ${index} ended`))),
    ]);
    this.#channel = channel;
    this.#control = remote;
  }

  /**
   * Tells the thread of a later view. Resolves once the thread knows it: from then on it answers no more for what has moved to other
   * servers.
   */
  adopt(standing: Standing): Promise<void> {
    this.#standing = standing;
    return this.#tell();
  }

  async #tell(): Promise<void> {
    const [control, standing] = [this.#begunControl, this.#standing];
    if (control === null || standing === null) return;
    // A thread that dies hears nothing, and the one after it hears everything when it begins.
    await Promise.race([control.adopt(standing), this.#task]);
  }

  /** See `ActorControl.flushMoving`. A thread that dies flushes nothing. */
  async flushMoving(owners: Owners, withinMs: number): Promise<void> {
    await this.#ask((control) => control.flushMoving(owners, withinMs));
  }

  /** Answers null where the thread is not there, or dies before it has answered: the port to a dead one would say nothing for ever. */
  #ask<T>(ask: (control: Remote<ActorControl>) => Promise<T>): Promise<T | null> {
    const control = this.#control;
    if (control === null) return Promise.resolve(null);
    return new Promise((resolve, reject) => {
      const giveUp = () => resolve(null);
      this.#unanswered.add(giveUp);
      ask(control)
        .then(resolve, reject)
        .finally(() => this.#unanswered.delete(giveUp));
    });
  }

  /** On every thread before any is drained. One that is being started again is waited for: it has what the one before it had. */
  async drainNamespaces(): Promise<void> {
    this.#ending = true;
    await this.#started;
    await this.#ask((control) => control.drainNamespaces());
  }

  async drain(): Promise<void> {
    await this.#ask((control) => control.drain());
  }

  /** Null while the thread starts or restarts. */
  async statistics(): Promise<ActorStatistics | null> {
    return this.#ask((control) => control.statistics());
  }

  /** The process is about to end without being drained. */
  async leave(): Promise<void> {
    this.#ending = true;
    await this.#ask((control) => control.leave());
  }

  async end(): Promise<void> {
    this.#ending = true;
    // The task closes its cache in order after it was drained; ending the thread under it would lose that.
    await settledWithin(systemClock, this.#task, taskEndMsMax);
    this.#channel?.close();
    await this.#thread.end();
  }

  #lanesControl(): LanesControl {
    return {
      run: async (lane, task, { share, deadlineAt }, moved) => {
        // They only pass through this thread, which has hardly any garbage of its own.
        const saw = lane === 'scan' ? sawSharedBriefly : sawShared;
        sawSharedIn(task, saw);
        try {
          const asked = { task: task as object, share, deadlineAt, moved };
          const result = await this.#options.lanes[lane].run(asked);
          sawSharedIn(result, saw);
          return result;
        } catch (error) {
          if (!(error instanceof NotRun)) throw error;
          // Who has the other ends hears that nobody will come.
          for (const one of moved) if (one instanceof MessagePort) one.close();
          return { ok: false, error: apiErrorToWire(laneIsFull(lane)) };
        }
      },
    };
  }

  #onEnd(error: unknown): void {
    const { index, logger } = this.#options;
    this.#channel?.close();
    this.#channel = null;
    this.#control = null;
    for (const giveUp of this.#unanswered) giveUp();
    this.#unanswered.clear();
    if (this.#ending) return;
    logger.error('an actor thread died and is started again', { index, error: describeError(error) });
    this.start().catch((cause) => {
      if (this.#ending) return;
      logger.error('an actor thread did not start; the process ends', { index, error: describeError(cause) });
      process.exitCode = 1;
      process.kill(process.pid, 'SIGTERM');
    });
  }
}

function laneIsFull(lane: ComputeLaneName): ApiError {
  const options = { retryAfter: 1 };
  switch (lane) {
    case 'match':
      return new ApiError(
        'rate_limited',
        'too many regexes that are slow to judge are running; try again',
        options,
      );
    case 'scan':
      // The actor hears it, and goes on alone.
      return new ApiError('rate_limited', 'too many scans wait; try again', options);
    case 'embed':
    case 'model':
      return new ApiError('rate_limited', 'too many texts wait to be embedded; try again', options);
    default:
      return new ApiError('write_busy', 'the server has more writes than it can take in; try again', options);
  }
}
