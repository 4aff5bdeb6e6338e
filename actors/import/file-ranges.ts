import { assert } from '../../src/base/assert.ts';

/** Rows of a file that one thread reads, one behind the other. */
export interface FileRange {
  /** The range's place among all, from 0, in the order of the file. */
  readonly number: number;
  /** How many rows of the file lie before the range. */
  readonly firstRow: number;
  /** Bytes of the file, from the range's first to the first one behind it; of a Parquet file, row groups by their numbers. */
  readonly start: number;
  readonly end: number;
}

/** Where a range begins that nobody has taken. */
export type RangeStart = Omit<FileRange, 'end'>;

/** Where a range ends, as `end` of FileRange has it, and how many rows it has. */
export interface RangeEnd {
  readonly end: number;
  readonly rowCount: number;
}

const words = { lock: 0, isOver: 1, number: 2, firstRow: 3 } as const;
const numbers = { start: 2, documentBytes: 3, unpackedBytes: 4 } as const;
const sharedBytes = 40;
/** Whoever holds the lock reads some megabytes at most: a thread that holds it longer has ended. */
const lockMsMax = 30_000;

/**
 * Which rows of a file come next, for all threads that read it: each takes a range, reads it, and takes another, so a thread that is slow, or
 * comes late, has less to do. Whoever takes a range finds where it ends, and the next one begins there.
 */
export class FileRanges {
  /** The memory that all threads share which read the file: what another thread makes its own `FileRanges` of. */
  readonly shared: SharedArrayBuffer;
  readonly #words: Int32Array;
  readonly #numbers: Float64Array;

  /** Makes ranges in memory that another thread shares; without `shared`, new ones that begin with the file. */
  constructor(shared = new SharedArrayBuffer(sharedBytes)) {
    this.shared = shared;
    this.#words = new Int32Array(shared);
    this.#numbers = new Float64Array(shared);
  }

  /**
   * Takes the next range; null where there is none, or nobody is to take another. `start`: where the first one begins. `find` answers where a range
   * ends, null where the file does before it; meanwhile all other threads wait, so it awaits nothing.
   */
  take(start: number, find: (from: RangeStart) => RangeEnd | null): FileRange | null {
    return this.#alone(() => {
      if (this.isOver) return null;
      const number = this.#words[words.number] as number;
      const firstRow = this.#words[words.firstRow] as number;
      const from = {
        number,
        firstRow,
        start: number === 0 ? start : (this.#numbers[numbers.start] as number),
      };
      const found = find(from);
      if (found === null) {
        this.end();
        return null;
      }
      this.#words[words.number] = number + 1;
      this.#words[words.firstRow] = firstRow + found.rowCount;
      this.#numbers[numbers.start] = found.end;
      return { ...from, end: found.end };
    });
  }

  /** How many ranges all threads have taken. */
  get count(): number {
    return this.#alone(() => this.#words[words.number] as number);
  }

  /** Whether nobody takes another range: the file has no more, or reading was given up. */
  get isOver(): boolean {
    return Atomics.load(this.#words, words.isOver) !== 0;
  }

  /** Ends the taking: from now on no thread gets another range. */
  end(): void {
    Atomics.store(this.#words, words.isOver, 1);
  }

  /** Counts bytes of documents that were made, and answers how many all threads have made. */
  countBytes(bytes: number): number {
    return this.#add(numbers.documentBytes, bytes);
  }

  /** Counts bytes that pages were unpacked to, and answers how many all threads have unpacked. */
  countUnpacked(bytes: number): number {
    return this.#add(numbers.unpackedBytes, bytes);
  }

  #add(number: number, more: number): number {
    return this.#alone(() => {
      const sum = (this.#numbers[number] as number) + more;
      this.#numbers[number] = sum;
      return sum;
    });
  }

  #alone<T>(work: () => T): T {
    while (Atomics.compareExchange(this.#words, words.lock, 0, 1) !== 0)
      if (Atomics.wait(this.#words, words.lock, 1, lockMsMax) === 'timed-out')
        throw new Error('a thread that reads the same file has ended');
    try {
      return work();
    } finally {
      const held = Atomics.exchange(this.#words, words.lock, 0);
      Atomics.notify(this.#words, words.lock);
      assert(held === 1, () => 'the lock was let go by somebody else');
    }
  }
}
