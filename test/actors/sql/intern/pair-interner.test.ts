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
    for (let frame = 0; frame < 10; frame++) {
      const firsts = Int32Array.from({ length: 9_000 }, () => Math.floor(random() * firstsBelow));
      const seconds = Int32Array.from({ length: 9_000 }, () => Math.floor(random() * 1_000));
      const again = firsts.slice();
      plain.internAll(firsts, seconds);
      moving.internAll(again, seconds);
      assert.deepEqual(again, firsts);
      assert.equal(moving.count, plain.count);
      const some = Int32Array.from({ length: 1_000 }, () => Math.floor(random() * plain.count));
      assert.deepEqual(moving.firsts(some), plain.firsts(some));
      assert.deepEqual(moving.seconds(some), plain.seconds(some));
    }
    room.release();
  }
  assert.ok(buffers.pairTables.take() !== null);
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
