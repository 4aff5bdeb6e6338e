/**
 * Runs asynchronous work one at a time, in the order in which it was given. A failure is the caller's to handle; it
 * does not stop what comes after.
 */
export class Serial {
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  /** Work that was given and has not ended. */
  get waiting(): number {
    return this.#waiting;
  }

  run<T>(work: () => Promise<T>): Promise<T> {
    this.#waiting++;
    const result = this.#last.then(work);
    this.#last = result.then(
      () => this.#waiting--,
      () => this.#waiting--,
    );
    return result;
  }

  async whenIdle(): Promise<void> {
    while (this.#waiting > 0) await this.#last;
  }
}
