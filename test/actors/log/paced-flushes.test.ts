import assert from 'node:assert/strict';
import { test } from 'node:test';
import { flushPace, PacedFlushes } from '../../../actors/log/paced-flushes.ts';
import type { LogTarget } from '../../../actors/log/unflushed.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const target = (number: number): LogTarget => ({
  tenantId: 1,
  namespace: `n${number}`,
  namespaceId: String(number),
});
const targets = (count: number) => Array.from({ length: count }, (_, number) => target(number));

function begin() {
  const clock = new FakeClock();
  const asked: number[] = [];
  const flushes = new PacedFlushes(clock, ({ namespaceId }) => asked.push(Number(namespaceId)));
  return { clock, asked, flushes };
}

test('few are asked for at once, and a thousand a few at a time, the oldest first, within a round', async () => {
  const { clock, asked, flushes } = begin();
  flushes.replace(targets(3));
  assert.deepEqual(asked.splice(0), [0, 1, 2]);

  flushes.replace(targets(1_000));
  assert.equal(asked.length, 10);
  await clock.advance(flushPace.stepMs);
  assert.equal(asked.length, 20);
  await clock.advance(flushPace.stepMs * flushPace.stepsMax);
  assert.deepEqual(
    asked,
    targets(1_000).map((_, number) => number),
  );
  await clock.advance(60_000);
  assert.equal(asked.length, 1_000);
});

test('those that were not asked for yet come before those that were, and who is flushed is not asked for', async () => {
  const { clock, asked, flushes } = begin();
  flushes.replace(targets(400));
  await clock.advance(flushPace.stepMs * 9);
  assert.deepEqual(
    asked.splice(0),
    targets(40).map((_, number) => number),
  );
  // The first twenty were flushed, and of those that wait another hundred.
  flushes.replace(targets(400).slice(20, 300));
  await clock.advance(flushPace.stepMs * flushPace.stepsMax);
  const rest = Array.from({ length: 260 }, (_, number) => 40 + number);
  assert.deepEqual(asked, [...rest, ...Array.from({ length: 20 }, (_, number) => 20 + number)]);
});

test('nobody is asked for after a stop', async () => {
  const { clock, asked, flushes } = begin();
  flushes.replace(targets(100));
  const before = asked.length;
  flushes.stop();
  await clock.advance(60_000);
  assert.equal(asked.length, before);
});
