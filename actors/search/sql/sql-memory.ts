/**
 * What the SQL queries of a thread may hold together, of its memory: each owner a quarter of what is free at that moment, and the
 * only query of an owner up to half of all (`ByteGate`). So one alone may hold much, many hold little, and something is left for
 * whoever comes next. Nobody waits: what does not fit now is refused.
 */
import { limits } from '../../../protocol/limits.ts';
import { ByteGate, type Hold } from '../../../src/base/byte-gate.ts';
import type { Clock } from '../../../src/base/clock.ts';
import type { Holding } from '../../sql/room.ts';
import type { MemoryBudget } from '../../thread/memory-budget.ts';

const memoryShare = 1 / 2;

/** What one query holds of that memory. */
export interface SqlHolding extends Holding {
  /** Gives all of it back. Later calls do nothing. */
  release(): void;
}

/** Shares the memory for SQL queries of one thread among owners. */
export class SqlMemory {
  readonly #memory: MemoryBudget;
  readonly #gate: ByteGate;

  constructor(memory: MemoryBudget, clock: Clock) {
    this.#memory = memory;
    this.#gate = new ByteGate({ max: memory.bytesMax * memoryShare, clock, waitersMax: 0 });
  }

  /** Bytes that all queries hold together. */
  get held(): number {
    return this.#gate.held;
  }

  /** Makes what one query of an owner holds: nothing at first. */
  holding(owner: number): SqlHolding {
    let hold: Hold | null = null;
    return {
      grow: (bytes) => {
        if ((hold?.amount ?? 0) + bytes > limits.sqlMemoryBytesMax) return false;
        if (hold === null) {
          hold = this.#gate.reserve(owner, bytes);
          if (hold === null) return false;
        } else if (!hold.grow(bytes)) return false;
        this.#memory.add('queries', bytes);
        return true;
      },
      release: () => {
        if (hold === null) return;
        this.#memory.add('queries', -hold.amount);
        hold.release();
        hold = null;
      },
    };
  }
}
