import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { Ownership } from '../../../actors/actor/ownership.ts';
import { limits } from '../../../protocol/limits.ts';
import type { Standing } from '../../../protocol/placement.ts';
import { isOwn } from '../../../src/base/owners.ts';
import { FakeClock } from '../../support/fake-clock.ts';

let clock: FakeClock;
let ownership: Ownership;

function standing(placement: number, servers: readonly string[]): Standing {
  const owners = { placement, servers, self: 'a' };
  return { version: placement, owners, others: [], removed: [], logs: ['l'] };
}

const keys = Array.from({ length: 50 }, (_, at) => `1/n${at}`);
const both = { servers: ['a', 'b'], self: 'a' };
const moving = keys.find((key) => !isOwn(both, key)) ?? '';
const staying = keys.find((key) => isOwn(both, key)) ?? '';

beforeEach(() => {
  clock = new FakeClock();
  ownership = new Ownership(clock, standing(1, ['a']));
});

test('nothing is ready before the first settlement', async () => {
  assert.equal(ownership.isReady(staying), false);
  const waiting = ownership.whenReady(staying);

  ownership.settle(1);

  await clock.run(waiting);
  assert.equal(ownership.isReady(moving), true);
});

test('what stays is ready all the time; what left and comes back is, once that is settled', () => {
  ownership.settle(1);
  ownership.adopt(standing(2, ['a', 'b']));
  assert.deepEqual([ownership.isReady(staying), ownership.isReady(moving)], [true, false]);
  assert.throws(() => ownership.require(moving), { code: 'unavailable' });

  ownership.adopt(standing(3, ['a']));
  assert.deepEqual([ownership.isReady(staying), ownership.isReady(moving)], [true, false]);
  ownership.settle(2);
  assert.equal(ownership.isReady(moving), false, 'settled before it came back');

  ownership.settle(3);
  assert.equal(ownership.isReady(moving), true);
});

test('who waits for what goes elsewhere is told at once, and for what does not come after two seconds', async () => {
  ownership.settle(1);
  ownership.adopt(standing(2, ['a', 'b']));
  const beganAt = clock.monotonic();
  await assert.rejects(clock.run(ownership.whenReady(moving)), /moved to another server/);
  assert.equal(clock.monotonic(), beganAt);

  ownership.adopt(standing(3, ['a']));
  await assert.rejects(clock.run(ownership.whenReady(moving)), /on its way from another server/);
  assert.equal(clock.monotonic() - beganAt, limits.handOverWaitMs);
});

test('a view that is late is dropped', () => {
  assert.equal(ownership.adopt(standing(3, ['a', 'b'])), true);
  assert.equal(ownership.adopt(standing(2, ['a'])), false);

  assert.equal(ownership.placement, 3);
  assert.equal(ownership.isOwn(moving), false);
});
