import type { Clock } from '../../../src/base/clock.ts';
import type { MemoryBudget } from '../../thread/memory-budget.ts';
import { KeptBuffers } from './kept-buffers.ts';
import { KeptColumns } from './kept-columns.ts';
import { SqlMemory } from './sql-memory.ts';

/** What all SQL queries of a thread share. A thread makes one of these: each part holds a share of the thread's memory. */
export interface SqlComponents {
  readonly memory: SqlMemory;
  readonly columns: KeptColumns;
  readonly buffers: KeptBuffers;
}

export function sqlComponents(memory: MemoryBudget, clock: Clock): SqlComponents {
  return {
    memory: new SqlMemory(memory, clock),
    columns: new KeptColumns(memory),
    buffers: new KeptBuffers(memory, clock),
  };
}
