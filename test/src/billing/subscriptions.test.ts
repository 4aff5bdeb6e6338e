import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { ApiError } from '../../../protocol/errors.ts';
import { readBilling } from '../../../src/billing/billing-record.ts';
import { subscriptionStates } from '../../../src/billing/payment-provider.ts';
import { changeFor } from '../../../src/billing/subscription-state.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { type ObjectStore, StoreError } from '../../../src/object-store/object-store.ts';
import { billingServer, clockOf, StandInTenants, secrets, standInAt } from '../../support/billing-world.ts';
import type { StripeStandIn } from '../../support/stripe-stand-in.ts';
import type { StoredSubscription } from '../../support/stripe-wire.ts';

const tenantId = 7;
const dayMs = 86_400_000;
const start = Date.parse('2026-01-20T09:30:00Z');

let stripe: StripeStandIn;
let tenants: StandInTenants;
let store: ObjectStore;
beforeEach(() => {
  stripe = standInAt(start);
  tenants = new StandInTenants(clockOf(stripe));
  store = new MemoryObjectStore();
});
const server = (seed = 1, over: ObjectStore = store) => billingServer(stripe, tenants, over, seed);

async function subscribed(): Promise<StoredSubscription> {
  await server().billing.checkout(tenantId);
  return stripe.complete([...stripe.sessions.keys()].at(-1) ?? '');
}

const refusedWith = (code: string) => (error: unknown) => error instanceof ApiError && error.code === code;

describe('an event', () => {
  it('makes a free tenant pro when its checkout is completed, from the next midnight on', async () => {
    await subscribed();
    for (const event of stripe.events) await server().deliver(event);

    const { plan, status, billing } = tenants.change ?? assert.fail('nothing was told');
    assert.deepEqual([plan, status, billing.status], ['pro', 'active', 'active']);
    assert.equal(billing.anchorAt, Date.parse('2026-01-21T00:00:00Z'));
  });

  it('is claimed once: replayed a hundred times it asks the provider once, and is answered each time', async () => {
    await subscribed();
    const [event = assert.fail('no event')] = stripe.events;
    await server().deliver(event);
    const asked = stripe.exchanges.length;
    const { version } = tenants.change?.billing ?? assert.fail('nothing was told');

    for (let i = 0; i < 100; i++) await server(i + 2).deliver(event);

    assert.equal(stripe.exchanges.length, asked);
    assert.equal(tenants.change?.billing.version, version);
    const { events } = await readBilling(store, tenantId);
    assert.deepEqual(events, [event.id]);
  });

  it('is not believed: what it says of the subscription is not what is fetched', async () => {
    const subscription = await subscribed();
    const lie = { ...stripe.subscriptionAsTold(subscription), status: 'canceled' };
    stripe.tell('customer.subscription.deleted', lie);

    await server().deliver(stripe.events.at(-1) ?? assert.fail('no event'));

    assert.equal(tenants.change?.plan, 'pro');
  });

  it('taken on two servers at once ends in the state that the subscription has, whichever is quicker', async () => {
    for (let seed = 1; seed <= 20; seed++) {
      stripe = standInAt(start);
      tenants = new StandInTenants(clockOf(stripe));
      store = new MemoryObjectStore();
      const subscription = await subscribed();
      const [one, two] = [server(seed), server(seed + 100)];
      subscription.cancelAtPeriodEnd = true;
      stripe.tellOf(subscription);
      const slow = one.deliver(stripe.events[1] ?? assert.fail('no event'));
      for (let turns = 0; turns < seed % 7; turns++) await new Promise((resolve) => setImmediate(resolve));
      stripe.end(subscription, Math.floor(stripe.nowMs / 1_000));
      await Promise.all([slow, ...stripe.events.map((event) => two.deliver(event))]);

      assert.deepEqual(
        [tenants.change?.plan, tenants.change?.billing.status],
        ['free', 'canceled'],
        `seed ${seed}`,
      );
      const versions = tenants.told.map(({ billing }) => billing.version);
      assert.equal((await readBilling(store, tenantId)).change?.billing.version, Math.max(...versions));
    }
  });

  it('whose subscription cannot be fetched is answered 502 and leaves nothing; the next try takes it', async () => {
    await subscribed();
    const [event = assert.fail('no event')] = stripe.events;
    for (const fault of [500, 429, 401, 'garbage', 'no-answer', 'lost-answer'] as const) {
      stripe.fault = (operation) => (operation === 'GET /v1/subscriptions' ? fault : undefined);
      await assert.rejects(server().deliver(event), refusedWith('billing_failed'), String(fault));
    }
    assert.equal(tenants.told.length, 0);
    assert.deepEqual((await readBilling(store, tenantId)).events, []);

    stripe.fault = () => undefined;
    await server().deliver(event);
    assert.equal(tenants.change?.plan, 'pro');
  });

  it('is applied after a crash at any step: whatever call of the store or the provider was the last, the next try ends right', async () => {
    await subscribed();
    const [event = assert.fail('no event')] = stripe.events;
    let crashes = 0;
    for (let step = 0; ; step++) {
      const before = store;
      const copy = await copyOf(before);
      const told = new StandInTenants(clockOf(stripe));
      const crashing = billingServer(stripe, told, new CrashingStore(copy, step), 3);
      const died = await crashing.deliver(event).then(
        () => false,
        () => true,
      );
      if (!died) break;
      crashes++;
      await billingServer(stripe, told, copy, 4).deliver(event);
      assert.equal(told.change?.plan, 'pro', `step ${step}`);
      assert.deepEqual((await readBilling(copy, tenantId)).events, [event.id], `step ${step}`);
    }
    assert.equal(crashes, 3, 'the claim and the record are read, and the record is written');
  });

  it('that is taken while the tenant cannot be told is taken again', async () => {
    await subscribed();
    const [event = assert.fail('no event')] = stripe.events;
    const setBilling = tenants.setBilling.bind(tenants);
    tenants.setBilling = () => Promise.reject(new ApiError('unavailable', 'the log is away'));
    await assert.rejects(server().deliver(event), refusedWith('unavailable'));

    tenants.setBilling = setBilling;
    await server().deliver(event);
    assert.equal(tenants.change?.plan, 'pro');
  });

  it('about nobody of ours, of another account or mode, or of no customer, is answered and changes nothing', async () => {
    await subscribed();
    const strange = [
      {
        type: 'customer.subscription.updated',
        data: { object: { object: 'subscription', customer: 'cus_other' } },
      },
      { account: 'acct_1', data: { object: { object: 'subscription', customer: 'cus_000001' } } },
      { livemode: true, data: { object: { object: 'subscription', customer: 'cus_000001' } } },
      { data: { object: { object: 'product' } } },
      { data: { object: { object: 'subscription', customer: '../../account/person/1' } } },
    ];
    for (const parts of strange) {
      const event = {
        id: 'evt_x',
        object: 'event',
        type: 'customer.subscription.updated',
        livemode: false,
        ...parts,
      };
      await server().deliver({ body: JSON.stringify(event) });
    }
    assert.deepEqual(tenants.told, []);
  });

  it('is refused with 400 unless these bytes were signed within five minutes, by the present or the previous secret', async () => {
    await subscribed();
    const [{ body } = assert.fail('no event')] = stripe.events;
    const { billing } = server();
    const take = (signature: string | undefined, bytes = body) =>
      billing.webhook(Buffer.from(bytes), signature);
    const bad = refusedWith('bad_request');
    const right = stripe.signatureOf(body, secrets[0]);

    await assert.rejects(take(undefined), bad);
    await assert.rejects(take(''), bad);
    await assert.rejects(take('t=1,v1=00'), bad);
    await assert.rejects(take(stripe.signatureOf(body, 'whsec_other')), bad);
    await assert.rejects(take(right, `${body} `), bad);
    await assert.rejects(take(stripe.signatureOf(body, secrets[0], start - 301_000)), bad);
    for (const garbage of ['', 'x', '[]', '{}', 'null', '{"id":7}', '{"id":"evt_1","type":"a"}'])
      await assert.rejects(take(stripe.signatureOf(garbage, secrets[0]), garbage), bad, garbage);
    assert.deepEqual(tenants.told, []);

    await take(stripe.signatureOf(body, secrets[0], start - 299_000));
    await take(stripe.signatureOf(body, secrets[1]));
    assert.equal(tenants.change?.plan, 'pro');
  });

  it('of a tenant that is gone ends its subscription, so that nobody pays for what is not there', async () => {
    const subscription = await subscribed();
    tenants.isGone = true;

    await server().deliver(stripe.events[0] ?? assert.fail('no event'));

    assert.equal(subscription.state, 'canceled');
    assert.deepEqual(tenants.told, []);
  });
});

describe('a history', () => {
  it('ends where the subscription is, from each of its states to each other', async () => {
    const standings = subscriptionStates.flatMap((state): (readonly [typeof state, number | null])[] =>
      state === 'past_due' || state === 'unpaid'
        ? [
            [state, 13],
            [state, 14],
          ]
        : [[state, null]],
    );
    const subscription = await subscribed();
    const begun = { ...subscription };
    const now = Math.floor(start / 1_000);
    const become = async ([state, days]: (typeof standings)[number]) => {
      if (days !== null) stripe.owe(subscription, now - days * 86_400);
      else stripe.payUp(subscription);
      Object.assign(subscription, { state, endedAt: state === 'canceled' ? now : null });
      stripe.tellOf(subscription);
      await server().deliver(stripe.events.at(-1) ?? assert.fail('no event'));
      const unpaidSince = days === null ? null : start - days * dayMs;
      const endedAt = subscription.endedAt === null ? null : start;
      const parts = { id: begun.id, state, anchorAt: begun.anchor * 1_000, cancelAtPeriodEnd: false };
      return changeFor({ ...parts, endedAt, unpaidSince }, start);
    };
    const seen = new Set<string>();
    for (const from of standings)
      for (const to of standings) {
        await become(from);
        const { plan, status, billing } = await become(to);

        const told = tenants.change ?? assert.fail('nothing was told');
        const { version: _, ...standing } = told.billing;
        assert.deepEqual([told.plan, told.status, standing], [plan, status, billing], `${from} → ${to}`);
        seen.add(`${plan} ${status} ${billing.status}`);
      }
    assert.deepEqual([...seen].sort(), [
      'free active canceled',
      'free active none',
      'pro active active',
      'pro past_due past_due',
      'pro suspended past_due',
    ]);
  });

  it('of payments goes from free to pro, past due, suspended, active again, to its end and free', async () => {
    const subscription = await subscribed();
    const seen: unknown[] = [];
    let delivered = 0;
    const deliver = async () => {
      for (; delivered < stripe.events.length; delivered++)
        await server().deliver(stripe.events[delivered] ?? { body: '' });
      const { plan, status, billing } = tenants.change ?? assert.fail('nothing was told');
      seen.push([plan, status, billing.status, billing.cancelAtPeriodEnd]);
    };
    const pass = async (to: string) => {
      stripe.pass(Date.parse(to));
      await server().rounds.run();
      await deliver();
    };

    await deliver();
    stripe.pays = false;
    await pass('2026-01-21T02:00:00Z');
    await pass('2026-02-04T00:59:59Z');
    await pass('2026-02-04T01:00:00Z');
    stripe.pays = true;
    stripe.payUp(subscription);
    await deliver();
    subscription.cancelAtPeriodEnd = true;
    stripe.tellOf(subscription);
    await deliver();
    await pass('2026-02-21T02:00:00Z');

    assert.deepEqual(seen, [
      ['pro', 'active', 'active', false],
      ['pro', 'past_due', 'past_due', false],
      ['pro', 'past_due', 'past_due', false],
      ['pro', 'suspended', 'past_due', false],
      ['pro', 'active', 'active', false],
      ['pro', 'active', 'active', true],
      ['free', 'active', 'canceled', false],
    ]);
    assert.equal(tenants.change?.billing.endedAt, Date.parse('2026-02-21T00:00:00Z'));
  });

  const rounds = Number(process.env.BILLING_HISTORIES ?? '1000');
  it(`that is shuffled, doubled, delayed or partly lost ends in the state of the subscription itself: ${rounds} of them`, async () => {
    const ends = new Map<string, number>();
    for (let seed = 1; seed <= rounds; seed++) {
      const chance = chanceOf(seed);
      stripe = standInAt(start);
      tenants = new StandInTenants(clockOf(stripe));
      store = new MemoryObjectStore();
      const subscription = await subscribed();
      const waiting: { readonly body: string }[] = [];
      let told = 0;
      const happens = [
        () => stripe.pass(stripe.nowMs + chance(20) * dayMs),
        () => {
          stripe.pays = !stripe.pays;
        },
        () => {
          if (subscription.state === 'past_due') stripe.payUp(subscription);
        },
        () => {
          if (subscription.endedAt === null) subscription.cancelAtPeriodEnd = !subscription.cancelAtPeriodEnd;
          stripe.tellOf(subscription);
        },
        () => {
          if (subscription.endedAt === null && chance(4) === 0)
            stripe.end(subscription, Math.floor(stripe.nowMs / 1_000));
        },
      ];
      const servers = [server(seed), server(seed + 5_000)];
      for (let step = 0; step < 8; step++) {
        happens[chance(happens.length)]?.();
        for (; told < stripe.events.length; told++) {
          const event = stripe.events[told] ?? assert.fail('no event');
          for (let copies = chance(3) + 1; copies > 0; copies--)
            waiting.splice(chance(waiting.length + 1), 0, event);
        }
        const some = waiting.splice(0, chance(waiting.length + 1));
        await Promise.all(some.map((event) => servers[chance(2)]?.deliver(event)));
      }
      for (const event of waiting) await servers[chance(2)]?.deliver(event);
      // A round makes good what the time alone has changed.
      await servers[0]?.rounds.run();

      const { id, state, anchor, cancelAtPeriodEnd, endedAt } = subscription;
      const open = [...stripe.invoices.values()]
        .filter(({ status }) => status === 'open')
        .map(({ finalizedAt }) => Number(finalizedAt));
      const owes = state === 'past_due' && open.length > 0;
      const expected = changeFor(
        {
          id,
          state: state as 'active',
          anchorAt: anchor * 1_000,
          cancelAtPeriodEnd,
          endedAt: endedAt === null ? null : endedAt * 1_000,
          unpaidSince: owes ? Math.min(...open) * 1_000 : null,
        },
        stripe.nowMs,
      );
      const { plan, status, billing } = tenants.change ?? assert.fail(`seed ${seed}: nothing was told`);
      const { version: _, ...standing } = billing;
      assert.deepEqual({ plan, status, billing: standing }, expected, `seed ${seed}`);
      const end = `${plan} ${status}`;
      ends.set(end, (ends.get(end) ?? 0) + 1);
    }
    // All ends are met.
    for (const end of ['pro active', 'pro past_due', 'pro suspended', 'free active'])
      assert.ok((ends.get(end) ?? 0) > rounds / 50, `${end}: ${JSON.stringify([...ends])}`);
  });
});

function chanceOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

async function copyOf(from: ObjectStore): Promise<MemoryObjectStore> {
  const copy = new MemoryObjectStore();
  const { objects } = await from.list('', { limit: 1_000 });
  for (const { key } of objects) {
    const stored = await from.get(key);
    if (stored !== null) await copy.putIfAbsent(key, [stored.bytes]);
  }
  return copy;
}

/** Applies so many writes; the next one is applied as well, and everything after it fails as after a crash. */
class CrashingStore extends MemoryObjectStore {
  readonly #store: ObjectStore;
  #left: number;
  constructor(store: ObjectStore, left: number) {
    super();
    this.#store = store;
    this.#left = left;
  }
  #step(key: string): void {
    if (this.#left < 0) throw new StoreError('get', key, 'not-applied', 'failed');
    this.#left--;
  }
  override async get(...args: Parameters<ObjectStore['get']>): ReturnType<ObjectStore['get']> {
    this.#step(args[0]);
    return this.#store.get(...args);
  }
  override async putIfAbsent(
    ...args: Parameters<ObjectStore['putIfAbsent']>
  ): ReturnType<ObjectStore['putIfAbsent']> {
    this.#step(args[0]);
    const put = await this.#store.putIfAbsent(...args);
    if (this.#left < 0) throw new StoreError('putIfAbsent', args[0], 'unknown', 'failed');
    return put;
  }
  override async putIfMatch(
    ...args: Parameters<ObjectStore['putIfMatch']>
  ): ReturnType<ObjectStore['putIfMatch']> {
    this.#step(args[0]);
    const put = await this.#store.putIfMatch(...args);
    if (this.#left < 0) throw new StoreError('putIfMatch', args[0], 'unknown', 'failed');
    return put;
  }
}
