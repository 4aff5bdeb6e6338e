import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { KnownSubscription } from '../../../src/billing/billing-record.ts';
import {
  type ProviderSubscription,
  type SubscriptionState,
  subscriptionStates,
} from '../../../src/billing/payment-provider.ts';
import { changeFor, decidingSubscription, nextChangeAt } from '../../../src/billing/subscription-state.ts';

const dayMs = 86_400_000;
const dueAt = Date.parse('2026-03-01T00:00:00Z');
const known = (parts: Partial<KnownSubscription>): KnownSubscription => ({
  id: 'sub_1',
  state: 'active',
  anchorAt: Date.parse('2026-02-01T00:00:00Z'),
  cancelAtPeriodEnd: false,
  endedAt: null,
  unpaidSince: null,
  ...parts,
});

/** State, days since something is due (null: nothing is) → plan, tenant's status, subscription's status. */
const table: readonly [SubscriptionState, number | null, string, string, string][] = [
  ['incomplete', null, 'free', 'active', 'none'],
  ['incomplete_expired', null, 'free', 'active', 'none'],
  ['paused', null, 'free', 'active', 'none'],
  ['trialing', null, 'pro', 'active', 'active'],
  ['active', null, 'pro', 'active', 'active'],
  ['past_due', null, 'pro', 'past_due', 'past_due'],
  ['past_due', 0, 'pro', 'past_due', 'past_due'],
  ['past_due', 13.999_999, 'pro', 'past_due', 'past_due'],
  ['past_due', 14, 'pro', 'suspended', 'past_due'],
  ['past_due', 400, 'pro', 'suspended', 'past_due'],
  ['unpaid', 13, 'pro', 'past_due', 'past_due'],
  ['unpaid', 14, 'pro', 'suspended', 'past_due'],
  ['canceled', null, 'free', 'active', 'canceled'],
  ['canceled', 400, 'free', 'active', 'canceled'],
];

describe('what follows for a tenant from its subscription', () => {
  it('is one table, by state and by how long something is due', () => {
    for (const [state, days, plan, status, billing] of table) {
      const subscription = known({ state, unpaidSince: days === null ? null : dueAt });
      const change = changeFor(subscription, dueAt + (days ?? 0) * dayMs);
      assert.deepEqual(
        [change.plan, change.status, change.billing.status],
        [plan, status, billing],
        `${state} ${days}`,
      );
    }
    assert.deepEqual(new Set(table.map(([state]) => state)), new Set(subscriptionStates));
  });

  it('is nothing where there was no subscription', () => {
    assert.deepEqual(changeFor(null, 0), {
      plan: 'free',
      status: 'active',
      billing: { status: 'none', cancelAtPeriodEnd: false, anchorAt: null, endedAt: null },
    });
  });

  it('says that it ends with its period, until it has', () => {
    assert.equal(changeFor(known({ cancelAtPeriodEnd: true }), 0).billing.cancelAtPeriodEnd, true);
    const over = changeFor(known({ state: 'canceled', cancelAtPeriodEnd: true, endedAt: 5 }), 9);
    assert.deepEqual(
      [over.billing.cancelAtPeriodEnd, over.billing.endedAt, over.billing.anchorAt],
      [false, 5, null],
    );
  });

  it('changes by time only where something is due', () => {
    assert.equal(nextChangeAt(known({ state: 'past_due', unpaidSince: dueAt })), dueAt + 14 * dayMs);
    assert.equal(nextChangeAt(known({ unpaidSince: dueAt })), null);
    assert.equal(nextChangeAt(null), null);
  });
});

describe('the subscription that counts', () => {
  const all = (...states: SubscriptionState[]): ProviderSubscription[] =>
    states.map((state, index) => ({
      id: `sub_${index}`,
      state,
      tenantId: 7,
      createdAt: index,
      anchorAt: 0,
      cancelAtPeriodEnd: false,
      endedAt: null,
    }));

  it('is one that is paid, before one that is due, before one that is over; of equal ones the newest', () => {
    const chosen = (...states: SubscriptionState[]) => decidingSubscription(all(...states), 7)?.id;
    assert.equal(chosen('past_due', 'active', 'canceled'), 'sub_1');
    assert.equal(chosen('canceled', 'past_due'), 'sub_1');
    assert.equal(chosen('canceled', 'incomplete'), 'sub_0');
    assert.equal(chosen('canceled', 'canceled'), 'sub_1');
    assert.equal(chosen(), undefined);
  });

  it("is none that another tenant's checkout made, or nobody's", () => {
    const others = all('active', 'active').map((each, index) => ({
      ...each,
      tenantId: index === 0 ? 8 : null,
    }));
    assert.equal(decidingSubscription(others, 7), null);
  });
});
