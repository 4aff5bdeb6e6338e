import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../../../src/base/clock.ts';
import { claim, claimAttemptsMax } from '../../../src/object-store/claim.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { type PutResult, StoreError, type StoreOutcome } from '../../../src/object-store/object-store.ts';

const hurried = { ...systemClock, sleep: async () => {} };
const mine = Buffer.from('mine');

/** Fails the first creates, having applied them or not. */
class FailingStore extends MemoryObjectStore {
  failures: { outcome: StoreOutcome; apply: boolean }[] = [];
  override async putIfAbsent(key: string, bytes: readonly Uint8Array[]): Promise<PutResult> {
    const failure = this.failures.shift();
    if (failure === undefined) return super.putIfAbsent(key, bytes);
    if (failure.apply) await super.putIfAbsent(key, bytes);
    throw new StoreError('create', key, failure.outcome, 'failed');
  }
}

test('of racing claims exactly one wins, and claiming the same again is success', async () => {
  const store = new MemoryObjectStore();
  const all = Array.from({ length: 20 }, (_, i) => Buffer.from(`claim ${i}`));

  const outcomes = await Promise.all(all.map((bytes) => claim(store, hurried, 'account/key/a', bytes)));
  const winner = all[outcomes.indexOf('won')];

  assert.equal(outcomes.filter((outcome) => outcome === 'won').length, 1);
  assert.ok(winner);
  assert.equal(await claim(store, hurried, 'account/key/a', winner), 'won');
});

test('a claim that was applied although its answer got lost is won', async () => {
  const store = new FailingStore();
  store.failures = [{ outcome: 'unknown', apply: true }];

  assert.equal(await claim(store, hurried, 'account/key/a', mine), 'won');
});

test('a claim is sent again until the store works', async () => {
  const store = new FailingStore();
  store.failures = Array.from({ length: claimAttemptsMax - 1 }, () => ({ outcome: 'unknown', apply: false }));

  assert.equal(await claim(store, hurried, 'account/key/a', mine), 'won');
});

test('a claim that may have been applied is never reported as not applied', async () => {
  const store = new FailingStore();
  store.failures = [
    { outcome: 'unknown', apply: false },
    ...Array.from({ length: claimAttemptsMax }, () => ({ outcome: 'not-applied', apply: false }) as const),
  ];

  await assert.rejects(
    claim(store, hurried, 'account/key/a', mine),
    (error: unknown) => error instanceof StoreError && error.outcome === 'unknown',
  );
});
