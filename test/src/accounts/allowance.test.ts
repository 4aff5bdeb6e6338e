import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Used } from '../../../protocol/messages.ts';
import {
  hasAllowances,
  type Need,
  nothingUsed,
  usedUp,
  usedUpSentence,
} from '../../../src/accounts/allowance.ts';
import { builtInPlans } from '../../../src/accounts/plans.ts';

const { pro } = builtInPlans;
/** With a quota that does not bound its GB-months by itself. */
const free = { ...builtInPlans.free, storage_quota_gb: 2 };
const verified = { ownerVerified: true };
const unverified = { ownerVerified: false };
const needs: readonly Need[] = ['query', 'write', 'delete', 'hosted-tokens'];

/** Each allowance of the free plan at its end, and what it refuses. */
const ends: readonly (readonly [Partial<Used>, readonly Need[]])[] = [
  [{ queries: 100_000 }, ['query']],
  [{ cpuMs: 3_600_000 }, ['query']],
  [{ storeGets: 1_000_000 }, ['query']],
  [{ outBytes: 10e9 }, ['query']],
  [{ writes: 100_000 }, ['write', 'delete']],
  [{ writeBytes: 1e9 }, ['write']],
  [{ gbMonths: 1 }, ['write']],
  [{ hostedTokens: 1_000_000 }, ['hosted-tokens']],
];

describe('an allowance', () => {
  it('ends exactly at its number, and refuses what needs it and nothing else', () => {
    for (const [used, refused] of ends) {
      const end = { ...nothingUsed, ...used };
      const [name, amount] = Object.entries(used)[0] ?? ['', 0];
      const before = { ...nothingUsed, [name]: amount * 0.999_999 };
      for (const need of needs) {
        assert.equal(usedUp(free, verified, end, need) !== null, refused.includes(need), `${name} ${need}`);
        assert.equal(usedUp(free, verified, before, need), null, `${name} ${need}`);
      }
    }
  });

  it('of GB-months is left to the quota where that bounds them: who had more before writes again once enough is deleted', () => {
    const much = { ...nothingUsed, gbMonths: 50 };

    assert.equal(usedUp(builtInPlans.free, verified, much, 'write'), null);
    assert.notEqual(usedUp(free, verified, much, 'write'), null);
  });

  it('of an unverified owner is a hundredth, and says that verifying helps', () => {
    for (const [used, [need]] of ends) {
      const [name, amount] = Object.entries(used)[0] ?? ['', 0];
      const hundredth = { ...nothingUsed, [name]: amount / 100 };
      const up = usedUp(free, unverified, hundredth, need ?? 'query');
      assert.equal(up?.unverified, true, name);
      assert.match(usedUpSentence(up ?? assert.fail(), free, '2024-02-01'), /1% of the free plan.*verify/);
      const whole = usedUp(free, unverified, { ...nothingUsed, ...used }, need ?? 'query');
      assert.equal(whole?.unverified, false, name);
    }
  });

  it('of an unverified owner has no fractions that its share has not, and only a free plan is cut', () => {
    const plan = { ...free, unverified_share: 0.07, included_writes: 100 };
    const up =
      usedUp(plan, unverified, { ...nothingUsed, writes: 7 }, 'write') ?? assert.fail('is not used up');

    assert.match(usedUpSentence(up, plan, ''), /has 7% of the free plan, and its 7 write requests/);
    const paid = { ...pro, hard_limit: true, included_writes: 100, unverified_share: 0.07 };
    assert.equal(usedUp(paid, unverified, { ...nothingUsed, writes: 99 }, 'write'), null);
  });

  it('of a plan that bills is none', () => {
    assert.equal(usedUp(pro, verified, { ...nothingUsed, queries: 1e12 }, 'query'), null);
    assert.equal(hasAllowances(pro), false);
    assert.equal(hasAllowances(free), true);
  });

  it('is told by its number, what it is of and what to do', () => {
    const up = usedUp(free, verified, { ...nothingUsed, queries: 100_000 }, 'query') ?? assert.fail();

    assert.equal(
      usedUpSentence(up, free, '2024-02-01'),
      "the free plan's 100,000 queries of this month are used up: wait until 2024-02-01 or upgrade to pro",
    );
  });
});
