import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptBuffers } from '../../../../actors/search/sql/kept-buffers.ts';
import { Room } from '../../../../actors/sql/room.ts';
import { MemoryBudget } from '../../../../actors/thread/memory-budget.ts';
import { FakeClock } from '../../../support/fake-clock.ts';

const megabyte = 2 ** 20;

test('buffers of a query that has ended are used again, with zeros where zeros are asked for', () => {
  const memory = new MemoryBudget(256 * megabyte);
  const buffers = new KeptBuffers(memory, new FakeClock());
  const first = new Room(300_000, buffers);
  const array = first.grown(new Float64Array(100_000).fill(7), 300_000);
  assert.equal(array.length, 300_000);
  assert.equal(array[99_999], 7);
  array.fill(9);
  first.release();
  assert.equal(memory.line('columns'), 4 * megabyte);

  const second = new Room(300_000, buffers);
  const again = second.grownWithZeros(Float64Array.of(1, 2), 300_000);

  assert.equal(again.buffer, array.buffer);
  assert.deepEqual([...again.subarray(0, 3), again.at(-1)], [1, 2, 0, 0]);
  assert.equal(memory.line('columns'), 0);
  assert.notEqual(second.zeros(megabyte).buffer, array.buffer);
});

test('no more buffers are kept than a share of the memory, and none after a while', async () => {
  const memory = new MemoryBudget(64 * megabyte);
  const clock = new FakeClock();
  const buffers = new KeptBuffers(memory, clock);
  for (let i = 0; i < 9; i++) buffers.give(new ArrayBuffer(megabyte));
  assert.equal(memory.line('columns'), 4 * megabyte);

  await clock.advance(60_000);

  assert.equal(memory.line('columns'), 0);
  assert.ok(buffers.take(megabyte).isNew);
});

test('an array grows to as many things as can come, or doubles where nobody knows', () => {
  const room = new Room(200_000);
  assert.equal(room.grown(new Int32Array(0), 1).length, 64);
  assert.equal(room.grown(new Int32Array(64), 65).length, 128);
  assert.equal(room.grown(new Int32Array(65_536), 65_537).length, 200_000);
  assert.equal(
    new Room(Number.POSITIVE_INFINITY).grown(new Int32Array(4_194_304), 4_194_305).length,
    8_388_608,
  );
});
