import { assert, must } from '../../src/base/assert.ts';
import type { PairTable } from '../kernels/pair-table.ts';

/**
 * Large buffers of earlier queries, for the arrays of the next ones: new memory costs microseconds for each page that is touched, and
 * V8 collects all its garbage after every 64 MB of it.
 */
export interface LargeBuffers {
  /** Smaller buffers are not taken from here. */
  readonly bytesMin: number;
  /** Takes a buffer of that length, in which anything may stand unless it is new: then there are zeros. */
  take(byteLength: number): { readonly buffer: ArrayBuffer; readonly isNew: boolean };
  /** Gives a buffer that nobody looks at any more. */
  give(buffer: ArrayBuffer): void;
  /** Tables of pairs, which are such buffers too. */
  readonly pairTables: PairTables;
}

/** Tables of pairs of earlier queries, for the next ones: each has a memory of its own. */
export interface PairTables {
  /** How many pairs somebody must have asked for, to be worth a memory of its own. */
  readonly askedMin: number;
  /** Takes an empty table; null where there are as many as there may be. */
  take(): PairTable | null;
  /** Gives a table that nobody looks at any more. */
  give(table: PairTable): void;
}

/** What one query holds of the thread's memory, beside all others. */
export interface Holding {
  /** Takes more bytes; answers false where there is no room for them, and holds what it held. */
  grow(bytes: number): boolean;
}

/** Something that holds memory of a query. */
export interface Holder {
  /** How many bytes it holds, about. */
  readonly bytes: number;
}

/** Adds up what all of them hold. Asked after each frame: an iterator would be garbage each time. */
export function bytesOfAll(holders: readonly Holder[]): number {
  let sum = 0;
  for (let at = 0; at < holders.length; at++) sum += (holders[at] as Holder).bytes;
  return sum;
}

/** Thrown where a query would hold more memory than it may. */
export class RoomExceeded extends Error {
  override name = 'RoomExceeded';
  /** How many bytes it may hold. */
  readonly bytesMax: number;

  constructor(bytesMax: number) {
    super('a query holds too much');
    this.bytesMax = bytesMax;
  }
}

type Numbers = Int32Array | Float64Array | Uint32Array;

const largeCount = 65_536;
/** Tables of pairs that a query has at most: others find some too. */
const tablesMax = 4;
/** Queries with more rows than a table of pairs has room for do without. */
const pairsMax = 2 ** 27;
/** Up to so many things, room is taken ahead of need. */
const roomMax = 4_194_304;
const firstCount = 64;

/**
 * Makes the arrays that grow with what a query counts. Each growth copies all of an array, and one large copy holds up everybody on
 * the thread: so a large array has room for all that can come at once.
 */
export class Room {
  /** How many things can come at most: a query's rows. */
  readonly countMax: number;
  readonly #buffers: LargeBuffers | null;
  readonly #taken = new Set<ArrayBuffer>();
  /** The tables that were taken, with the bytes that are counted of each. */
  readonly #tables = new Map<PairTable, number>();
  readonly #holding: Holding | null;
  /** Bytes of large arrays that were made here and not given back. */
  #bytes = 0;
  /** How many bytes `#holding` was grown by. */
  #heldBytes = 0;

  /** `holding`: what all of the memory is counted in; null where somebody else counts it. */
  constructor(countMax: number, buffers: LargeBuffers | null = null, holding: Holding | null = null) {
    this.countMax = countMax;
    this.#buffers = buffers;
    this.#holding = holding;
  }

  /** Holds so many bytes at least from now on. Throws `RoomExceeded` where that is more than the query may. */
  hold(bytes: number): void {
    if (!this.#mayHold(bytes)) throw new RoomExceeded(this.#heldBytes);
  }

  #mayHold(bytes: number): boolean {
    if (this.#holding === null || bytes <= this.#heldBytes) return true;
    // More than is wanted, so that most arrays need not ask.
    const wanted = Math.max(bytes, this.#heldBytes + holdStepBytes);
    for (const level of [wanted, bytes]) {
      if (!this.#holding.grow(level - this.#heldBytes)) continue;
      this.#heldBytes = level;
      return true;
    }
    return false;
  }

  /** Answers the array where it has room for `count` things, or a longer one that begins alike; behind that is anything. At most `countMax` are ever asked for. */
  grown<T extends Numbers>(array: T, count: number, countMax = this.countMax): T {
    return count <= array.length ? array : this.#replaced(array, count, countMax).larger;
  }

  /** Grows an array as `grown` does, with zeros behind it. */
  grownWithZeros<T extends Numbers>(array: T, count: number): T {
    if (count <= array.length) return array;
    const { larger, isNew } = this.#replaced(array, count, this.countMax);
    if (!isNew) larger.fill(0, array.length);
    return larger;
  }

  /** Makes an array of zeros. */
  zeros(count: number): Int32Array<ArrayBuffer> {
    const { larger, isNew } = this.#of(Int32Array<ArrayBuffer>, count);
    if (!isNew) larger.fill(0);
    return larger;
  }

  /** Makes bytes in which anything may stand. They are not counted as arrays are: whoever fills them counts those, and most of a long buffer is never touched. */
  bytes(count: number): Buffer<ArrayBuffer> {
    if (this.#buffers === null || count < this.#buffers.bytesMin) return Buffer.from(new ArrayBuffer(count));
    const { buffer } = this.#buffers.take(2 ** Math.ceil(Math.log2(count)));
    this.#taken.add(buffer);
    return Buffer.from(buffer);
  }

  /** Takes back bytes that were made here, which nobody looks at any more. */
  giveBackBytes({ buffer }: Buffer<ArrayBuffer>): void {
    if (this.#taken.delete(buffer)) this.#buffers?.give(buffer);
  }

  /** Whether who has asked for so many pairs should have a table of them. */
  wantsTable(asked: number): boolean {
    return this.#buffers !== null && asked >= this.#buffers.pairTables.askedMin;
  }

  /** Answers an empty table of pairs, which is the query's until it ends; null where there is none to have. */
  pairTable(): PairTable | null {
    if (this.#buffers === null || this.#tables.size === tablesMax || this.countMax > pairsMax) return null;
    const table = this.#buffers.pairTables.take();
    if (table !== null) this.#tables.set(table, 0);
    return table;
  }

  /** Replaces first numbers by those of their pairs in a table from here, and counts what that takes. Throws `RoomExceeded`. */
  inTable(table: PairTable, firsts: Int32Array, seconds: Int32Array): void {
    const isWhole = table.internAll(firsts, seconds, (bytes) => {
      const more = bytes - must(this.#tables.get(table), 'a table that was taken here');
      this.hold(this.#bytes + more);
      this.#bytes += more;
      this.#tables.set(table, bytes);
    });
    if (!isWhole) throw new RoomExceeded(this.#heldBytes);
  }

  /** Takes back an array that was made here, which nobody looks at any more. */
  giveBack({ buffer }: Numbers): void {
    if (buffer.byteLength >= largeBytes) this.#bytes -= buffer.byteLength;
    assert(this.#bytes >= 0, () => `${this.#bytes} bytes of arrays were made and not given back`);
    if (this.#taken.delete(buffer as ArrayBuffer)) this.#buffers?.give(buffer as ArrayBuffer);
  }

  /** Ends the query: nobody looks at any array from here any more. */
  release(): void {
    for (const buffer of this.#taken) this.#buffers?.give(buffer);
    this.#taken.clear();
    for (const table of this.#tables.keys()) this.#buffers?.pairTables.give(table);
    this.#tables.clear();
  }

  #replaced<T extends Numbers>(array: T, count: number, countMax: number) {
    const kind = array.constructor as new (buffer: ArrayBuffer, from: number, length: number) => T;
    const { BYTES_PER_ELEMENT: width } = array;
    const roomy = lengthFor(array.length, count, countMax);
    const tight = Math.min(roomy, Math.ceil(count * tightGrowth));
    const isRoomy = tight === roomy || this.#mayHold(this.#bytes + roomy * width * spareFactor);
    const made = this.#of(kind, isRoomy ? roomy : tight);
    made.larger.set(array);
    this.giveBack(array);
    return made;
  }

  #count(bytes: number): void {
    if (bytes < largeBytes) return;
    this.hold(this.#bytes + bytes);
    this.#bytes += bytes;
  }

  #of<T extends Numbers>(
    kind: new (buffer: ArrayBuffer, from: number, length: number) => T,
    length: number,
  ): { readonly larger: T; readonly isNew: boolean } {
    const bytes = length * (kind as unknown as { readonly BYTES_PER_ELEMENT: number }).BYTES_PER_ELEMENT;
    if (this.#buffers === null || bytes < this.#buffers.bytesMin) {
      this.#count(bytes);
      return { larger: new kind(new ArrayBuffer(bytes), 0, length), isNew: true };
    }
    // There are few lengths, powers of two, so that a buffer fits other queries.
    const taken = 2 ** Math.ceil(Math.log2(bytes));
    this.#count(taken);
    const { buffer, isNew } = this.#buffers.take(taken);
    this.#taken.add(buffer);
    return { larger: new kind(buffer, 0, length), isNew };
  }
}

/** Smaller arrays are not counted: they take what a query's objects take anyway. */
const largeBytes = 16_384;
const holdStepBytes = 1_048_576;
/** How much an array grows where there is no room for more than is needed. */
const tightGrowth = 1.25;
/** Room ahead of need is taken while as much again is left. */
const spareFactor = 2;

function lengthFor(length: number, count: number, countMax: number): number {
  // Whoever makes an array with a count knows how many things there are.
  if (length === 0) return Math.max(count, firstCount);
  if (count <= largeCount) return Math.max(count, Math.min(length * 2, largeCount), firstCount);
  if (count <= roomMax) return Math.max(count, Math.min(countMax, roomMax));
  return Math.max(count, length * 2);
}
