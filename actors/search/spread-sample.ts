/**
 * A few of many, spread evenly over all of them, without knowing beforehand how many come: every one is kept at first, then
 * every second, fourth and so on. The same ones come out of the same sequence.
 */
export class SpreadSample<T> {
  readonly #sizeMax: number;
  #kept: T[] = [];
  #stride = 1;
  #seen = 0;

  /** Keeps at most `sizeMax`, and at least half of that once so many have come. */
  constructor(sizeMax: number) {
    this.#sizeMax = sizeMax;
  }

  add(item: T): void {
    if (this.#seen++ % this.#stride !== 0) return;
    this.#kept.push(item);
    if (this.#kept.length <= this.#sizeMax) return;
    this.#kept = this.#kept.filter((_, i) => i % 2 === 0);
    this.#stride *= 2;
  }

  /** The sample, in the order in which its items came. */
  get items(): readonly T[] {
    return this.#kept;
  }

  /** Whether nothing was left out. */
  get isWhole(): boolean {
    return this.#stride === 1;
  }
}
