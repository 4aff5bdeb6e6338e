import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { ApiError } from '../../../protocol/errors.ts';
import { readBilling } from '../../../src/billing/billing-record.ts';
import { checkPrices, PriceError } from '../../../src/billing/check-prices.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import {
  billingServer,
  clockOf,
  plan,
  priceSettings,
  providerOver,
  StandInTenants,
  standInAt,
} from '../../support/billing-world.ts';
import type { StripeStandIn } from '../../support/stripe-stand-in.ts';

const tenantId = 7;
const start = Date.parse('2026-01-20T09:30:00Z');
let stripe: StripeStandIn;
let tenants: StandInTenants;
let store: MemoryObjectStore;
let seed = 0;
beforeEach(() => {
  stripe = standInAt(start);
  tenants = new StandInTenants(clockOf(stripe));
  store = new MemoryObjectStore();
});
const server = () => billingServer(stripe, tenants, store, ++seed).billing;
const refusedWith = (code: string) => (error: unknown) => error instanceof ApiError && error.code === code;
const open = () => [...stripe.sessions.values()].filter(({ status }) => status === 'open');

describe('a checkout', () => {
  it('asks for the plan and all metered prices, from the next midnight on, without a part of a month', async () => {
    const url = await server().checkout(tenantId);

    assert.equal(url, open()[0]?.url);
    const { request } =
      stripe.exchanges.find(({ operation }) => operation === 'POST /v1/checkout/sessions') ??
      assert.fail('not asked');
    const { line_items, subscription_data, expires_at, mode } = request as Record<string, never>;
    const parts = ['storage', 'writes', 'queries', 'embedding', 'reads'].map((part) => ({
      price: `price_${part}`,
    }));
    assert.deepEqual(line_items, [{ price: 'price_pro', quantity: '1' }, ...parts]);
    assert.deepEqual(subscription_data, {
      metadata: { tenant_id: '7' },
      billing_cycle_anchor: String(Date.parse('2026-01-21T00:00:00Z') / 1_000),
      proration_behavior: 'none',
    });
    assert.equal(Number(expires_at), Date.parse('2026-01-21T00:00:00Z') / 1_000);
    assert.equal(mode, 'subscription');
  });

  it('in the last half hour of a day begins with the midnight after the next', async () => {
    stripe.pass(Date.parse('2026-01-20T23:40:00Z'));
    await server().checkout(tenantId);

    const { checkout } = await readBilling(store, tenantId);
    assert.equal(checkout?.anchorAt, Date.parse('2026-01-22T00:00:00Z'));
    assert.ok(Number(checkout?.expiresAt) <= stripe.nowMs + 86_400_000);
  });

  it('asked for many times at once, on several servers, is one page of one customer', async () => {
    const servers = Array.from({ length: 4 }, server);
    const urls = await Promise.all(Array.from({ length: 12 }, (_, n) => servers[n % 4]?.checkout(tenantId)));

    assert.equal(new Set(urls).size, 1);
    assert.deepEqual([open().length, stripe.customers.size], [1, 1]);
  });

  it('asked for again is the open page, and another one once that has ended', async () => {
    const first = await server().checkout(tenantId);
    assert.equal(await server().checkout(tenantId), first);

    stripe.pass(start + 15 * 3_600_000);
    const second = await server().checkout(tenantId);
    assert.notEqual(second, first);
    assert.equal(open().length, 1);
  });

  it('of who has subscribed is refused with 409, also before any event has come', async () => {
    await server().checkout(tenantId);
    stripe.complete(String(open()[0]?.id));

    await assert.rejects(server().checkout(tenantId), refusedWith('conflict'));
    assert.equal(tenants.change?.plan, 'pro');
    assert.equal(open().length, 0);
  });

  it('works again for who had subscribed before', async () => {
    await server().checkout(tenantId);
    const subscription = stripe.complete(String(open()[0]?.id));
    stripe.pass(start + 40 * 86_400_000);
    stripe.end(subscription, Math.floor(stripe.nowMs / 1_000));

    await server().checkout(tenantId);
    stripe.complete(String(open()[0]?.id));
    await billingServer(stripe, tenants, store, 99).deliver(stripe.events.at(-1) ?? assert.fail('no event'));
    assert.deepEqual([tenants.change?.plan, tenants.change?.billing.status], ['pro', 'active']);
    assert.equal(stripe.customers.size, 1);
  });

  it('that fails is answered 502 and leaves nothing half-done: the next try opens one page', async () => {
    const steps = [
      'POST /v1/customers',
      'GET /v1/subscriptions',
      'POST /v1/checkout/sessions',
      'GET /v1/prices/{id}',
    ];
    for (const step of steps)
      for (const fault of [500, 429, 402, 'garbage', 'no-answer', 'lost-answer'] as const) {
        stripe = standInAt(start);
        tenants = new StandInTenants(clockOf(stripe));
        store = new MemoryObjectStore();
        stripe.fault = (operation) => (operation === step ? fault : undefined);
        await assert.rejects(server().checkout(tenantId), refusedWith('billing_failed'), `${step} ${fault}`);
        stripe.fault = () => undefined;
        const url = await server().checkout(tenantId);
        assert.deepEqual(
          [open().length, open()[0]?.url, stripe.customers.size],
          [1, url, 1],
          `${step} ${fault}`,
        );
        assert.deepEqual(tenants.told, []);
      }
  });
});

describe('the portal', () => {
  it('is refused with 409 to who was never a customer, and opens for who was', async () => {
    await assert.rejects(server().portal(tenantId), refusedWith('conflict'));

    await server().checkout(tenantId);
    const { customerId } = await readBilling(store, tenantId);
    assert.equal(await server().portal(tenantId), `https://checkout.stripe.example/portal/${customerId}`);

    stripe.fault = () => 500;
    await assert.rejects(server().portal(tenantId), refusedWith('billing_failed'));
  });
});

describe('the end of a tenant', () => {
  it('closes its open page and its subscription, or is refused with 502 and changes nothing', async () => {
    await server().checkout(tenantId);
    const subscription = stripe.complete(String(open()[0]?.id));
    await billingServer(stripe, tenants, store, 98).deliver(stripe.events[0] ?? assert.fail('no event'));
    stripe.fault = () => 'no-answer';
    await assert.rejects(server().end(tenantId), refusedWith('billing_failed'));
    assert.equal(subscription.state, 'active');

    stripe.fault = () => undefined;
    await server().end(tenantId);
    await server().end(tenantId);
    assert.equal(subscription.state, 'canceled');
  });

  it('closes a page that nobody has paid on', async () => {
    await server().checkout(tenantId);
    await server().end(tenantId);
    assert.equal(open().length, 0);
  });

  it('of who never subscribed asks nobody', async () => {
    await server().end(tenantId);
    assert.equal(stripe.exchanges.length, 0);
  });
});

describe('prices at the provider', () => {
  it('are right where they are what the plan says', async () => {
    const meters = await checkPrices(providerOver(stripe), priceSettings, plan);
    assert.deepEqual([...meters.keys()], ['storage', 'writes', 'queries', 'embedding', 'reads']);
  });

  it('that differ from the plan stop with a sentence that says what they must be', async () => {
    const wrong: readonly [Parameters<StripeStandIn['addPrice']>[0], RegExp][] = [
      [{ id: 'price_pro', cents: '1999' }, /STRIPE_PRICE_ID must be 2000 cents a month/],
      [
        { id: 'price_pro', cents: '2000', meter: 'mtr_queries_used' },
        /STRIPE_PRICE_ID must be a price of no metered usage/,
      ],
      [
        { id: 'price_queries', cents: '0.0005', meter: 'mtr_queries_used', freeUnits: 1_000_000 },
        /"queries": price_queries must be graduated: 1000000 units free, then 0.0004 cents each/,
      ],
      [
        { id: 'price_queries', cents: '0.0004', meter: 'mtr_queries_used', freeUnits: 999_999 },
        /"queries".*graduated/,
      ],
      [{ id: 'price_queries', cents: '0.0004', meter: 'mtr_queries_used' }, /"queries".*graduated/],
      [{ id: 'price_queries', cents: '0.0004' }, /"queries".*metered usage, with a meter/],
      [
        { id: 'price_queries', cents: '0.0004', meter: 'mtr_writes_used', freeUnits: 1_000_000 },
        /has a meter of "writes_used" events, and not of "queries_used"/,
      ],
    ];
    for (const [price, sentence] of wrong) {
      const other = standInAt(start);
      other.addPrice(price);
      const failure = await checkPrices(providerOver(other), priceSettings, plan).then(
        () => assert.fail('passed'),
        (error: unknown) => error,
      );
      assert.ok(failure instanceof PriceError);
      assert.match(failure.message, sentence);
    }
    const some = { ...priceSettings, usagePrices: {} };
    await assert.rejects(
      checkPrices(providerOver(stripe), some, plan),
      /STRIPE_USAGE_PRICES must have "storage"/,
    );
  });
});
