import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptBuffers } from '../../../../actors/search/sql/kept-buffers.ts';
import { PairInterner } from '../../../../actors/sql/intern/pair-interner.ts';
import { Room, RoomExceeded } from '../../../../actors/sql/room.ts';
import { MemoryBudget } from '../../../../actors/thread/memory-budget.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { seededRandom } from '../../../support/segments.ts';

const seed = Number(process.env.TIDEBASE_TEST_SEED ?? Math.floor(Math.random() * 1e9));
const megabyte = 2 ** 20;

test('many pairs move to a table in WebAssembly and get the numbers that they have without one', (t) => {
  t.diagnostic(`TIDEBASE_TEST_SEED=${seed}`);
  const random = seededRandom(seed);
  const buffers = new KeptBuffers(new MemoryBudget(512 * megabyte), new FakeClock());
  for (let round = 0; round < 6; round++) {
    const room = new Room(1_000_000, buffers);
    const [plain, moving] = [new PairInterner(new Room(1_000_000)), new PairInterner(room)];
    const firstsBelow = Math.ceil(2 ** (random() * 16));
    // Of 3,000 a frame, the pairs of two or three frames move.
    for (let frame = 0; frame < 30; frame++) {
      const firsts = Int32Array.from({ length: 3_000 }, () => Math.floor(random() * firstsBelow));
      const seconds = Int32Array.from({ length: 3_000 }, () => Math.floor(random() * 1_000));
      const again = firsts.slice();
      plain.internAll(firsts, seconds);
      moving.internAll(again, seconds);
      assert.deepEqual(again, firsts);
      assert.equal(moving.count, plain.count);
      const some = Int32Array.from({ length: 1_000 }, () => Math.floor(random() * plain.count));
      assert.deepEqual(moving.firsts(some), plain.firsts(some));
      assert.deepEqual(moving.seconds(some), plain.seconds(some));
    }
    assert.notEqual(moving.bytes, plain.bytes, 'a table has other bytes');
    room.release();
  }
});

test('pairs that found no table stay where they are, and a query has but some tables', () => {
  const buffers = new KeptBuffers(new MemoryBudget(512 * megabyte), new FakeClock());
  const room = new Room(1_000_000, buffers);
  const numbers = Int32Array.from({ length: 9_000 }, (_, at) => at);
  const interners = Array.from({ length: 6 }, () => new PairInterner(room));
  for (const pairs of interners) pairs.internAll(numbers.slice(), numbers);
  const bytesOf = () => interners.map(({ bytes }) => bytes);
  const [inTable, , , , plain] = bytesOf();
  assert.deepEqual(bytesOf(), [inTable, inTable, inTable, inTable, plain, plain]);
  assert.notEqual(inTable, plain);

  room.release();
  const late = interners[4] as PairInterner;
  late.internAll(numbers.slice(), numbers);

  assert.equal(late.bytes, plain);
});

test('pairs in a table are held to what a query may hold', () => {
  const buffers = new KeptBuffers(new MemoryBudget(512 * megabyte), new FakeClock());
  let held = 0;
  const grow = (bytes: number) => {
    if (held + bytes > 8 * megabyte) return false;
    held += bytes;
    return true;
  };
  const pairs = new PairInterner(new Room(1_000_000, buffers, { grow }));
  const numbers = Int32Array.from({ length: 1_000 }, (_, at) => at);
  assert.throws(() => {
    for (let at = 0; at < 1_000; at++) pairs.internAll(numbers.slice(), new Int32Array(1_000).fill(at));
  }, RoomExceeded);
  assert.ok(
    pairs.bytes <= 8 * megabyte && pairs.count > 50_000,
    `${pairs.count} pairs of ${pairs.bytes} bytes`,
  );
});
