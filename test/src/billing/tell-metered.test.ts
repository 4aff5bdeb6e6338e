import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import type { UsageCounters } from '../../../protocol/stored-tenant.ts';
import { billOf, meteredParts } from '../../../src/accounts/billing.ts';
import { subscribedPeriod } from '../../../src/accounts/billing-period.ts';
import { dayOf, usageOf } from '../../../src/accounts/usage.ts';
import { readBilling, updateBilling } from '../../../src/billing/billing-record.ts';
import { tellMetered } from '../../../src/billing/tell-metered.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { billingServer, clockOf, plan, StandInTenants, standInAt } from '../../support/billing-world.ts';
import type { StripeStandIn } from '../../support/stripe-stand-in.ts';
import type { StoredSubscription } from '../../support/stripe-wire.ts';

const tenantId = 7;
const hourMs = 3_600_000;
const start = Date.parse('2026-01-20T09:30:00Z');
const anchor = Date.parse('2026-01-21T00:00:00Z');

let stripe: StripeStandIn;
let tenants: StandInTenants;
let store: MemoryObjectStore;
let seed = 0;
const server = () => billingServer(stripe, tenants, store, ++seed);

beforeEach(async () => {
  await begin();
});

async function begin(): Promise<StoredSubscription> {
  stripe = standInAt(start);
  tenants = new StandInTenants(clockOf(stripe));
  store = new MemoryObjectStore();
  await server().billing.checkout(tenantId);
  const subscription = stripe.complete([...stripe.sessions.keys()][0] ?? '');
  await server().deliver(stripe.events[0] ?? assert.fail('no event'));
  return subscription;
}

/** Uses something of everything in the running hour, with fractions of units. */
function use(at: number, share = 1): void {
  const of = (amount: number) => Math.round(amount * share);
  tenants.use(dayOf(at), {
    queries: of(31_337),
    writeBytes: of(123_456_789),
    hostedTokens: of(1_234_567),
    storeGets: of(54_321),
    gbHours: 40.123_456_789 * share,
  });
}

/** Hours go by, each with its use, and a round at each half of them; the server is another one every half day. */
async function live(untilMs: number, oneRound: () => Promise<void> = roundsOfServers(24)): Promise<void> {
  while (stripe.nowMs < untilMs) {
    const to = Math.min(untilMs, stripe.nowMs + hourMs / 2);
    use(stripe.nowMs, 0.5);
    stripe.pass(to);
    await oneRound();
  }
}

/** Rounds of servers that each do so many, and know nothing of those before. */
function roundsOfServers(each: number): () => Promise<void> {
  let done = 0;
  let running = server();
  return () => {
    if (done++ % each === 0) running = server();
    return running.rounds.run();
  };
}

const billedDays = (fromMs: number): ReadonlyMap<string, UsageCounters> =>
  new Map([...tenants.days].filter(([day]) => day >= dayOf(fromMs)));

function ourBill(atMs: number) {
  const period = subscribedPeriod(anchor, atMs);
  const days = new Map([...billedDays(anchor)].map(([day, usage]) => [day, { ...usage, storedBytes: 0 }]));
  return billOf(plan, usageOf(days, period), period);
}

/** One event at most of an hour and part, and together what the period's units are. */
function assertOnce(periodAt: number): void {
  const keys = stripe.meterEvents.map(
    ({ eventName, timestamp }) => `${eventName} ${Math.floor((timestamp * 1_000) / hourMs)}`,
  );
  assert.equal(new Set(keys).size, keys.length, 'an hour and part has several events');
  const ids = stripe.meterEvents.map(({ identifier }) => identifier);
  assert.equal(new Set(ids).size, ids.length, 'an identifier was taken twice');
  assert.ok(stripe.meterEvents.every(({ timestamp }) => timestamp * 1_000 >= periodAt));
}

describe('usage that is told', () => {
  it('makes an invoice that is our bill to the cent, month after month, boundaries included', async () => {
    const totals: number[] = [];
    for (let month = 0; month < 3; month++) {
      const { endMs } = subscribedPeriod(anchor, stripe.nowMs < anchor ? anchor : stripe.nowMs);
      await live(endMs);
      const bill = ourBill(endMs - 1);
      // The last hour is told while the invoice is a draft; what is used meanwhile is of the next one.
      await live(endMs + 2 * hourMs);
      const invoice =
        [...stripe.invoices.values()].find(({ to }) => to === endMs / 1_000) ?? assert.fail('no invoice');
      assert.equal(invoice.status, 'paid');
      for (const part of meteredParts)
        assert.equal(invoice.lines[`price_${part}`], Math.round(bill[part] * 100), `${part}, month ${month}`);
      assert.equal(invoice.baseCents, Math.round(bill.base * 100));
      assert.ok(
        meteredParts.every((part) => bill[part] > 0),
        JSON.stringify(bill),
      );
      totals.push(bill.total);
    }
    assertOnce(anchor);
    assert.ok((totals[0] ?? 0) !== (totals[1] ?? 0), 'months of 31 and 28 days differ');
    // The hours of the day before the first month cost nothing.
    const first =
      [...stripe.invoices.values()].find(({ to }) => to === anchor / 1_000) ?? assert.fail('no invoice');
    assert.equal(
      Object.values(first.lines).reduce((sum, line) => sum + line, 0),
      0,
    );
  });

  it('has one event for each hour and part', async () => {
    await live(anchor + 30 * hourMs);

    assertOnce(anchor);
    for (const part of meteredParts) {
      const hours = stripe.meterEvents.filter(({ eventName }) => eventName === `${part}_used`);
      assert.equal(hours.length, 29, part);
    }
  });

  it('is told of each hour once after the provider was away for two days, and is complete', async () => {
    await live(anchor + 5 * hourMs);
    for (const fault of ['no-answer', 'lost-answer', 500, 'garbage', 429] as const) {
      stripe.fault = (operation) => (operation === 'POST /v1/billing/meter_events' ? fault : undefined);
      await live(stripe.nowMs + 50 * hourMs);
    }
    stripe.fault = () => undefined;
    await live(stripe.nowMs + 2 * hourMs);

    assertOnce(anchor);
    const until = stripe.nowMs - hourMs / 2;
    const hours = Math.floor((until - anchor) / hourMs);
    for (const part of meteredParts)
      assert.equal(
        stripe.meterEvents.filter(({ eventName }) => eventName === `${part}_used`).length,
        hours,
        part,
      );
    assert.deepEqual((await readBilling(store, tenantId)).told?.hours, []);
  });

  it('is told once whatever crashes: each request may be the last, with its answer lost or not sent, and the next try comes at once, in an hour or in two days', async () => {
    let crashes = 0;
    for (const laterMs of [0, hourMs, 50 * hourMs]) {
      for (const fault of ['no-answer', 'lost-answer'] as const) {
        for (let step = 0; ; step++) {
          await begin();
          await live(anchor + 2 * hourMs);
          let left = step;
          let hasCrashed = false;
          stripe.fault = () => {
            if (left-- > 0) return undefined;
            hasCrashed = true;
            return fault;
          };
          await live(stripe.nowMs + hourMs);
          if (!hasCrashed) break;
          crashes++;
          stripe.fault = () => undefined;
          stripe.pass(stripe.nowMs + laterMs);
          await live(stripe.nowMs + hourMs);
          assertOnce(anchor);
          const told = (await readBilling(store, tenantId)).told ?? assert.fail('nothing was planned');
          assert.deepEqual(told.hours, [], `step ${step}, ${fault}`);
          for (const part of meteredParts) {
            const sum = stripe.meterEvents
              .filter(({ eventName }) => eventName === `${part}_used`)
              .reduce((all, { value }) => all + value, 0);
            assert.equal(sum, told.planned[part], `${part}, step ${step}, ${fault}, ${laterMs}`);
          }
        }
      }
    }
    assert.ok(crashes >= 20, `${crashes} crashes`);
  });

  it('is told once where the store is lost between sending and noting it, also after the provider has forgotten identifiers', async () => {
    for (const laterMs of [hourMs, 19 * hourMs, 21 * hourMs, 50 * hourMs]) {
      await begin();
      await live(anchor + 2 * hourMs);
      // The state just before the hour is noted as told: it was sent, and nobody here knows.
      const { components } = server();
      const sent: Awaited<ReturnType<typeof readBilling>>[] = [];
      stripe.fault = () => undefined;
      use(stripe.nowMs);
      stripe.pass(stripe.nowMs + hourMs);
      const provider = { ...components.provider };
      const tellMeter = provider.tellMeter;
      provider.tellMeter = async (event) => {
        sent.push(await readBilling(store, tenantId));
        return tellMeter(event);
      };
      const meters = () => components.prices.meters();
      await tellMetered({ ...components, provider, meters }, tenantId);
      const [before = assert.fail('nothing was sent')] = sent;
      const count = stripe.meterEvents.length;
      await updateBilling(components, tenantId, () => before);

      stripe.pass(stripe.nowMs + laterMs);
      await tellMetered({ ...components, meters }, tenantId);

      assertOnce(anchor);
      const ofThatHour = stripe.meterEvents
        .slice(0, count)
        .filter(({ timestamp }) => timestamp * 1_000 >= (before.told?.hours[0]?.hourAt ?? 0));
      assert.ok(ofThatHour.length > 0);
      assert.deepEqual((await readBilling(store, tenantId)).told?.hours, []);
    }
  });

  it('is told once where two servers are at it at the same time', async () => {
    await live(anchor + 10 * hourMs, async () => {
      const [one, two] = [server(), server()];
      await Promise.all([one.rounds.run(), two.rounds.run(), one.rounds.run()]);
    });

    assertOnce(anchor);
    assert.equal(stripe.meterEvents.filter(({ eventName }) => eventName === 'queries_used').length, 9);
  });

  it('is told when no server ran for two days, each day on its own', async () => {
    await live(anchor + 6 * hourMs);
    const count = stripe.meterEvents.filter(({ eventName }) => eventName === 'storage_used').length;
    for (const day of ['2026-01-21', '2026-01-22', '2026-01-23']) tenants.use(day, { gbHours: 100 });
    stripe.pass(anchor + 56 * hourMs);
    await server().rounds.run();

    const days = stripe.meterEvents
      .filter(({ eventName }) => eventName === 'storage_used')
      .slice(count)
      .map(({ timestamp }) => new Date(timestamp * 1_000).toISOString());
    assert.deepEqual(days, [
      '2026-01-21T23:59:59.000Z',
      '2026-01-22T23:59:59.000Z',
      '2026-01-23T06:59:59.000Z',
    ]);
    assertOnce(anchor);
  });

  it('of a tenant that is deleted goes up to that moment, and its subscription ends', async () => {
    const subscription = [...stripe.subscriptions.values()][0] ?? assert.fail('no subscription');
    await live(anchor + 10.5 * hourMs);
    await server().billing.end(tenantId);

    assert.equal(subscription.state, 'canceled');
    const sum = stripe.meterEvents
      .filter(({ eventName }) => eventName === 'queries_used')
      .reduce((all, { value }) => all + value, 0);
    assert.equal(
      sum,
      [...billedDays(anchor).values()].reduce((all, { queries }) => all + queries, 0),
    );
    assertOnce(anchor);
  });

  it('of nobody who pays is not told', async () => {
    stripe = standInAt(start);
    tenants = new StandInTenants(clockOf(stripe));
    store = new MemoryObjectStore();
    await server().billing.checkout(tenantId);
    await live(start + 60 * hourMs);

    assert.deepEqual(stripe.meterEvents, []);
  });
});
