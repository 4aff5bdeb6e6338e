import type { Clock } from '../../src/base/clock.ts';
import { type LogTarget, targetKey } from './unflushed.ts';

/** How overdue flushes are spread: at least `perStepMin` in each step, and all of them in `stepsMax` steps, as long as `limits.logHousekeepingMs`. */
export const flushPace = { stepMs: 100, perStepMin: 4, stepsMax: 100 } as const;

/**
 * Asks for overdue flushes a few at a time, over as long as the log looks for them again. Namespaces that were first written in one
 * minute, as after a restart, are overdue in one minute: asked for at once, a thousand flushes held up all reads of their thread for seconds.
 */
export class PacedFlushes {
  readonly #clock: Pick<Clock, 'after'>;
  readonly #ask: (target: LogTarget) => void;
  /** Targets that will be asked for, by their keys, in the order in which that happens. */
  #waiting = new Map<string, LogTarget>();
  /** Keys of targets that are overdue still, although they were asked for in this pass through all that are overdue. */
  #asked = new Set<string>();
  #perStep: number = flushPace.perStepMin;
  #cancelStep: (() => void) | null = null;

  constructor(clock: Pick<Clock, 'after'>, ask: (target: LogTarget) => void) {
    this.#clock = clock;
    this.#ask = ask;
  }

  /** Asks for these, and no others, from now on: first those that were not asked for lately, in their order. */
  replace(targets: readonly LogTarget[]): void {
    const keyed = targets.map((target) => [targetKey(target), target] as const);
    const again = keyed.filter(([key]) => this.#asked.has(key));
    const first = keyed.filter(([key]) => !this.#asked.has(key));
    this.#asked = new Set(again.map(([key]) => key));
    this.#waiting = new Map([...first, ...again]);
    this.#perStep = Math.max(flushPace.perStepMin, Math.ceil(targets.length / flushPace.stepsMax));
    if (this.#cancelStep === null) this.#step();
  }

  stop(): void {
    this.#waiting.clear();
    this.#cancelStep?.();
    this.#cancelStep = null;
  }

  #step(): void {
    this.#cancelStep = null;
    const step = [...this.#waiting].slice(0, this.#perStep);
    for (const [key, target] of step) {
      this.#waiting.delete(key);
      this.#asked.add(key);
      this.#ask(target);
    }
    if (this.#waiting.size === 0) this.#asked = new Set();
    else this.#cancelStep = this.#clock.after(flushPace.stepMs, () => this.#step());
  }
}
