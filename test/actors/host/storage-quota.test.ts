import assert from 'node:assert/strict';
import { test } from 'node:test';
import { StorageQuota } from '../../../actors/host/storage-quota.ts';
import { FakeClock } from '../../support/fake-clock.ts';

function quotaOf(stored: { bytes: number }) {
  const clock = new FakeClock();
  const directory = { storedBytes: async () => stored.bytes };
  const quota = new StorageQuota({ clock, directory } as unknown as ConstructorParameters<
    typeof StorageQuota
  >[0]);
  return { clock, quota };
}

test('what fits exactly is let in, and one byte more is not', async () => {
  const { quota } = quotaOf({ bytes: 60 });
  await assert.rejects(quota.admit(7, 100, 41), {
    code: 'quota_full',
    message: /quota of 100 bytes has no room left for the 41 bytes of this request; nothing was written/,
  });
  await quota.admit(7, 100, 40);
  await assert.rejects(quota.admit(7, 100, 0), { code: 'quota_full', message: /is used up/ });
  await quota.admit(7, null, 1_000);
});

test('who was refused has no room until something is let in again, also where some bytes are left', async () => {
  const stored = { bytes: 99 };
  const { clock, quota } = quotaOf(stored);
  await assert.rejects(quota.admit(7, 100, 2));
  assert.equal(quota.isFull(7, 100), true);

  clock.jump(2_000);
  await assert.rejects(quota.admit(7, 100, 2));
  assert.equal(quota.isFull(7, 100), true);
  stored.bytes = 50;
  clock.jump(2_000);
  await quota.admit(7, 100, 2);

  assert.equal(quota.isFull(7, 100), false);
});
