import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PairTable } from '../../../../actors/kernels/pair-table.ts';
import { KeptTables } from '../../../../actors/search/sql/kept-tables.ts';
import { MemoryBudget } from '../../../../actors/thread/memory-budget.ts';
import { must } from '../../../../src/base/assert.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

const megabyte = 2 ** 20;

function taken(tables: KeptTables): PairTable {
  return must(tables.take() ?? undefined, 'a table');
}

/** Adds so many pairs, each of a first number of its own. */
function fill(table: PairTable, count: number): void {
  const numbers = Int32Array.from({ length: count }, (_, at) => at);
  assert.ok(table.internAll(numbers, numbers.slice(), () => {}));
}

test('a table is used again, empty, and its memory is counted while nobody or somebody else has it', async () => {
  const memory = new MemoryBudget(256 * megabyte);
  const clock = new FakeClock();
  const tables = new KeptTables(memory, clock);
  const table = taken(tables);
  fill(table, 200_000);
  assert.equal(memory.line('columns'), 0);

  tables.give(table);

  const { memoryBytes } = table;
  assert.equal(memory.line('columns'), memoryBytes);
  assert.equal(taken(tables), table);
  assert.equal(table.count, 0);
  assert.equal(memory.line('columns'), memoryBytes);
  tables.give(table);
  assert.equal(memory.line('columns'), memoryBytes);
  await clock.advance(60_000);
  assert.equal(memory.line('columns'), 0);
  assert.notEqual(taken(tables), table);
});

test('tables of more than a share of the memory are not kept, and nobody gets more than there may be', () => {
  const memory = new MemoryBudget(16 * megabyte);
  const tables = new KeptTables(memory, new FakeClock());
  const large = taken(tables);
  fill(large, 200_000);

  tables.give(large);

  assert.equal(memory.line('columns'), 0);
  const all: PairTable[] = [];
  for (let table = tables.take(); table !== null; table = tables.take()) all.push(table);
  assert.equal(new Set(all).size, 16);
  assert.ok(!all.includes(large));
  tables.give(must(all[3], 'a table'));
  assert.notEqual(tables.take(), null);
});
