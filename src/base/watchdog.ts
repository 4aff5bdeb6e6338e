/**
 * Whether threads still turn. Native code that never comes back, as over a damaged file that it has mapped, or a loop of
 * our own holds a thread for ever, and neither an exception nor a signal tells of it. So every watched thread counts its
 * turns in memory that its observer sees: no message, no queue, nothing to do for a thread that is busy but once a beat.
 */
import type { Clock } from './clock.ts';
import { createLogger } from './log.ts';
import { repeat } from './repeat.ts';

export type Pulse = SharedArrayBuffer;

/** One counter of turns. */
export function createPulse(): Pulse {
  return new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
}

/** Called on the watched thread: one beat now, and one every `everyMs`. It does not keep the thread alive. */
export function keepBeating(clock: Clock, pulse: Pulse, everyMs: number): () => void {
  const cells = new Int32Array(pulse);
  Atomics.add(cells, 0, 1);
  return repeat(clock, everyMs, async () => {
    Atomics.add(cells, 0, 1);
    return everyMs;
  });
}

export interface WatchdogOptions {
  readonly clock: Clock;
  /** Between two looks. */
  readonly everyMs: number;
  /** A thread that has not turned for longer is silent. */
  readonly silentMsMax: number;
  /** Called once for each silent thread. */
  readonly onSilent: (thread: string) => void;
}

interface Watched {
  readonly thread: string;
  readonly cells: Int32Array;
  beats: number;
  silentMs: number;
}

/**
 * The observer, on a thread of its own choice. Silence is counted in its looks, each worth `everyMs` however late it
 * came: while the whole process stood still, or the machine slept, it could not look either.
 */
export class Watchdog {
  readonly #options: WatchdogOptions;
  readonly #watched = new Set<Watched>();
  readonly #stop: () => void;

  constructor(options: WatchdogOptions) {
    this.#options = options;
    this.#stop = repeat(options.clock, options.everyMs, async () => {
      this.#look();
      return options.everyMs;
    });
  }

  /** From now on; a thread that does not even start is silent too. The answer ends it. */
  watch(thread: string, pulse: Pulse): () => void {
    const cells = new Int32Array(pulse);
    const watched = { thread, cells, beats: Atomics.load(cells, 0), silentMs: 0 };
    this.#watched.add(watched);
    return () => this.#watched.delete(watched);
  }

  stop(): void {
    this.#stop();
  }

  #look(): void {
    const { everyMs, silentMsMax, onSilent } = this.#options;
    for (const watched of this.#watched) {
      const beats = Atomics.load(watched.cells, 0);
      watched.silentMs = beats === watched.beats ? watched.silentMs + everyMs : 0;
      watched.beats = beats;
      if (watched.silentMs <= silentMsMax) continue;
      this.#watched.delete(watched);
      onSilent(watched.thread);
    }
  }
}

/**
 * Ends this process as a crash of native code does, by SIGABRT, from any of its threads. An ordinary exit would wait for
 * the silent thread, which native code does not give back.
 */
export function abandonProcess(observer: string, silentThread: string): void {
  try {
    createLogger(observer, 'error').error('a thread does not turn any more; the process ends', {
      silentThread,
    });
  } finally {
    process.kill(process.pid, 'SIGABRT');
  }
}

/** A watchdog that abandons the process for a thread of its. */
export function guardThreads(
  clock: Clock,
  observer: string,
  { everyMs, silentMsMax }: Pick<WatchdogOptions, 'everyMs' | 'silentMsMax'>,
): Watchdog {
  return new Watchdog({
    clock,
    everyMs,
    silentMsMax,
    onSilent: (thread) => abandonProcess(observer, thread),
  });
}
