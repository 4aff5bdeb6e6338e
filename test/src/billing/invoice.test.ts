/**
 * Bills of a whole tenant: its real actor and namespaces, over months in which the process is killed again and again, beside the
 * invoices that the stand-in for Stripe makes of what it was told.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Usage } from '../../../protocol/account.ts';
import { internalCalls } from '../../../protocol/internal-calls.ts';
import type { MeteredUsage, TenantStanding } from '../../../protocol/messages.ts';
import { meteredParts } from '../../../src/accounts/billing.ts';
import { subscribedPeriod } from '../../../src/accounts/billing-period.ts';
import { builtInPlans, type Plan } from '../../../src/accounts/plans.ts';
import { dayOf } from '../../../src/accounts/usage.ts';
import type { BillingTenants } from '../../../src/billing/subscriptions.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { billingServer, standInAt } from '../../support/billing-world.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { InProcess, seededBytes, tenantId } from '../../support/in-process.ts';

const hourMs = 3_600_000;
const start = Date.parse('2026-01-20T09:30:00Z');
const anchor = Date.parse('2026-01-21T00:00:00Z');
/** Bytes that take their room in the store: nothing packs them. */
const chance = seededBytes(1_000);
const textOf = () => Buffer.from(chance.bytes(80_000)).toString('base64');

/** What little a test can use costs something, and all ends in fractions of cents. */
const pro: Plan = {
  ...builtInPlans.pro,
  included_gb_months: 0,
  included_write_gb: 0.001,
  included_queries: 1_000,
  included_embed_tokens: 5_000,
  included_store_gets: 0,
  per_gb_month: 2_345.67,
  per_gb_written: 1_357.9,
  per_million_queries: 777.7,
  per_million_embed_tokens: 333.3,
  per_million_store_gets: 123.4,
};

/** A server that is killed and started again, with billing over it. */
class World {
  readonly clock = new FakeClock(start);
  readonly stripe = standInAt(start, pro);
  readonly #store = new MemoryObjectStore();
  #seed = 0;
  #process: InProcess | null = null;
  #billing: ReturnType<typeof billingServer> | null = null;

  async restart(): Promise<void> {
    this.#process?.kill();
    const random = seededBytes(++this.#seed);
    const plans = { ...builtInPlans, pro };
    this.#process = await this.clock.run(
      InProcess.start({ store: this.#store, clock: this.clock, random, plans }),
    );
    this.#billing = billingServer(this.stripe, this.#tenants, this.#store, this.#seed, pro);
  }

  get process(): InProcess {
    return this.#process ?? assert.fail('it does not run');
  }

  get billing() {
    return this.#billing ?? assert.fail('it does not run');
  }

  get #tenants(): BillingTenants {
    return {
      get: async (id) =>
        (await this.process.askInside(internalCalls.getTenant, null, id)) as TenantStanding | null,
      setBilling: async (id, change) => {
        await this.process.askInside(internalCalls.setBilling, change, id);
      },
      meteredUsage: async (id) =>
        (await this.process.askInside(internalCalls.meteredUsage, null, id)) as MeteredUsage | null,
    };
  }

  /** Time goes by, and a round of billing at its end. */
  async pass(ms: number): Promise<void> {
    this.clock.jump(ms - 2_000);
    await this.clock.advance(2_000);
    this.stripe.pass(this.clock.now());
    await this.clock.run(this.billing.rounds.run());
  }

  /** What fronts have counted. */
  async use(counters: object): Promise<void> {
    const note = { day: dayOf(this.clock.now()), counters, keys: [] };
    await this.clock.run(this.process.askInside(internalCalls.noteUsage, [note]));
  }

  async usage(): Promise<Usage> {
    return (await this.clock.run(this.process.ask('usage', ''))).body;
  }
}

describe('the bill that a tenant is shown', () => {
  it('is its invoice to the cent, for each of three months, over kills of the server and to the last second of a month', async () => {
    const world = new World();
    const { clock, stripe } = world;
    await world.restart();
    await clock.run(world.process.createTenant());
    await clock.run(world.billing.billing.checkout(tenantId));
    stripe.complete([...stripe.sessions.keys()][0] ?? '');
    for (const event of stripe.events) await clock.run(world.billing.deliver(event));
    let steps = 0;
    /** Something of everything is used, and some hours go by. */
    const live = async (untilMs: number, hours: number) => {
      for (; clock.now() < untilMs; steps++) {
        if (steps % 7 === 6) await world.restart();
        await clock.run(world.process.put(`n${steps % 3}`, [{ id: `${steps % 11}`, text: textOf() }]));
        if (steps % 5 === 4) await clock.run(world.process.remove(`n${steps % 3}`, [`${steps % 11}`]));
        await world.use({ queries: 1_237, hostedTokens: 4_321, storeGets: 987, cpuMs: 3.7 });
        await world.pass(Math.min(hours * hourMs, untilMs - clock.now()));
      }
    };

    await live(anchor, 5);
    for (let month = 0; month < 3; month++) {
      const { startMs, endMs } = subscribedPeriod(anchor, clock.now());
      await live(endMs - 6 * hourMs, 23);
      await live(endMs - 5_000, 1);
      // Within the last seconds too.
      await world.use({ queries: 101 });
      const { bill, period_start } = await world.usage();
      assert.equal(period_start, dayOf(startMs));
      // What is used from midnight on is of the next month, also before this one's last hour is told.
      await world.pass(endMs - clock.now());
      // Rounds are five minutes apart, and the invoice is a draft for an hour.
      await live(endMs + 1.5 * hourMs, 0.25);

      const invoice =
        [...stripe.invoices.values()].find(({ to }) => to === endMs / 1_000) ?? assert.fail('no invoice');
      assert.equal(invoice.status, 'paid');
      const invoiced = meteredParts.map((part) => (invoice.lines[`price_${part}`] ?? 0) / 100);
      assert.deepEqual(
        [invoice.baseCents / 100, ...invoiced],
        [bill.base, ...meteredParts.map((part) => bill[part])],
      );
      assert.ok(
        meteredParts.every((part) => bill[part] > 0),
        JSON.stringify(bill),
      );
    }
    const hours = stripe.meterEvents.map(
      ({ eventName, timestamp }) => `${eventName} ${Math.floor(timestamp / 3_600)}`,
    );
    assert.equal(new Set(hours).size, hours.length, 'an hour and part has several events');
    world.process.kill();
  });
});
