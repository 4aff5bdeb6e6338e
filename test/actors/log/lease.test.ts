import assert from 'node:assert/strict';
import { test } from 'node:test';
import { keepLease } from '../../../actors/log/lease.ts';
import { limits } from '../../../protocol/limits.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { paths } from '../../../src/object-store/paths.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { quiet } from '../../support/in-process.ts';

test('a lease beats, and says when its process stood still', async () => {
  const clock = new FakeClock();
  const store = new MemoryObjectStore();
  let late = 0;
  const stop = keepLease({ store, clock, logger: quiet }, 'l', {
    everyMs: limits.leaseRenewMs,
    onLate: () => late++,
  });
  const etag = async () => (await store.get(paths.lease('l')))?.etag;

  await clock.advance(1);
  const first = await etag();
  await clock.advance(limits.leaseRenewMs);
  assert.notEqual(await etag(), first);
  assert.equal(late, 0);

  // As a machine that sleeps: its other clock stands still.
  clock.jump(60_000);
  await clock.advance(limits.leaseRenewMs);
  assert.equal(late, 1);
  await clock.advance(limits.leaseRenewMs);
  assert.equal(late, 1);
  stop();
});
