import type { SimulatedProcess } from './process.ts';
import type { Scheduler } from './scheduler.ts';

/** What a server needs of its world. */
export interface ServerParts {
  readonly scheduler: Scheduler;
  readonly makeProcess: (server: SimulatedServer) => SimulatedProcess;
  readonly tell: (what: string) => void;
  readonly startFailed: (process: SimulatedProcess, error: unknown) => void;
  /** No process got to serve. */
  readonly onStuck: () => void;
}

/** Between two tries of a supervisor. */
const restartMs = 300;
/** A start that takes longer is given up. */
const startPatienceMs = 120_000;
const startsMax = 60;

/** One server: processes that follow upon each other, each started when the one before it has died or whatever else asks for it. */
export class SimulatedServer {
  readonly id: string;
  readonly #parts: ServerParts;
  #starting: Promise<void> | null = null;
  /** Whether a process that ends is followed by another one. */
  supervised = true;
  current: SimulatedProcess | null = null;

  constructor(id: string, parts: ServerParts) {
    this.id = id;
    this.#parts = parts;
  }

  get starting(): Promise<void> | null {
    return this.#starting;
  }

  /** A process that takes the server's place, whatever else is running; tried again until one serves. */
  startNext(): Promise<void> {
    this.#starting ??= this.#startUntilServing().finally(() => {
      this.#starting = null;
    });
    return this.#starting;
  }

  async #startUntilServing(): Promise<void> {
    const { scheduler, makeProcess, tell, startFailed, onStuck } = this.#parts;
    for (let tries = 0; tries < startsMax; tries++) {
      const process = makeProcess(this);
      tell(`p${process.number} starts`);
      const started = await Promise.race([
        process.start().then(
          () => true,
          (error: unknown) => {
            startFailed(process, error);
            return false;
          },
        ),
        new Promise<boolean>((resolve) => process.onDeath(() => resolve(false))),
        scheduler.sleep(startPatienceMs).then(() => false),
      ]);
      if (started && !process.dead) {
        tell(`p${process.number} serves`);
        this.current = process;
        process.onDeath(() => this.#onDeath(process));
        return;
      }
      process.kill();
      await scheduler.sleep(restartMs);
    }
    this.supervised = false;
    onStuck();
  }

  #onDeath(process: SimulatedProcess): void {
    this.#parts.tell(`p${process.number} is gone`);
    if (this.current !== process) return;
    this.current = null;
    if (this.supervised) void this.#parts.scheduler.sleep(restartMs).then(() => this.#ensureServing());
  }

  async #ensureServing(): Promise<void> {
    if (this.current === null && this.supervised) await this.startNext();
  }
}
