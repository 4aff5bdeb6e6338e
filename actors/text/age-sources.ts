import { lowerBound } from './postings.ts';

/**
 * Sets of row groups that are read once, newest first, as ascending ages. Reading is by windows, so that whoever wants
 * the newest few pays for no more.
 */
export interface AgeSource {
  /** At most so many ages: exact for a list. */
  readonly count: number;
  /** Moves all ages below `to` that were not read yet into `target` at `at`; answers where they end. */
  readBelow(to: number, target: Uint32Array, at: number): number;
  /** Keeps those of the first `count` candidates, which ascend, that the set has. Ages below the last are read then. */
  retain(candidates: Uint32Array, count: number): number;
}

export const noAges: AgeSource = { count: 0, readBelow: (_to, _target, at) => at, retain: () => 0 };

/** Every age below `bound`. */
export class AllAges implements AgeSource {
  readonly count: number;
  #next = 0;

  constructor(bound: number) {
    this.count = bound;
  }

  readBelow(to: number, target: Uint32Array, at: number): number {
    const stop = Math.min(to, this.count);
    let end = at;
    for (; this.#next < stop; this.#next++) target[end++] = this.#next;
    return end;
  }

  retain(_candidates: Uint32Array, count: number): number {
    return count;
  }
}

/** A source of ages that are known beforehand, as a list. */
export class ListedAges implements AgeSource {
  readonly #ages: Uint32Array;
  #next = 0;

  /** `ages` ascend. */
  constructor(ages: Uint32Array) {
    this.#ages = ages;
  }

  get count(): number {
    return this.#ages.length;
  }

  readBelow(to: number, target: Uint32Array, at: number): number {
    let end = at;
    for (; this.#next < this.#ages.length && (this.#ages[this.#next] as number) < to; this.#next++)
      target[end++] = this.#ages[this.#next] as number;
    return end;
  }

  retain(candidates: Uint32Array, count: number): number {
    let kept = 0;
    for (let i = 0; i < count; i++) {
      const wanted = candidates[i] as number;
      this.#next = lowerBound(this.#ages, this.#next, this.#ages.length, wanted);
      if (this.#ages[this.#next] === wanted) candidates[kept++] = wanted;
    }
    return kept;
  }
}

/**
 * What remains after so many sources in a row that took less than this part of it away is taken for what all have: the
 * sources that follow are larger still, and looking at a document costs about as much as decoding a block of each.
 */
export const idleSourcesMax = 3;
const idleShare = 16;

/** What all of them have, and a few more. */
export class Intersection implements AgeSource {
  readonly count: number;
  /** Rarest first: the others are only asked for what it has, and skip the blocks between. */
  readonly #sources: readonly AgeSource[];

  constructor(sources: readonly AgeSource[]) {
    this.#sources = [...sources].sort((a, b) => a.count - b.count);
    this.count = this.#sources[0]?.count ?? 0;
  }

  readBelow(to: number, target: Uint32Array, at: number): number {
    const [rarest, ...others] = this.#sources;
    if (rarest === undefined) return at;
    const end = rarest.readBelow(to, target, at);
    return at + keepOfAll(others, target.subarray(at, end), end - at);
  }

  retain(candidates: Uint32Array, count: number): number {
    return keepOfAll(this.#sources, candidates, count);
  }
}

/** Keeps those of the first `count` candidates that all sources have, and a few more. It gives up after `idleSourcesMax` sources in a row that took hardly anything away. */
function keepOfAll(sources: readonly AgeSource[], candidates: Uint32Array, count: number): number {
  let kept = count;
  let idle = 0;
  for (const source of sources) {
    if (kept === 0 || idle === idleSourcesMax) break;
    const before = kept;
    kept = source.retain(candidates, before);
    idle = (before - kept) * idleShare < before ? idle + 1 : 0;
  }
  return kept;
}

/** What any of them has, by a bitmap of the span: the number of sources may be large. */
export class Union implements AgeSource {
  readonly count: number;
  readonly #sources: readonly AgeSource[];
  readonly #bits: Uint32Array;
  readonly #ages: Uint32Array;
  /** The first age that was not read. */
  #next = 0;

  /** All ages are below `bound`. */
  constructor(sources: readonly AgeSource[], bound: number) {
    this.#sources = sources;
    const sum = sources.reduce((total, source) => total + source.count, 0);
    this.count = Math.min(bound, sum);
    this.#bits = new Uint32Array((bound + 31) >>> 5);
    this.#ages = new Uint32Array(bound);
  }

  readBelow(to: number, target: Uint32Array, at: number): number {
    if (to <= this.#next) return at;
    const bits = this.#bits;
    for (const source of this.#sources) this.#mark(source.readBelow(to, this.#ages, 0));
    let end = at;
    const lastWord = Math.min(bits.length - 1, (to - 1) >>> 5);
    for (let word = this.#next >>> 5; word <= lastWord; word++) {
      let rest = bits[word] as number;
      bits[word] = 0;
      while (rest !== 0) {
        const low = rest & -rest;
        target[end++] = (word << 5) | (31 - Math.clz32(low));
        rest ^= low;
      }
    }
    this.#next = to;
    return end;
  }

  retain(candidates: Uint32Array, count: number): number {
    if (count === 0) return 0;
    const ages = new Uint32Array(this.#ages.length);
    const length = this.readBelow((candidates[count - 1] as number) + 1, ages, 0);
    let kept = 0;
    let at = 0;
    for (let i = 0; i < count; i++) {
      const wanted = candidates[i] as number;
      at = lowerBound(ages, at, length, wanted);
      if (at < length && ages[at] === wanted) candidates[kept++] = wanted;
    }
    return kept;
  }

  #mark(length: number): void {
    const ages = this.#ages;
    const bits = this.#bits;
    for (let i = 0; i < length; i++) {
      const age = ages[i] as number;
      bits[age >>> 5] = (bits[age >>> 5] as number) | (1 << (age & 31));
    }
  }
}
