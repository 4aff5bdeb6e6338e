/** Callers that ask for the same thing at the same time share one run of the work, its result and its failure. */
export class SingleFlight<K, V> {
  readonly #running = new Map<K, Promise<V>>();

  /** Runs in progress. */
  get size(): number {
    return this.#running.size;
  }

  /** The run in progress for `key`, if there is one. */
  joined(key: K): Promise<V> | undefined {
    return this.#running.get(key);
  }

  /** Joins the run in progress for `key`, or starts one. Nothing is kept once it has settled. */
  run(key: K, start: () => Promise<V>): Promise<V> {
    const running = this.#running.get(key);
    if (running !== undefined) return running;
    const run = start().finally(() => this.#running.delete(key));
    this.#running.set(key, run);
    return run;
  }
}
