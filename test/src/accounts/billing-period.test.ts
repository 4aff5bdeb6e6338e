import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { BillingStanding } from '../../../protocol/stored-tenant.ts';
import { billingPeriodOf, subscribedPeriod } from '../../../src/accounts/billing-period.ts';

const at = (text: string) => Date.parse(text);
const shown = ({ start, end, billed }: ReturnType<typeof subscribedPeriod>) => [start, end, billed];
const billing = (parts: Partial<BillingStanding>): BillingStanding => ({
  version: 1,
  status: 'active',
  cancelAtPeriodEnd: false,
  anchorAt: null,
  endedAt: null,
  ...parts,
});

describe('the period of a subscription', () => {
  it('is a month from its anchor, to the millisecond', () => {
    const anchor = at('2024-01-15');
    const months: readonly [string, string, string][] = [
      ['2024-01-15T00:00:00Z', '2024-01-15', '2024-02-15'],
      ['2024-02-14T23:59:59.999Z', '2024-01-15', '2024-02-15'],
      ['2024-02-15T00:00:00Z', '2024-02-15', '2024-03-15'],
      ['2025-01-14T12:00:00Z', '2024-12-15', '2025-01-15'],
    ];
    for (const [now, start, end] of months)
      assert.deepEqual(shown(subscribedPeriod(anchor, at(now))), [start, end, true], now);
  });

  it('of an anchor on the 31st begins on the last day of a shorter month, and goes back to the 31st', () => {
    const anchor = at('2023-12-31');
    const starts = ['2024-02-28', '2024-02-29', '2024-03-30', '2024-03-31', '2024-04-30', '2024-05-30'];
    assert.deepEqual(
      starts.map((day) => subscribedPeriod(anchor, at(`${day}T12:00:00Z`)).start),
      ['2024-01-31', '2024-02-29', '2024-02-29', '2024-03-31', '2024-04-30', '2024-04-30'],
    );
  });

  it('before the anchor is what is left until then, and costs nothing', () => {
    const period = subscribedPeriod(at('2024-01-16'), at('2024-01-15T14:35:00Z'));

    assert.deepEqual(shown(period), ['2024-01-15', '2024-01-16', false]);
  });
});

describe('the period of a tenant', () => {
  it('is the calendar month with the free plan', () => {
    const period = billingPeriodOf({ plan: 'free' }, at('2024-02-29T23:59:59Z'));

    assert.deepEqual([...shown(period), period.hours], ['2024-02-01', '2024-03-01', true, 29 * 24]);
  });

  it('begins anew when a subscription has ended, so that what it used does not count against the free plan', () => {
    const ended = {
      plan: 'free',
      billing: billing({ status: 'canceled', endedAt: at('2024-02-15') }),
    } as const;

    const period = billingPeriodOf(ended, at('2024-02-20'));
    assert.deepEqual([...shown(period), period.hours], ['2024-02-15', '2024-03-01', true, 29 * 24]);
    assert.deepEqual(shown(billingPeriodOf(ended, at('2024-03-01'))), ['2024-03-01', '2024-04-01', true]);
  });

  it('of one that ended within a day is that day, and then the rest of the month', () => {
    const ended = { plan: 'free', billing: billing({ endedAt: at('2024-02-15T10:00:00Z') }) } as const;

    assert.deepEqual(shown(billingPeriodOf(ended, at('2024-02-15T11:00:00Z'))), [
      '2024-02-15',
      '2024-03-01',
      true,
    ]);
    assert.deepEqual(shown(billingPeriodOf(ended, at('2024-02-16T11:00:00Z'))), [
      '2024-02-16',
      '2024-03-01',
      true,
    ]);
  });

  it('is that of the subscription while there is one', () => {
    const subscribed = { plan: 'pro', billing: billing({ anchorAt: at('2024-02-10') }) } as const;

    assert.deepEqual(shown(billingPeriodOf(subscribed, at('2024-02-20'))), [
      '2024-02-10',
      '2024-03-10',
      true,
    ]);
  });
});
