import assert from 'node:assert/strict';
import { test } from 'node:test';
import { WritePace } from '../../../actors/namespace/write-pace.ts';

/** A pace that knows of flushes of 10 bytes a millisecond. */
function paceOf10(): WritePace {
  const pace = new WritePace();
  pace.noteFlush(10_000, 1_000);
  return pace;
}

test('nobody waits before the first flush, nor while no memtable waits for one', () => {
  assert.equal(new WritePace().delayMs(1e9, 3, 0), 0);
  assert.equal(paceOf10().delayMs(1e9, 0, 0), 0);
});

test('answers come as fast as flushes get done, and slower the more memtables wait', () => {
  for (const [waiting, share] of [
    [1, 1.2],
    [2, 1],
    [3, 0.8],
    [4, 0.8],
  ] as const) {
    const pace = paceOf10();
    const delays = [1, 2, 3].map(() => pace.delayMs(1_000, waiting, 500));
    assert.deepEqual(
      delays.map(Math.round),
      [1, 2, 3].map((n) => Math.round((n * 100) / share)),
    );
  }
});

test('who writes little never waits, and a pause is not made good', () => {
  const pace = paceOf10();
  for (let now = 0; now < 10_000; now += 100) assert.equal(pace.delayMs(10, 2, now), 0);
  assert.equal(Math.round(pace.delayMs(1_000, 2, 20_000)), 100);
});

test('no answer waits longer than a second', () => {
  const pace = paceOf10();
  for (let n = 0; n < 100; n++) assert.ok(pace.delayMs(1e6, 2, 0) <= 1_000);
  assert.ok(pace.delayMs(1_000, 2, 1_000) <= 200);
});

test('the pace is that of the last flushes', () => {
  const pace = paceOf10();
  for (let n = 0; n < 20; n++) pace.noteFlush(1_000, 1_000);
  assert.equal(Math.round(pace.delayMs(100, 2, 0)), 100);
  pace.noteFlush(0, 10);
  pace.noteFlush(10, 0);
  assert.equal(Math.round(pace.delayMs(100, 2, 5_000)), 100);
});
