import { assert } from '../../src/base/assert.ts';

/** What is ranked: nearer is better, and of two equally near ones the newer. */
export interface Ranked {
  readonly distance: number;
  readonly sequence: number;
}

export function isBetter(a: Ranked, b: Ranked): boolean {
  return a.distance < b.distance || (a.distance === b.distance && a.sequence > b.sequence);
}

/** Keeps the best of all that were offered, at most `count`: a heap with the worst of them on top. */
export class Nearest<T extends Ranked> {
  readonly #count: number;
  readonly #heap: T[] = [];

  constructor(count: number) {
    assert(count >= 1, () => `the nearest ${count}`);
    this.#count = count;
  }

  /** Whether one like this would be kept. Asked before it is made, where that costs something. */
  wants(candidate: Ranked): boolean {
    const worst = this.#heap[0];
    return this.#heap.length < this.#count || (worst !== undefined && isBetter(candidate, worst));
  }

  /** One that is wanted. Answers the one that had to go. */
  add(candidate: T): T | null {
    if (this.#heap.length < this.#count) {
      this.#heap.push(candidate);
      this.#rise(this.#heap.length - 1);
      return null;
    }
    const worst = this.#item(0);
    this.#heap[0] = candidate;
    this.#sink(0);
    return worst;
  }

  /** Takes the worst out; null where one alone is left. */
  dropWorst(): T | null {
    const last = this.#heap.length > 1 ? this.#heap.pop() : undefined;
    if (last === undefined) return null;
    const worst = this.#item(0);
    this.#heap[0] = last;
    this.#sink(0);
    return worst;
  }

  /** The best first. */
  sorted(): T[] {
    return this.#heap.toSorted((a, b) => (isBetter(a, b) ? -1 : 1));
  }

  #rise(from: number): void {
    let at = from;
    while (at > 0) {
      const parent = (at - 1) >>> 1;
      if (!isBetter(this.#item(parent), this.#item(at))) return;
      this.#swap(parent, at);
      at = parent;
    }
  }

  #sink(from: number): void {
    let at = from;
    for (;;) {
      let worst = at;
      for (const child of [2 * at + 1, 2 * at + 2])
        if (child < this.#heap.length && isBetter(this.#item(worst), this.#item(child))) worst = child;
      if (worst === at) return;
      this.#swap(worst, at);
      at = worst;
    }
  }

  #item(at: number): T {
    return this.#heap[at] as T;
  }

  #swap(a: number, b: number): void {
    const item = this.#item(a);
    this.#heap[a] = this.#item(b);
    this.#heap[b] = item;
  }
}
