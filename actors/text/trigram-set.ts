import { trigramBound } from './trigram-page.ts';

/** A set of trigrams: a bitmap of 2 MB, and one of its words, so that few trigrams are found and forgotten quickly. */
export class TrigramSet {
  readonly #bits = new Uint32Array(trigramBound / 32);
  readonly #words = new Uint32Array(trigramBound / 32 / 32);

  add(trigram: number): void {
    const word = trigram >>> 5;
    this.#bits[word] = (this.#bits[word] as number) | (1 << (trigram & 31));
    this.#words[word >>> 5] = (this.#words[word >>> 5] as number) | (1 << (word & 31));
  }

  /** Hands the trigrams to `take`, ascending; the set is empty then. */
  drain(take: (trigram: number) => void): void {
    for (let at = 0; at < this.#words.length; at++) {
      for (let words = this.#words[at] as number; words !== 0; words &= words - 1) {
        const word = (at << 5) | lowestBit(words);
        for (let bits = this.#bits[word] as number; bits !== 0; bits &= bits - 1)
          take((word << 5) | lowestBit(bits));
        this.#bits[word] = 0;
      }
      this.#words[at] = 0;
    }
  }
}

const lowestBit = (bits: number) => 31 - Math.clz32(bits & -bits);
