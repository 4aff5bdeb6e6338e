/**
 * Large buffers of SQL queries that have ended, for the next ones of the thread. A thread keeps some of its memory of them, and
 * none once nobody has asked for a while.
 */
import { limits } from '../../../protocol/limits.ts';
import { assert } from '../../../src/base/assert.ts';
import type { Clock } from '../../../src/base/clock.ts';
import type { LargeBuffers } from '../../sql/room.ts';
import type { MemoryBudget } from '../../thread/memory-budget.ts';
import { KeptTables } from './kept-tables.ts';

const memoryShare = 1 / 16;
const idleMs = 10_000;

/** Gives buffers of queries that have ended to the next ones, and drops them when none has ended for a while. */
export class KeptBuffers implements LargeBuffers {
  readonly bytesMin = 2 ** 12;
  readonly pairTables: KeptTables;
  readonly #memory: MemoryBudget;
  readonly #clock: Clock;
  readonly #bytesMax: number;
  /** The buffers that nobody uses, by their length. */
  readonly #free = new Map<number, ArrayBuffer[]>();
  #bytes = 0;
  #stopWaiting = () => {};

  constructor(memory: MemoryBudget, clock: Clock) {
    this.#memory = memory;
    this.#clock = clock;
    this.pairTables = new KeptTables(memory, clock);
    this.#bytesMax = Math.min(limits.sqlMemoryBytesMax, memory.bytesMax * memoryShare);
  }

  take(byteLength: number): { readonly buffer: ArrayBuffer; readonly isNew: boolean } {
    const buffer = this.#free.get(byteLength)?.pop();
    if (buffer === undefined) return { buffer: new ArrayBuffer(byteLength), isNew: true };
    this.#count(-byteLength);
    return { buffer, isNew: false };
  }

  give(buffer: ArrayBuffer): void {
    const { byteLength } = buffer;
    if (this.#bytes + byteLength > this.#bytesMax) return;
    const free = this.#free.get(byteLength) ?? [];
    free.push(buffer);
    this.#free.set(byteLength, free);
    this.#count(byteLength);
    this.#stopWaiting();
    this.#stopWaiting = this.#clock.after(idleMs, () => this.#drop());
  }

  #drop(): void {
    this.#free.clear();
    this.#count(-this.#bytes);
  }

  #count(bytes: number): void {
    this.#bytes += bytes;
    assert(
      0 <= this.#bytes && this.#bytes <= this.#bytesMax,
      () => `${this.#bytes} bytes of buffers are kept`,
    );
    this.#memory.add('columns', bytes);
  }
}
