import { readFileSync } from 'node:fs';
import { assert } from '../../src/base/assert.ts';

/** A loop of assembly/frame-numbers.ts: answers how many rows it wrote. */
type PickRows = (count: number, from: number, span: number, outside: number) => number;

/** The same of integers of 64 bits. */
type PickWideRows = (count: number, least: bigint, greatest: bigint, outside: number) => number;

interface Kernels {
  readonly memory: WebAssembly.Memory;
  readonly rowsMax: WebAssembly.Global;
  readonly numbersAddress: WebAssembly.Global;
  readonly rowsAddress: WebAssembly.Global;
  readonly allOfBytes: PickRows;
  readonly allOfShorts: PickRows;
  readonly allOfWords: PickRows;
  readonly someOfBytes: PickRows;
  readonly someOfShorts: PickRows;
  readonly someOfWords: PickRows;
  readonly allOfWide: PickWideRows;
  readonly someOfWide: PickWideRows;
  readonly totalOfBytes: (count: number) => number;
  readonly totalOfShorts: (count: number) => number;
  readonly totalOfWords: (count: number) => number;
  readonly totalOfLows: (count: number) => number;
  readonly totalOfHighs: (count: number) => number;
}

/** Numbers of 0 to 255, 65,535 or 2^32 - 1, by row. */
export type WholeNumbers = Uint8Array | Uint16Array | Uint32Array;

/** A range of whole numbers, from `from` to `from + span`: both are numbers that a row may have. */
export interface RowRange {
  readonly from: number;
  readonly span: number;
  /** Whether the numbers outside of the range are meant. */
  readonly isOutside: boolean;
}

/** The thread's only one, once it was asked for. */
let only: FrameNumbers | null = null;

/** Answers the thread's kernels over the numbers of a frame, which nobody uses across a turn. */
export function frameNumbers(): FrameNumbers {
  only ??= new FrameNumbers();
  return only;
}

/** A range of integers, from `least` to `greatest`, both of 64 bits. */
export interface WideRange {
  readonly least: bigint;
  readonly greatest: bigint;
  /** Whether the numbers outside of the range are meant. */
  readonly isOutside: boolean;
}

/** Picks rows of a frame, and adds up its numbers, by vector instructions. */
export class FrameNumbers {
  readonly #kernels: Kernels;
  readonly #bytes: Uint8Array;
  readonly #words: Int32Array;
  readonly #numbersAt: number;
  readonly #rowsWord: number;
  /** How many numbers a frame may have. */
  readonly rowsMax: number;

  constructor() {
    const code = new WebAssembly.Module(readFileSync(new URL('frame-numbers.wasm', import.meta.url)));
    this.#kernels = new WebAssembly.Instance(code).exports as unknown as Kernels;
    const { memory, rowsMax, numbersAddress, rowsAddress } = this.#kernels;
    this.#bytes = new Uint8Array(memory.buffer);
    this.#words = new Int32Array(memory.buffer);
    this.#numbersAt = numbersAddress.value as number;
    this.#rowsWord = (rowsAddress.value as number) / 4;
    this.rowsMax = rowsMax.value as number;
  }

  /**
   * Picks, from `rows`, those whose number the range means, into `picked`, which may be the memory of `rows`. Answers how many they are.
   * Rows are ascending and each once, so that as many as there are numbers are all. At most `rowsMax` numbers; all of them are copied.
   */
  pick(numbers: WholeNumbers, range: RowRange, rows: Int32Array, picked: Int32Array): number {
    const isAll = this.#prepare(numbers, rows, picked);
    const pickRows = this.#loop(numbers, isAll);
    return this.#copyOut(pickRows(rows.length, range.from, range.span, range.isOutside ? -1 : 0), picked);
  }

  /** Picks rows by integers of 64 bits, as `pick` does. */
  pickWide(numbers: BigInt64Array, range: WideRange, rows: Int32Array, picked: Int32Array): number {
    const isAll = this.#prepare(numbers, rows, picked);
    const pickRows = isAll ? this.#kernels.allOfWide : this.#kernels.someOfWide;
    return this.#copyOut(
      pickRows(rows.length, range.least, range.greatest, range.isOutside ? -1 : 0),
      picked,
    );
  }

  /** Copies numbers, and rows where they are not all. Answers whether they are. */
  #prepare(numbers: WholeNumbers | BigInt64Array, rows: Int32Array, picked: Int32Array): boolean {
    assert(picked.length >= rows.length, () => `${picked.length} places for ${rows.length} rows`);
    this.#copy(numbers);
    const isAll = rows.length === numbers.length;
    if (!isAll) this.#words.set(rows, this.#rowsWord);
    return isAll;
  }

  #copyOut(count: number, picked: Int32Array): number {
    picked.set(this.#words.subarray(this.#rowsWord, this.#rowsWord + count));
    return count;
  }

  /** Adds up numbers, at most `rowsMax` of them. */
  total(numbers: WholeNumbers): number {
    this.#copy(numbers);
    const { totalOfBytes, totalOfShorts, totalOfWords } = this.#kernels;
    if (numbers instanceof Uint8Array) return totalOfBytes(numbers.length);
    return (numbers instanceof Uint16Array ? totalOfShorts : totalOfWords)(numbers.length);
  }

  /** Adds up the halves of numbers, at most `rowsMax` of them: the lower ones, which have no sign, and the upper ones. */
  totalsOfHalves(numbers: BigInt64Array): { readonly low: number; readonly high: number } {
    this.#copy(numbers);
    const { totalOfLows, totalOfHighs } = this.#kernels;
    return { low: totalOfLows(numbers.length), high: totalOfHighs(numbers.length) };
  }

  #copy({ buffer, byteOffset, byteLength, length }: WholeNumbers | BigInt64Array): void {
    assert(length <= this.rowsMax, () => `${length} numbers, and room for ${this.rowsMax}`);
    this.#bytes.set(new Uint8Array(buffer, byteOffset, byteLength), this.#numbersAt);
  }

  #loop(numbers: WholeNumbers, isAll: boolean): PickRows {
    const kernels = this.#kernels;
    if (numbers instanceof Uint8Array) return isAll ? kernels.allOfBytes : kernels.someOfBytes;
    if (numbers instanceof Uint16Array) return isAll ? kernels.allOfShorts : kernels.someOfShorts;
    return isAll ? kernels.allOfWords : kernels.someOfWords;
  }
}
