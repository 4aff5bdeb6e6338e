import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SlotBytes } from '../../../actors/log/slot-bytes.ts';

test('the newest slots are those that together hold no more than was asked', () => {
  const slots = new SlotBytes();
  assert.equal(slots.firstOfNewest(0), 0);
  for (const [slot, bytes] of [
    [1, 10],
    [2, 5],
    [2, 5],
    [3, 10],
    [4, 10],
  ] as const)
    slots.add(slot, bytes);

  assert.equal(slots.total, 40);
  assert.equal(slots.firstOfNewest(100), 0);
  assert.equal(slots.firstOfNewest(40), 0);
  assert.equal(slots.firstOfNewest(31), 2);
  assert.equal(slots.firstOfNewest(30), 2);
  assert.equal(slots.firstOfNewest(20), 3);
  assert.equal(slots.firstOfNewest(19), 4, 'slot 2 is whole or not at all');
  assert.equal(slots.firstOfNewest(0), 5);

  slots.forget(3);
  assert.equal(slots.firstOfNewest(19), 0);
  assert.equal(slots.firstOfNewest(0), 5);
});
