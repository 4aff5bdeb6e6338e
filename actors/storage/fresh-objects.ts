import { limits } from '../../protocol/limits.ts';
import type { Clock } from '../../src/base/clock.ts';
import type { MemoryBudget } from '../thread/memory-budget.ts';
import type { BlockPlace } from './segment-format.ts';

/** What an object costs besides its bytes. */
const objectOverheadBytes = 400;
/** The part of the room for all objects that is given back beyond what is asked for, so that it is asked for seldom. */
const slackShare = 1 / 8;
/** The part of a thread's memory that fresh objects may take, where that is less than their limit. */
const memoryShare = 1 / 32;

/**
 * Small objects as they were stored, from when they were built until they are closed or room is needed. A flush takes a namespace's
 * documents out of the memtable, and whoever reads them next would wait for the object store: where a thousand namespaces are flushed at
 * once, for a second. What is read is decoded and kept as any other block. Where room is needed, here or in the thread's memory, what was
 * added over a minute ago is forgotten first, then the oldest of whoever has the most.
 */
export class FreshObjects {
  readonly #budget: MemoryBudget;
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #bytesMax: number;
  /** Whose each object is, and when it was added; oldest first. */
  readonly #added = new Map<string, { readonly owner: number; readonly atMs: number }>();
  readonly #held = new Map<number, ObjectsOfOwner>();
  #bytes = 0;

  /** Charges what it holds to the line `blocks` of `budget`. */
  constructor(budget: MemoryBudget, clock: Pick<Clock, 'monotonic'>) {
    this.#budget = budget;
    this.#clock = clock;
    this.#bytesMax = Math.min(limits.freshObjectsBytesMax, Math.floor(budget.bytesMax * memoryShare));
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Keeps all bytes of an object. `owner`: whose data it is. Keeps nothing where it is larger than the room. */
  add(objectKey: string, owner: number, bytes: Uint8Array): void {
    const cost = costOf(bytes);
    if (cost > this.#bytesMax) return;
    this.remove(objectKey);
    while (this.#bytes + cost > this.#bytesMax) this.#forgetOne();
    const of = this.#held.get(owner) ?? { bytes: 0, objects: new Map<string, Uint8Array>() };
    of.objects.set(objectKey, bytes);
    this.#held.set(owner, of);
    this.#added.set(objectKey, { owner, atMs: this.#clock.monotonic() });
    this.#charge(of, cost);
  }

  has(objectKey: string): boolean {
    return this.#added.has(objectKey);
  }

  /** A copy of a block's stored bytes, fewer where the object ends before; null where the object is not here. */
  read(objectKey: string, { offset, length }: Pick<BlockPlace, 'offset' | 'length'>): Buffer | null {
    const added = this.#added.get(objectKey);
    if (added === undefined) return null;
    const bytes = this.#held.get(added.owner)?.objects.get(objectKey);
    return bytes === undefined ? null : Buffer.from(bytes.subarray(offset, offset + length));
  }

  remove(objectKey: string): void {
    const added = this.#added.get(objectKey);
    const of = added === undefined ? undefined : this.#held.get(added.owner);
    const bytes = of?.objects.get(objectKey);
    if (added === undefined || of === undefined || bytes === undefined) return;
    of.objects.delete(objectKey);
    this.#added.delete(objectKey);
    this.#charge(of, -costOf(bytes));
    if (of.objects.size === 0) this.#held.delete(added.owner);
  }

  /** Forgets objects that cost so many bytes, and an eighth of the room more; all, where they are fewer. */
  giveBack(bytes: number): void {
    const most = Math.max(0, this.#bytes - bytes - this.#bytesMax * slackShare);
    while (this.#bytes > most) this.#forgetOne();
  }

  /** Forgets the oldest object of all where it was added over a minute ago, otherwise the oldest of the owner that has the most bytes here. */
  #forgetOne(): void {
    const oldSince = this.#clock.monotonic() - limits.freshObjectMs;
    for (const [objectKey, { atMs }] of this.#added) {
      if (atMs > oldSince) break;
      this.remove(objectKey);
      return;
    }
    let most: ObjectsOfOwner | null = null;
    for (const of of this.#held.values()) if (most === null || of.bytes > most.bytes) most = of;
    for (const oldest of most?.objects.keys() ?? []) {
      this.remove(oldest);
      return;
    }
  }

  #charge(of: ObjectsOfOwner, bytes: number): void {
    of.bytes += bytes;
    this.#bytes += bytes;
    this.#budget.add('blocks', bytes);
  }
}

function costOf(bytes: Uint8Array): number {
  return bytes.length + objectOverheadBytes;
}

interface ObjectsOfOwner {
  /** What its objects cost. */
  bytes: number;
  /** The bytes of its objects by their keys, oldest first. */
  readonly objects: Map<string, Uint8Array>;
}
