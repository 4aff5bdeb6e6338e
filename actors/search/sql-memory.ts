import { limits } from '../../protocol/limits.ts';
import type { MemoryBudget } from '../memory-budget.ts';
import type { Holding } from '../sql/room.ts';

/**
 * What the SQL queries of a thread may hold together, of its memory: each owner a quarter of what is free at that moment, and the
 * only query of an owner up to half of all. So one alone may hold much, many hold little, and something is left for who comes next.
 */
const memoryShare = 1 / 2;
const ownersPart = 1 / 4;

const threads = new WeakMap<MemoryBudget, SqlMemory>();

/** That of the thread that the budget is of. */
export function sqlMemory(memory: MemoryBudget): SqlMemory {
  let known = threads.get(memory);
  if (known === undefined) {
    known = new SqlMemory(memory);
    threads.set(memory, known);
  }
  return known;
}

/** One query's part. */
export interface SqlHolding extends Holding {
  /** Gives all of it back. Later calls do nothing. */
  release(): void;
}

export class SqlMemory {
  readonly #memory: MemoryBudget;
  readonly #max: number;
  /** By owner; those who hold nothing have no entry. */
  readonly #owners = new Map<number, number>();
  #total = 0;

  constructor(memory: MemoryBudget) {
    this.#memory = memory;
    this.#max = memory.bytesMax * memoryShare;
  }

  /** What all hold together, in bytes. */
  get held(): number {
    return this.#total;
  }

  /** A query's part, which holds nothing at first. */
  holding(owner: number): SqlHolding {
    let held = 0;
    return {
      grow: (bytes) => {
        if (held + bytes > limits.sqlMemoryBytesMax || !this.#mayGrow(owner, held, bytes)) return false;
        held += bytes;
        this.#add(owner, bytes);
        return true;
      },
      release: () => {
        this.#add(owner, -held);
        held = 0;
      },
    };
  }

  #mayGrow(owner: number, held: number, bytes: number): boolean {
    const free = this.#max - this.#total;
    if (bytes > free) return false;
    const all = this.#owners.get(owner) ?? 0;
    return all + bytes <= free * ownersPart || (all === held && held + bytes <= this.#max / 2);
  }

  #add(owner: number, bytes: number): void {
    if (bytes === 0) return;
    const left = (this.#owners.get(owner) ?? 0) + bytes;
    if (left === 0) this.#owners.delete(owner);
    else this.#owners.set(owner, left);
    this.#total += bytes;
    this.#memory.add('queries', bytes);
  }
}
