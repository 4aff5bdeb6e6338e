import { readFileSync } from 'node:fs';
import { assert } from '../../src/base/assert.ts';
import { systemRandom } from '../../src/base/random.ts';

/** What assembly/pair-table.ts exports. */
interface Kernels {
  readonly memory: WebAssembly.Memory;
  readonly firstsAddress: WebAssembly.Global;
  readonly secondsAddress: WebAssembly.Global;
  readonly pairsMax: WebAssembly.Global;
  readonly count: () => number;
  readonly bytes: () => number;
  readonly chooseHashes: (low: number, high: number) => void;
  readonly reset: () => number;
  readonly internAll: (from: number, end: number) => number;
  readonly readPairs: (length: number) => void;
  readonly wantedBytes: () => number;
  readonly grow: () => number;
}

/** Compiled once a thread, when the first table is made. */
let code: WebAssembly.Module | null = null;

/**
 * Numbers, 0, 1, 2 …, for distinct pairs of numbers in the order in which they come first, in a WebAssembly memory of its own, which grows but
 * never shrinks: whoever is done with a table gives it to the next one (`reset`).
 */
export class PairTable {
  readonly #kernels: Kernels;
  readonly #firstsWord: number;
  readonly #secondsWord: number;
  readonly #pairsMax: number;
  /** All of the memory; another array once it has grown. */
  #words: Int32Array;

  /** Throws a RangeError where there is no memory, or no addresses, for one more table. */
  constructor() {
    code ??= new WebAssembly.Module(readFileSync(new URL('pair-table.wasm', import.meta.url)));
    this.#kernels = new WebAssembly.Instance(code).exports as unknown as Kernels;
    const { memory, firstsAddress, secondsAddress, pairsMax } = this.#kernels;
    this.#firstsWord = (firstsAddress.value as number) / 4;
    this.#secondsWord = (secondsAddress.value as number) / 4;
    this.#pairsMax = pairsMax.value as number;
    this.#words = new Int32Array(memory.buffer);
    this.reset();
  }

  /** How many pairs have a number. */
  get count(): number {
    return this.#kernels.count();
  }

  /** Bytes that the pairs take. */
  get bytes(): number {
    return this.#kernels.bytes();
  }

  /** Bytes of its memory: as many as the most pairs took that it ever had. */
  get memoryBytes(): number {
    return this.#kernels.memory.buffer.byteLength;
  }

  /** Forgets all pairs, and chooses other hashes. Throws a RangeError where there is no memory for the first slots. */
  reset(): void {
    // Whoever knew the hashes could choose pairs that are all compared with each other.
    const chance = Buffer.from(systemRandom.bytes(8));
    this.#kernels.chooseHashes(chance.readInt32LE(0), chance.readInt32LE(4));
    if (this.#kernels.reset() === 0) throw new RangeError('a table of pairs has no memory');
  }

  /**
   * Replaces each first number by the number of its pair; there are as many second numbers. `hold` is told how many bytes the table is to
   * take before it takes more, and may throw. Answers whether all pairs have numbers: not where there was no memory.
   */
  internAll(firsts: Int32Array, seconds: Int32Array, hold: (bytes: number) => void): boolean {
    const { length } = firsts;
    assert(length <= seconds.length, () => `${length} and ${seconds.length} make no pairs`);
    for (let from = 0; from < length; from += this.#pairsMax) {
      const some = firsts.subarray(from, from + this.#pairsMax);
      const end = some.length;
      const words = this.#current();
      words.set(some, this.#firstsWord);
      words.set(seconds.subarray(from, from + end), this.#secondsWord);
      for (let at = 0; ; ) {
        at = this.#kernels.internAll(at, end);
        if (at === end) break;
        hold(this.bytes + this.#kernels.wantedBytes());
        if (this.#kernels.grow() === 0) return false;
      }
      some.set(this.#current().subarray(this.#firstsWord, this.#firstsWord + end));
    }
    return true;
  }

  /** Answers the first numbers of the pairs that have those numbers. */
  firsts(numbers: Int32Array): Int32Array {
    return this.#pairsOf(numbers, this.#firstsWord);
  }

  /** Answers the second numbers of the pairs that have those numbers. */
  seconds(numbers: Int32Array): Int32Array {
    return this.#pairsOf(numbers, this.#secondsWord);
  }

  #pairsOf(numbers: Int32Array, word: number): Int32Array {
    const found = new Int32Array(numbers.length);
    const words = this.#current();
    for (let from = 0; from < numbers.length; from += this.#pairsMax) {
      const some = numbers.subarray(from, from + this.#pairsMax);
      words.set(some, this.#firstsWord);
      this.#kernels.readPairs(some.length);
      found.set(words.subarray(word, word + some.length), from);
    }
    return found;
  }

  #current(): Int32Array {
    const { buffer } = this.#kernels.memory;
    if (this.#words.buffer !== buffer) this.#words = new Int32Array(buffer);
    return this.#words;
  }
}
