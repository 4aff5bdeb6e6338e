import { assert } from './assert.ts';

/**
 * A map of bounded size that forgets what was not used lately. Approximate (the CLOCK algorithm): a read only sets a
 * flag, so a hit costs one look-up, where exact order would cost a delete and an insert per read.
 *
 * The hand is one Map iterator that is kept: it follows inserts and deletes. A new iterator per eviction would step
 * over all holes left by earlier evictions, which makes a flood of inserts quadratic.
 */
export class LruMap<K, V> {
  readonly #entries = new Map<K, Entry<V>>();
  readonly #entriesMax: number;
  readonly #onRemove: (key: K, value: V) => void;
  #hand: Iterator<[K, Entry<V>]> = this.#entries.entries();
  /** How often the hand has begun at the first entry. */
  #sweep = 0;

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
    this.#entries.set(key, { value, used: false, sweep: this.#sweep });
  }

  delete(key: K): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    this.#onRemove(key, entry.value);
  }

  /**
   * Ends within three sweeps: the first clears every flag that it passes. It leaves out what came since it began, which the
   * map has at its end: else of a few new keys in turn each would put out the one before, while old ones stay for ever.
   */
  #evictOne(): void {
    if (this.#sweep === 0) this.#sweep = 1;
    for (;;) {
      const step = this.#hand.next();
      if (step.done === true) {
        this.#hand = this.#entries.entries();
        this.#sweep++;
        continue;
      }
      const [key, entry] = step.value;
      if (!entry.used && entry.sweep !== this.#sweep) {
        this.delete(key);
        return;
      }
      entry.used = false;
    }
  }
}

interface Entry<V> {
  value: V;
  used: boolean;
  /** In which it came. */
  readonly sweep: number;
}
