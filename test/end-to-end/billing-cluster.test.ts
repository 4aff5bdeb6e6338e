/**
 * Paid plans on three servers: what one of them hears holds on all as soon as it is answered, whoever hears it, and however often; and
 * what was used is told once, whichever of them dies.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Billing, Usage } from '../../protocol/account.ts';
import { builtInPlans } from '../../src/accounts/plans.ts';
import { systemClock } from '../../src/base/clock.ts';
import { systemRandom } from '../../src/base/random.ts';
import { type BillingRecord, readBilling } from '../../src/billing/billing-record.ts';
import { FsObjectStore } from '../../src/object-store/fs-object-store.ts';
import { ApiClient } from '../support/api-client.ts';
import { priceSettingsOf, standInAt } from '../support/billing-world.ts';
import { ServerCluster } from '../support/cluster.ts';
import { eventually } from '../support/eventually.ts';
import { withLimits } from '../support/server-process.ts';
import { StripeServer } from '../support/stripe-server.ts';
import type { StoredSubscription } from '../support/stripe-wire.ts';

const secret = 'whsec_present';
const settings = priceSettingsOf(builtInPlans.pro);
const { free, pro } = builtInPlans;

describe('paid plans on three servers', { concurrency: 1 }, () => {
  let stripe: StripeServer;
  let cluster: ServerCluster;
  let clients: readonly ApiClient[];
  let subscription: StoredSubscription;
  let heard = 0;
  let tenantId: number;

  before(async () => {
    stripe = await StripeServer.start(standInAt(Date.now(), pro));
    const quick = withLimits({
      billingFirstRoundMs: 200,
      billingRoundMs: 300,
      paymentRequestMs: 1_000,
      // The hour that runs counts as one that has ended.
      meteredSettleMs: -3_600_000,
    });
    const env = {
      STRIPE_SECRET_KEY: 'sk_test_1234',
      STRIPE_WEBHOOK_SECRET: secret,
      STRIPE_PRICE_ID: settings.priceId,
      STRIPE_USAGE_PRICES: JSON.stringify(settings.usagePrices),
      STRIPE_BASE_URL: stripe.url,
      TIDEBASE_PLANS_FILE: '',
      NODE_OPTIONS: quick.nodeArguments.join(' '),
      ...quick.env,
    };
    cluster = await ServerCluster.start({ servers: 3, env });
    const [one = assert.fail('no server')] = cluster.running;
    const signup = await new ApiClient(one.process.url).signup('payer@example.com');
    tenantId = signup.tenant_id;
    clients = cluster.clients(signup.key);
  });
  after(async () => {
    for (const client of clients) client.close();
    await cluster.stop();
    stripe.close();
  });

  const statusOf = async (server: number, body: string): Promise<number> => {
    const url = `${cluster.running[server]?.process.url}/v1/billing/webhook`;
    const signature = stripe.stripe.signatureOf(body, secret, Date.now());
    const answer = await fetch(url, { method: 'POST', body, headers: { 'stripe-signature': signature } });
    await answer.arrayBuffer();
    return answer.status;
  };

  /** Tells so many servers of what has happened since, all of it at once. */
  async function tell(...servers: readonly number[]): Promise<void> {
    const events = stripe.stripe.events.slice(heard);
    heard = stripe.stripe.events.length;
    assert.ok(events.length > 0, 'nothing has happened');
    const statuses = await Promise.all(
      servers.flatMap((server) => events.map(({ body }) => statusOf(server, body))),
    );
    assert.deepEqual(new Set(statuses), new Set([200]));
  }

  async function recordInStore(): Promise<BillingRecord> {
    const store = await FsObjectStore.open(join(cluster.folder, 'objects'), systemClock, systemRandom);
    const record = await readBilling(store, tenantId);
    await store.close();
    return record;
  }

  /** What each server lets the tenant do a second; its status where it lets it do nothing. */
  async function limits(): Promise<number[]> {
    const answers = await Promise.all(clients.map((client) => client.request('GET', '/v1/namespaces')));
    return answers.map(({ status, headers }) =>
      status === 200 ? Number(headers['ratelimit-limit']) : status,
    );
  }

  it('are one page, whoever asks for it and how often at once', async () => {
    const asked = [0, 1, 2, 0, 1, 2].map((at) =>
      clients[at]?.call<{ url: string }>('POST', '/v1/billing/checkout'),
    );
    const urls = new Set((await Promise.all(asked)).map((answer) => answer?.url));

    assert.equal(urls.size, 1);
    assert.deepEqual(await limits(), [free.qps, free.qps, free.qps]);
    const [session = ''] = stripe.stripe.sessions.keys();
    subscription = stripe.stripe.complete(session);
  });

  it('begin on all as soon as an event is answered that all hear at once, and hold however often it is told again', async () => {
    const [event = assert.fail('no event')] = stripe.stripe.events;
    await tell(0, 1, 2, 0, 1, 2);

    assert.deepEqual(await limits(), [pro.qps, pro.qps, pro.qps]);
    const { events, change } = await recordInStore();
    assert.deepEqual(
      [...events].sort(),
      stripe.stripe.events.map(({ id }) => id).sort(),
      'each is claimed once',
    );
    assert.equal(change?.billing.version, 1, 'and nothing was changed twice');
    for (const client of clients)
      assert.deepEqual((await client.call<Billing>('GET', '/v1/billing')).plan, 'pro');
    const asked = stripe.stripe.exchanges.length;
    const again = await Promise.all(Array.from({ length: 100 }, (_, at) => statusOf(at % 3, event.body)));
    assert.deepEqual(new Set(again), new Set([200]));
    assert.equal(stripe.stripe.exchanges.length, asked, 'an event that is known asks nobody');
  });

  it('have usage that is told once, where its answers are lost, all servers die meanwhile, and others go on', async () => {
    const docs = Array.from({ length: 30 }, (_, at) => ({ id: `d${at}`, text: 'tide '.repeat(20_000) }));
    await clients[0]?.put('notes', docs);
    for (const client of [...clients, ...clients, ...clients]) await client.count('notes', { q: 'tide' });
    const used = async () => (await clients[1]?.call<Usage>('GET', '/v1/usage')) ?? assert.fail('no server');
    await eventually(async () => (await used()).queries === 9, 'all queries are known');
    const { write_bytes } = await used();
    // As if it had begun some days ago: the hours of the day of its checkout cost nothing.
    subscription.anchor -= 3 * 86_400;
    stripe.stripe.tellOf(subscription);
    const meters = 'POST /v1/billing/meter_events';
    stripe.stripe.fault = (operation) => (operation === meters ? 'lost-answer' : undefined);
    await tell(0);
    const told = stripe.stripe.meterEvents;
    await eventually(() => Promise.resolve(told.length > 0), 'the first is told, and nobody hears that');

    await Promise.all(cluster.running.map(({ process }) => process.kill()));
    await cluster.startAgain();
    stripe.stripe.fault = () => undefined;
    await eventually(async () => (await recordInStore()).told?.hours.length === 0, 'all is told');

    assert.deepEqual(told.map(({ eventName, value }) => [eventName, value]).sort(), [
      ['queries_used', 9],
      ['writes_used', Math.floor(write_bytes / 1e6)],
    ]);
  });

  it('are suspended, served again and ended on all at once, whichever hears of it', async () => {
    for (const [server, happens, expected] of [
      [0, () => stripe.owes(subscription, 13), pro.qps],
      [2, () => stripe.owes(subscription, 20), 403],
      [0, () => stripe.stripe.payUp(subscription), pro.qps],
      [1, () => stripe.stripe.end(subscription, Math.floor(Date.now() / 1_000)), free.qps],
    ] as const) {
      happens();
      await tell(server);
      assert.deepEqual(await limits(), [expected, expected, expected], `server ${server} heard it`);
    }
  });
});
