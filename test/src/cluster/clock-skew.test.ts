import assert from 'node:assert/strict';
import { test } from 'node:test';
import { limits } from '../../../protocol/limits.ts';
import { refuseSkewedClock } from '../../../src/cluster/clock-skew.ts';
import { CannotJoin } from '../../../src/cluster/join.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { seededBytes } from '../../support/in-process.ts';

/** A server's clock that is so much ahead of its store's. */
function skewed(aheadMs: number) {
  const ofStore = new FakeClock();
  const store = new MemoryObjectStore(ofStore);
  const clock = {
    now: () => ofStore.now() + aheadMs,
    monotonic: () => ofStore.monotonic(),
    sleep: (ms: number) => ofStore.sleep(ms),
    after: (ms: number, call: () => void) => ofStore.after(ms, call),
    yieldTurn: () => ofStore.yieldTurn(),
    hasBurst: () => ofStore.hasBurst(),
  };
  return { store, asked: { store, clock, random: seededBytes(1) } };
}

test('a clock that differs by as much as it may is let in, and leaves nothing in the store', async () => {
  for (const aheadMs of [0, limits.clockSkewMsMax, -limits.clockSkewMsMax]) {
    const { store, asked } = skewed(aheadMs);

    await refuseSkewedClock(asked);

    assert.deepEqual((await store.list('', { limit: 10 })).objects, []);
  }
});

test('one that differs by more is refused with a sentence that says by how much', async () => {
  for (const [aheadMs, said] of [
    [31_000, /31 s ahead of the object store's/],
    [-3_600_000, /3600 s behind the object store's/],
  ] as const) {
    const { store, asked } = skewed(aheadMs);

    await assert.rejects(
      refuseSkewedClock(asked),
      (error) => error instanceof CannotJoin && said.test(error.message),
    );
    assert.deepEqual((await store.list('', { limit: 10 })).objects, []);
  }
});
