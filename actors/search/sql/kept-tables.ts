/**
 * Tables of pairs of SQL queries that have ended, for the next ones of the thread. A thread keeps some of its memory of them, and none once
 * no query that had one has ended for a while.
 */
import { limits } from '../../../protocol/limits.ts';
import { assert } from '../../../src/base/assert.ts';
import type { Clock } from '../../../src/base/clock.ts';
import { PairTable } from '../../kernels/pair-table.ts';
import type { PairTables } from '../../sql/room.ts';
import type { MemoryBudget } from '../../thread/memory-budget.ts';

/** Tables that a thread has at most: each reserves ten gigabytes of addresses, of which a process has some terabytes. */
const tablesMax = 16;
const memoryShare = 1 / 16;
const idleMs = 10_000;

/** Gives tables of queries that have ended to the next ones, and drops them when none has ended for a while. */
export class KeptTables implements PairTables {
  readonly askedMin = 8_192;
  readonly #memory: MemoryBudget;
  readonly #clock: Clock;
  readonly #bytesMax: number;
  /** The tables that nobody uses. */
  #free: PairTable[] = [];
  /**
   * Bytes of tables that are counted here, by table: of those that nobody uses, and of those that a query was given as they were, because a
   * memory never shrinks and the query may need little of it. What the query needs it counts as well.
   */
  readonly #counted = new Map<PairTable, number>();
  #bytes = 0;
  /** How many tables queries have. */
  #taken = 0;
  #stopWaiting = () => {};

  constructor(memory: MemoryBudget, clock: Clock) {
    this.#memory = memory;
    this.#clock = clock;
    this.#bytesMax = Math.min(limits.sqlMemoryBytesMax, memory.bytesMax * memoryShare);
  }

  take(): PairTable | null {
    if (this.#taken === tablesMax) return null;
    const table = this.#free.pop() ?? newTable();
    if (table === null) return null;
    table.reset();
    this.#taken++;
    return table;
  }

  give(table: PairTable): void {
    assert(this.#taken > 0, () => 'a table that was taken');
    this.#taken--;
    const others = this.#bytes - (this.#counted.get(table) ?? 0);
    const isKept = others + table.memoryBytes <= this.#bytesMax;
    this.#count(table, isKept ? table.memoryBytes : 0);
    if (!isKept) return;
    this.#free.push(table);
    this.#stopWaiting();
    this.#stopWaiting = this.#clock.after(idleMs, () => this.#drop());
  }

  #drop(): void {
    for (const table of this.#free) this.#count(table, 0);
    this.#free = [];
  }

  #count(table: PairTable, bytes: number): void {
    const more = bytes - (this.#counted.get(table) ?? 0);
    if (bytes === 0) this.#counted.delete(table);
    else this.#counted.set(table, bytes);
    this.#bytes += more;
    assert(
      0 <= this.#bytes && this.#bytes <= this.#bytesMax,
      () => `${this.#bytes} bytes of tables are kept`,
    );
    if (more !== 0) this.#memory.add('columns', more);
  }
}

/** Makes a table; null where there are no addresses for its memory. */
function newTable(): PairTable | null {
  try {
    return new PairTable();
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}
