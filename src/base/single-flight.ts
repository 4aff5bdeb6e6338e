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

/** What is opened once for each owner and goes with it: kept when it has opened, tried again where it failed. */
export class OpenedOnce<K extends object, V> {
  readonly #opened = new WeakMap<K, V>();
  readonly #opening = new SingleFlight<K, V>();

  /** As far as it was opened before. */
  atHand(owner: K): V | null {
    return this.#opened.get(owner) ?? null;
  }

  open(owner: K, start: () => Promise<V>): Promise<V> {
    const known = this.#opened.get(owner);
    if (known !== undefined) return Promise.resolve(known);
    return this.#opening.run(owner, async () => {
      const opened = await start();
      this.#opened.set(owner, opened);
      return opened;
    });
  }
}
