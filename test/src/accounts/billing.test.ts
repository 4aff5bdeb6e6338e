import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { billOf } from '../../../src/accounts/billing.ts';
import { builtInPlans } from '../../../src/accounts/plans.ts';
import { noUsage } from '../../../src/accounts/usage.ts';

const { free, pro } = builtInPlans;
const nothing = { base: 0, storage: 0, writes: 0, queries: 0, embedding: 0, reads: 0, usage: 0, total: 0 };

describe('the bill', () => {
  it('of a month without use is the price of the plan', () => {
    assert.deepEqual(billOf(pro, noUsage, 0), { ...nothing, base: 20, total: 20 });
    assert.deepEqual(billOf(free, noUsage, 0), nothing);
  });

  it('charges nothing for what the plan includes, to the last bit', () => {
    const all = { ...noUsage, queries: 1_000_000, writeBytes: 10e9, hostedTokens: 1_000_000, storeGets: 9e9 };

    assert.deepEqual(billOf(pro, all, 10), { ...nothing, base: 20, total: 20 });
  });

  it('charges what is past it by its price', () => {
    const use = {
      ...noUsage,
      queries: 3_500_000,
      writeBytes: 12.5e9,
      hostedTokens: 51_000_000,
      storeGets: 4e6,
    };
    const plan = { ...pro, included_store_gets: 1e6, per_million_store_gets: 0.4 };

    assert.deepEqual(billOf(plan, use, 14), {
      base: 20,
      storage: 1,
      writes: 2.5,
      queries: 10,
      embedding: 1,
      reads: 1.2,
      usage: 15.7,
      total: 35.7,
    });
  });

  it('charges tokens of the hosted model alone', () => {
    const bill = billOf(pro, { ...noUsage, embedTokens: 1e12 }, 0);

    assert.equal(bill.embedding, 0);
  });

  it('has no fractions that its prices have not', () => {
    const { usage, total } = billOf(pro, { ...noUsage, queries: 1_000_001, writeBytes: 10.1e9 }, 10.3);

    assert.equal(usage, 0.175004);
    assert.equal(total, 20.175004);
  });
});
