import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FreshObjects } from '../../../actors/storage/fresh-objects.ts';
import { MemoryBudget } from '../../../actors/thread/memory-budget.ts';
import { limits } from '../../../protocol/limits.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const place = (offset: number, length: number) => ({ offset, length, kind: 1 });
const kilobyte = Buffer.alloc(1_000, 'x');

/** What an object of 1,000 bytes costs. */
const cost = 1_400;

/** Room for ten objects of 1,000 bytes. */
function roomForTen() {
  const budget = new MemoryBudget(32 * 10 * cost);
  const clock = new FakeClock();
  return { budget, clock, fresh: new FreshObjects(budget, clock) };
}

test('an object is read in parts, as it was added, until it is removed', () => {
  const { budget, fresh } = roomForTen();
  fresh.add('a', 1, Buffer.from('0123456789'));

  assert.equal(fresh.read('a', place(2, 3))?.toString(), '234');
  assert.equal(fresh.read('a', place(8, 5))?.toString(), '89', 'it ends before');
  assert.equal(fresh.read('b', place(0, 1)), null);
  assert.deepEqual([fresh.bytes, budget.line('blocks')], [410, 410]);
  fresh.add('a', 1, Buffer.from('again'));
  assert.equal(fresh.read('a', place(0, 5))?.toString(), 'again');
  assert.equal(fresh.bytes, 405);

  fresh.remove('a');
  fresh.remove('a');
  assert.equal(fresh.read('a', place(0, 1)), null);
  assert.deepEqual([fresh.bytes, budget.line('blocks')], [0, 0]);
});

test('who adds a thousand objects keeps its newest, and puts out nothing of a neighbour who has less', () => {
  const { budget, fresh } = roomForTen();
  fresh.add('neighbour-1', 2, kilobyte);
  fresh.add('neighbour-2', 2, kilobyte);

  for (let n = 0; n < 1_000; n++) {
    fresh.add(`attacker-${n}`, 1, kilobyte);
    assert.ok(fresh.bytes <= 10 * cost && budget.line('blocks') === fresh.bytes);
  }

  assert.deepEqual(
    ['neighbour-1', 'neighbour-2'].map((key) => fresh.has(key)),
    [true, true],
  );
  assert.deepEqual(
    [991, 992, 999].map((n) => fresh.has(`attacker-${n}`)),
    [false, true, true],
  );
});

test('what is old goes first, whoever has most; nothing goes while there is room', async () => {
  const { clock, fresh } = roomForTen();
  fresh.add('old', 2, kilobyte);
  await clock.advance(limits.freshObjectMs / 2);
  fresh.add('younger', 2, kilobyte);
  await clock.advance(limits.freshObjectMs / 2);

  for (let n = 0; n < 8; n++) fresh.add(`new-${n}`, 1, kilobyte);
  assert.equal(fresh.has('old'), true);
  fresh.add('new-8', 1, kilobyte);
  assert.deepEqual([fresh.has('old'), fresh.has('younger'), fresh.has('new-0')], [false, true, true]);
  fresh.add('new-9', 1, kilobyte);
  assert.deepEqual([fresh.has('younger'), fresh.has('new-0'), fresh.has('new-1')], [true, false, true]);
});

test('it gives back what is asked of it and an eighth of its room, and no more than it has', () => {
  const { budget, fresh } = roomForTen();
  for (let n = 0; n < 10; n++) fresh.add(`object-${n}`, n, kilobyte);

  fresh.giveBack(2 * cost);
  assert.deepEqual([fresh.bytes, budget.line('blocks')], [6 * cost, 6 * cost]);
  fresh.giveBack(1e9);
  assert.deepEqual([fresh.bytes, budget.line('blocks')], [0, 0]);
});

test('an object larger than the room is not kept, and puts nothing out', () => {
  const { fresh } = roomForTen();
  fresh.add('a', 1, kilobyte);

  fresh.add('large', 1, Buffer.alloc(10 * cost));

  assert.deepEqual([fresh.has('a'), fresh.has('large')], [true, false]);
});

test('a large memory does not raise the room over its limit', () => {
  const fresh = new FreshObjects(new MemoryBudget(1e12), new FakeClock());
  const bytes = Buffer.alloc(limits.freshObjectBytesMax);

  for (let n = 0; n < 50; n++) fresh.add(`object-${n}`, n, bytes);

  assert.ok(fresh.bytes <= limits.freshObjectsBytesMax);
  assert.ok(fresh.bytes > limits.freshObjectsBytesMax - 2 * limits.freshObjectBytesMax);
});
