import assert from 'node:assert/strict';
import { test } from 'node:test';
import { evictionOrder } from '../../../actors/host/eviction-order.ts';

const nowMs = 1_000_000;
const evictee = (name: string, owner: number, agoMs: number, cost = 1, weight = 1) => ({
  name,
  owner,
  weight,
  lastUsedMs: nowMs - agoMs,
  cost,
});

const order = (evictees: readonly ReturnType<typeof evictee>[]) =>
  [...evictionOrder(evictees, nowMs)].map(({ name }) => name);

test('what nobody has used for a minute goes first, the oldest first, whoever’s it is', () => {
  const evictees = [evictee('new', 1, 5), evictee('old', 2, 70_000), evictee('older', 3, 80_000)];

  assert.deepEqual(order(evictees), ['older', 'old', 'new']);
});

test('who has most puts away its own, and what a neighbour uses stays', () => {
  const attacker = Array.from({ length: 1_000 }, (_, i) => evictee(`attacker ${i}`, 1, 1_000 - i));
  const neighbours = [10, 11, 12].map((owner) => evictee(`neighbour ${owner}`, owner, 30_000));

  const put = order([...neighbours, ...attacker]).slice(0, 900);

  assert.ok(put.every((name) => name.startsWith('attacker')));
  assert.equal(put[0], 'attacker 0');
});

test('a weight lets an owner have so many times more', () => {
  const evictees = [1, 2, 3, 4].flatMap((i) => [
    evictee(`pro ${i}`, 1, i, 1, 8),
    evictee(`free ${i}`, 2, i, 1, 1),
  ]);

  assert.deepEqual(order(evictees).slice(0, 3), ['free 4', 'free 3', 'free 2']);
});

test('everything is there once', () => {
  const evictees = Array.from({ length: 200 }, (_, i) =>
    evictee(`n${i}`, i % 7, (i * 7_919) % 120_000, (i % 5) + 1),
  );

  assert.deepEqual(order(evictees).sort(), evictees.map(({ name }) => name).sort());
});
