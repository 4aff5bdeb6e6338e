import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RecentOwners } from '../../../src/router/recent-owners.ts';
import { FakeClock } from '../../support/fake-clock.ts';

test('owners count for a second or two after their request, each once, and neither nobody nor who asks does', () => {
  const clock = new FakeClock();
  const owners = new RecentOwners(clock);
  for (const owner of [7, 8, 7, 0, -1]) owners.note(owner);
  assert.deepEqual([owners.othersThan(5), owners.othersThan(7), owners.othersThan(-1)], [2, 1, 2]);

  clock.jump(1_000);
  assert.equal(owners.othersThan(5), 2, 'those of before count on');
  owners.note(9);
  owners.note(7);
  assert.deepEqual([owners.othersThan(5), owners.othersThan(7)], [3, 2]);

  clock.jump(1_000);
  assert.equal(owners.othersThan(5), 2, '8 has been away');
  clock.jump(5_000);
  owners.note(6);
  assert.equal(owners.othersThan(5), 1, 'who came a moment ago counts, however long nobody looked');
});

test('whether there are others is told as how many they are', () => {
  const clock = new FakeClock();
  const owners = new RecentOwners(clock);
  assert.equal(owners.hasOthersThan(7), false);
  owners.note(7);
  assert.deepEqual([owners.hasOthersThan(7), owners.hasOthersThan(8)], [false, true]);
  clock.jump(1_000);
  assert.deepEqual([owners.hasOthersThan(7), owners.hasOthersThan(8)], [false, true]);
  owners.note(8);
  assert.equal(owners.hasOthersThan(7), true);
  clock.jump(2_000);
  owners.hasOthersThan(7);
  clock.jump(2_000);
  assert.equal(owners.hasOthersThan(7), false);
});
