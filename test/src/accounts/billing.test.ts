import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  billOf,
  includedUnits,
  meteredParts,
  unitPriceCents,
  unitsOf,
} from '../../../src/accounts/billing.ts';
import { builtInPlans } from '../../../src/accounts/plans.ts';
import { noUsage, periodOf } from '../../../src/accounts/usage.ts';

const { free, pro } = builtInPlans;
const nothing = { base: 0, storage: 0, writes: 0, queries: 0, embedding: 0, reads: 0, usage: 0, total: 0 };
const month = periodOf(Date.parse('2024-02-10'));
/** The hours of a gigabyte that was stored for so many months. */
const stored = (gbMonths: number) => ({ gbHours: gbMonths * month.hours });

describe('the bill', () => {
  it('of a month without use is the price of the plan', () => {
    assert.deepEqual(billOf(pro, noUsage, month), { ...nothing, base: 20, total: 20 });
    assert.deepEqual(billOf(free, noUsage, month), nothing);
  });

  it('of the days before a first month is nothing', () => {
    const use = { ...noUsage, queries: 9e9, writeBytes: 9e12 };

    assert.deepEqual(billOf(pro, use, { ...month, billed: false }), nothing);
  });

  it('charges nothing for what the plan includes, to the last bit', () => {
    const all = { ...noUsage, queries: 1_000_000, writeBytes: 10e9, hostedTokens: 1_000_000, storeGets: 9e9 };

    assert.deepEqual(billOf(pro, { ...all, ...stored(10) }, month), { ...nothing, base: 20, total: 20 });
  });

  it('charges what is past it by its price', () => {
    const use = {
      ...noUsage,
      ...stored(14),
      queries: 3_500_000,
      writeBytes: 12.5e9,
      hostedTokens: 51_000_000,
      storeGets: 4e6,
    };
    const plan = { ...pro, included_store_gets: 1e6, per_million_store_gets: 0.4 };

    assert.deepEqual(billOf(plan, use, month), {
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
    const bill = billOf(pro, { ...noUsage, embedTokens: 1e12 }, month);

    assert.equal(bill.embedding, 0);
  });

  it('rounds each line to whole cents, half a cent up', () => {
    const lines: readonly [number, number][] = [
      [1_001_249, 0],
      [1_001_250, 0.01],
      [1_003_749, 0.01],
      [1_003_750, 0.02],
    ];
    for (const [queries, cost] of lines)
      assert.equal(billOf(pro, { ...noUsage, queries }, month).queries, cost, `${queries}`);
  });

  it('counts in whole units, rounded down', () => {
    const use = {
      ...noUsage,
      ...stored(0.0019),
      writeBytes: 1_999_999,
      queries: 3,
      hostedTokens: 5,
      storeGets: 7,
    };

    assert.deepEqual(unitsOf(use, month), { storage: 1, writes: 1, queries: 3, embedding: 5, reads: 7 });
  });

  it('counts a gigabyte that lay there all month as a thousand units, however long the month is', () => {
    for (const day of ['2023-02-10', '2024-02-10', '2024-04-10', '2024-05-10']) {
      const period = periodOf(Date.parse(day));
      const gbHours =
        Array.from({ length: period.hours }, () => 1).reduce((sum, one) => sum + one * 0.1, 0) * 10;
      assert.equal(unitsOf({ ...noUsage, gbHours }, period).storage, 1_000, day);
    }
  });

  it('has prices and allowances of units as the payment provider writes them', () => {
    const prices = meteredParts.map((part) => unitPriceCents(pro, part));
    assert.deepEqual(prices, ['0.025', '0.1', '0.0004', '0.000002', '0']);
    const included = meteredParts.map((part) => includedUnits(pro, part));
    assert.deepEqual(included, [10_000, 10_000, 1_000_000, 1_000_000, null]);
  });
});
