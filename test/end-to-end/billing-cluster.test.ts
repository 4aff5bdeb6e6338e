/** Paid plans on two servers: what one of them hears holds on both as soon as it is answered, whoever hears it, and however often. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Billing } from '../../protocol/account.ts';
import { builtInPlans } from '../../src/accounts/plans.ts';
import { ApiClient } from '../support/api-client.ts';
import { priceSettingsOf, standInAt } from '../support/billing-world.ts';
import { ServerCluster } from '../support/cluster.ts';
import { StripeServer } from '../support/stripe-server.ts';
import type { StoredSubscription } from '../support/stripe-wire.ts';

const secret = 'whsec_present';
const settings = priceSettingsOf(builtInPlans.pro);
const { free, pro } = builtInPlans;

describe('paid plans on two servers', { concurrency: 1 }, () => {
  let stripe: StripeServer;
  let cluster: ServerCluster;
  let clients: readonly ApiClient[];
  let subscription: StoredSubscription;
  let heard = 0;

  before(async () => {
    stripe = await StripeServer.start(standInAt(Date.now(), pro));
    const env = {
      STRIPE_SECRET_KEY: 'sk_test_1234',
      STRIPE_WEBHOOK_SECRET: secret,
      STRIPE_PRICE_ID: settings.priceId,
      STRIPE_USAGE_PRICES: JSON.stringify(settings.usagePrices),
      STRIPE_BASE_URL: stripe.url,
      TIDEBASE_PLANS_FILE: '',
    };
    cluster = await ServerCluster.start({ servers: 2, env });
    const [one = assert.fail('no server')] = cluster.running;
    const { key } = await new ApiClient(one.process.url).signup('payer@example.com');
    clients = cluster.clients(key);
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

  /** What each server lets the tenant do a second; its status where it lets it do nothing. */
  async function limits(): Promise<number[]> {
    const answers = await Promise.all(clients.map((client) => client.request('GET', '/v1/namespaces')));
    return answers.map(({ status, headers }) =>
      status === 200 ? Number(headers['ratelimit-limit']) : status,
    );
  }

  it('are one page, whoever asks for it and how often at once', async () => {
    const asked = [0, 1, 0, 1, 0, 1].map((at) =>
      clients[at]?.call<{ url: string }>('POST', '/v1/billing/checkout'),
    );
    const urls = new Set((await Promise.all(asked)).map((answer) => answer?.url));

    assert.equal(urls.size, 1);
    assert.deepEqual(await limits(), [free.qps, free.qps]);
    const [session = ''] = stripe.stripe.sessions.keys();
    subscription = stripe.stripe.complete(session);
  });

  it('begin on both as soon as an event is answered that both hear at once, and hold however often it is told again', async () => {
    const [event = assert.fail('no event')] = stripe.stripe.events;
    await tell(0, 1);

    assert.deepEqual(await limits(), [pro.qps, pro.qps]);
    for (const client of clients)
      assert.deepEqual((await client.call<Billing>('GET', '/v1/billing')).plan, 'pro');
    const asked = stripe.stripe.exchanges.length;
    const again = await Promise.all(Array.from({ length: 100 }, (_, at) => statusOf(at % 2, event.body)));
    assert.deepEqual(new Set(again), new Set([200]));
    assert.equal(stripe.stripe.exchanges.length, asked, 'an event that is known asks nobody');
  });

  it('are suspended, served again and ended on both at once, whichever hears of it', async () => {
    for (const [server, happens, expected] of [
      [0, () => stripe.owes(subscription, 13), pro.qps],
      [1, () => stripe.owes(subscription, 20), 403],
      [0, () => stripe.stripe.payUp(subscription), pro.qps],
      [1, () => stripe.stripe.end(subscription, Math.floor(Date.now() / 1_000)), free.qps],
    ] as const) {
      happens();
      await tell(server);
      assert.deepEqual(await limits(), [expected, expected], `server ${server} heard it`);
    }
  });
});
