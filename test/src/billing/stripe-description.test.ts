import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { billingServer, clockOf, StandInTenants, standInAt } from '../../support/billing-world.ts';
import { describedOperations, StripeDescription } from '../../support/stripe-description.ts';

const tenantId = 7;
const hourMs = 3_600_000;

describe("Stripe's own description", () => {
  const description = new StripeDescription();

  it('is kept by every request that we send, and by every answer of the stand-in', async () => {
    const stripe = standInAt(Date.parse('2026-01-20T09:30:00Z'));
    const tenants = new StandInTenants(clockOf(stripe));
    const store = new MemoryObjectStore();
    const { billing, rounds, deliver } = billingServer(stripe, tenants, store);
    const open = () => [...stripe.sessions.keys()].at(-1) ?? '';
    await billing.checkout(tenantId);
    await billing.checkout(tenantId);
    await billing.end(tenantId);
    await billing.checkout(tenantId);
    const subscription = stripe.complete(open());
    for (const event of stripe.events) await deliver(event);
    await billing.portal(tenantId);
    tenants.use('2026-01-21', { queries: 10, gbHours: 1_000 });
    stripe.pass(Date.parse('2026-01-21T05:30:00Z'));
    stripe.fault = (operation) => (operation === 'POST /v1/billing/meter_events' ? 'lost-answer' : undefined);
    await rounds.run();
    stripe.fault = () => undefined;
    stripe.pass(stripe.nowMs + 50 * hourMs);
    await rounds.run();
    stripe.pays = false;
    stripe.pass(Date.parse('2026-02-21T02:00:00Z'));
    for (const event of stripe.events) await deliver(event);
    await billing.end(tenantId);

    assert.equal(subscription.state, 'canceled');
    assert.deepEqual(
      [...new Set(stripe.exchanges.flatMap((exchange) => description.problemsOf(exchange)))],
      [],
    );
    const met = new Set(stripe.exchanges.map(({ operation }) => operation));
    assert.deepEqual(
      describedOperations.filter((operation) => !met.has(operation)),
      [],
    );
  });

  it('is broken by a field that is missing, unknown or of another type', () => {
    const problems = (request: Record<string, unknown>) =>
      description.problemsOf({
        operation: 'POST /v1/billing/meter_events',
        request,
        status: 400,
        answer: null,
      });
    const right = { event_name: 'a', payload: { value: '1' }, timestamp: '5', identifier: 'x' };

    assert.deepEqual(problems(right), []);
    assert.equal(problems({ ...right, event_name: undefined }).length, 1);
    assert.equal(problems({ ...right, units: '1' }).length, 1);
    assert.equal(problems({ ...right, timestamp: 'today' }).length, 1);
    assert.equal(problems({ ...right, payload: { value: { of: '1' } } }).length, 1);
  });
});
