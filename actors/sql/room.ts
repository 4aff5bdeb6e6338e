/**
 * Arrays that grow with what a query counts. Each growth copies all of it, and one large copy holds up everybody on the thread:
 * a large array has room for all that can come at once. New memory costs microseconds for each page that is touched, and V8
 * collects all its garbage after every 64 MB of it; so large buffers are taken from those of earlier queries, where there are.
 */
export interface LargeBuffers {
  /** What is smaller is not taken from here. */
  readonly bytesMin: number;
  /** Of that length; what is in it is anything, unless it is new. */
  take(byteLength: number): { readonly buffer: ArrayBuffer; readonly isNew: boolean };
  /** Nobody looks at it any more. */
  give(buffer: ArrayBuffer): void;
}

/** What a query may hold of the thread's memory, beside all others. */
export interface Holding {
  /** Takes so many bytes more, or answers false and holds what it held. */
  grow(bytes: number): boolean;
}

/** The query would hold more than it may. */
export class RoomExceeded extends Error {
  override name = 'RoomExceeded';
  /** What it may hold. */
  readonly bytesMax: number;

  constructor(bytesMax: number) {
    super('a query holds too much');
    this.bytesMax = bytesMax;
  }
}

type Numbers = Int32Array | Float64Array | Uint32Array;

const largeCount = 65_536;
/** Of so many, room is taken ahead of need. */
const roomMax = 4_194_304;
const firstCount = 64;

export class Room {
  /** As many things as can come. */
  readonly countMax: number;
  readonly #buffers: LargeBuffers | null;
  readonly #taken = new Set<ArrayBuffer>();
  readonly #holding: Holding | null;
  /** Of large arrays that were made here and not given back. */
  #bytes = 0;
  /** As many as `#holding` was grown by. */
  #heldBytes = 0;

  /** `holding`: what all of it is taken from; null where it is counted elsewhere. */
  constructor(countMax: number, buffers: LargeBuffers | null = null, holding: Holding | null = null) {
    this.countMax = countMax;
    this.#buffers = buffers;
    this.#holding = holding;
  }

  /** From now on so many bytes at least are held. Throws `RoomExceeded` where they may not be. */
  hold(bytes: number): void {
    if (!this.#mayHold(bytes)) throw new RoomExceeded(this.#heldBytes);
  }

  #mayHold(bytes: number): boolean {
    if (this.#holding === null || bytes <= this.#heldBytes) return true;
    // In steps, so that most arrays ask nobody.
    const wanted = Math.max(bytes, this.#heldBytes + holdStepBytes);
    for (const level of [wanted, bytes]) {
      if (!this.#holding.grow(level - this.#heldBytes)) continue;
      this.#heldBytes = level;
      return true;
    }
    return false;
  }

  /** The array, or a longer one with the same beginning, and anything behind it. At most `countMax` are ever asked for. */
  grown<T extends Numbers>(array: T, count: number, countMax = this.countMax): T {
    return count <= array.length ? array : this.#replaced(array, count, countMax).larger;
  }

  /** As `grown`, with zeros behind it. */
  grownWithZeros<T extends Numbers>(array: T, count: number): T {
    if (count <= array.length) return array;
    const { larger, isNew } = this.#replaced(array, count, this.countMax);
    if (!isNew) larger.fill(0, array.length);
    return larger;
  }

  /** So many zeros. */
  zeros(count: number): Int32Array<ArrayBuffer> {
    const { larger, isNew } = this.#of(Int32Array<ArrayBuffer>, count);
    if (!isNew) larger.fill(0);
    return larger;
  }

  /** What was taken here, or a small one: nobody looks at it any more. */
  giveBack({ buffer }: Numbers): void {
    if (buffer.byteLength >= largeBytes) this.#bytes -= buffer.byteLength;
    if (this.#taken.delete(buffer as ArrayBuffer)) this.#buffers?.give(buffer as ArrayBuffer);
  }

  /** The query is over: nobody looks at any array from here. */
  release(): void {
    for (const buffer of this.#taken) this.#buffers?.give(buffer);
    this.#taken.clear();
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
    // Of few lengths, so that they fit other queries.
    const taken = 2 ** Math.ceil(Math.log2(bytes));
    this.#count(taken);
    const { buffer, isNew } = this.#buffers.take(taken);
    this.#taken.add(buffer);
    return { larger: new kind(buffer, 0, length), isNew };
  }
}

/** What takes less is not counted: it is what a query's objects take anyway. */
const largeBytes = 16_384;
const holdStepBytes = 1_048_576;
/** Where there is no room for more than is needed. */
const tightGrowth = 1.25;
/** Room ahead of need is taken while as much again is left. */
const spareFactor = 2;

function lengthFor(length: number, count: number, countMax: number): number {
  // Who begins with so many knows how many there are.
  if (length === 0) return Math.max(count, firstCount);
  if (count <= largeCount) return Math.max(count, Math.min(length * 2, largeCount), firstCount);
  if (count <= roomMax) return Math.max(count, Math.min(countMax, roomMax));
  return Math.max(count, length * 2);
}
