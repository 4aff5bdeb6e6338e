import { assert } from './assert.ts';

/**
 * A map of bounded size that forgets what was not used lately. Approximate (FIFO with a second chance): a read only sets
 * a flag, so a hit costs one look-up, where exact order would cost a delete and an insert per read. The oldest entry that
 * was not read goes; one that was read becomes the newest, without its flag.
 *
 * The hand is one Map iterator that is kept: it follows inserts and deletes. A new iterator per eviction would step
 * over all holes left by earlier evictions, which makes a flood of inserts quadratic.
 */
export class LruMap<K, V> {
  readonly #entries = new Map<K, Entry<V>>();
  readonly #entriesMax: number;
  readonly #onRemove: (key: K, value: V) => void;
  #hand: Iterator<[K, Entry<V>]> = this.#entries.entries();

  /** `onRemove` is called once for every value that leaves the map: evicted, replaced or deleted. */
  constructor(entriesMax: number, onRemove: (key: K, value: V) => void = () => {}) {
    assert(entriesMax >= 1, () => `a map of ${entriesMax} entries`);
    this.#entriesMax = entriesMax;
    this.#onRemove = onRemove;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: K): V | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    entry.used = true;
    return entry.value;
  }

  set(key: K, value: V): void {
    const entry = this.#entries.get(key);
    if (entry !== undefined) {
      const old = entry.value;
      entry.value = value;
      this.#onRemove(key, old);
      return;
    }
    if (this.#entries.size >= this.#entriesMax) this.#evictOne();
    this.#entries.set(key, { value, used: false });
  }

  delete(key: K): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    this.#onRemove(key, entry.value);
  }

  /** Ends within two rounds: the first clears every flag that it passes. */
  #evictOne(): void {
    for (;;) {
      const step = this.#hand.next();
      if (step.done === true) {
        this.#hand = this.#entries.entries();
        continue;
      }
      const [key, entry] = step.value;
      if (!entry.used) {
        this.delete(key);
        return;
      }
      // Behind those that came since: stepped over instead, it would stay while they put each other out.
      entry.used = false;
      this.#entries.delete(key);
      this.#entries.set(key, entry);
    }
  }
}

interface Entry<V> {
  value: V;
  used: boolean;
}
