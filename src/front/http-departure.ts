import type { BodyIntake } from './http-body.ts';
import { ClientGone } from './http-types.ts';

/** The end of an exchange without an answer: nobody waits for the handler any more, and what it began is told so, once. */
export class Departure {
  #gone = false;
  /** Null where nobody asked to be told: most exchanges are answered within their turn. */
  #runs: (() => void)[] | null = null;

  get gone(): boolean {
    return this.#gone;
  }

  /** Calls `run` when the client goes; at once where it has gone. */
  onAbort(run: () => void): void {
    if (this.#gone) run();
    else if (this.#runs === null) this.#runs = [run];
    else this.#runs.push(run);
  }

  /** Fails the body that is still waited for, if any, and tells those that asked. */
  abandon(intake: BodyIntake | null): void {
    this.#gone = true;
    intake?.fail(new ClientGone());
    const runs = this.#runs ?? [];
    this.#runs = null;
    for (const run of runs) run();
  }
}
