/** Paid plans with a whole server, against the stand-in for Stripe: by requests, and as a person sees them. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import type { Billing, Me } from '../../protocol/account.ts';
import { builtInPlans } from '../../src/accounts/plans.ts';
import { ApiClient } from '../support/api-client.ts';
import { priceSettingsOf, standInAt } from '../support/billing-world.ts';
import { browserMissing, desktop, inspectPage, startBrowser, watched } from '../support/browser.ts';
import { plansFile } from '../support/plans-file.ts';
import {
  restart,
  type ServerProcess,
  startServer,
  temporaryFolder,
  withLimits,
} from '../support/server-process.ts';
import { StripeServer } from '../support/stripe-server.ts';

const secret = 'whsec_present';
const folder = temporaryFolder();
const stripe = await StripeServer.start(standInAt(Date.now(), builtInPlans.pro));
const settings = priceSettingsOf(builtInPlans.pro);
const env = {
  STRIPE_SECRET_KEY: 'sk_test_1234',
  STRIPE_WEBHOOK_SECRET: secret,
  STRIPE_WEBHOOK_SECRET_PREVIOUS: 'whsec_previous',
  STRIPE_PRICE_ID: settings.priceId,
  STRIPE_USAGE_PRICES: JSON.stringify(settings.usagePrices),
  STRIPE_BASE_URL: stripe.url,
};
/** A provider that says nothing is given up after two of these. */
const quick = withLimits({ paymentRequestMs: 2_000 });
let server: ServerProcess;
let anyone: ApiClient;

before(async () => {
  // Else a tenant that has stored too much has written too much as well, and which of the two it is told depends on what the front has heard.
  const plans = plansFile(folder, 'built-in', { included_write_gb: 100 });
  server = await startServer({
    folder,
    ...quick,
    env: { ...quick.env, ...env, TIDEBASE_PLANS_FILE: plans },
  });
  anyone = new ApiClient(server.url);
  stripe.webhook = { url: `${server.url}/v1/billing/webhook`, secret };
});

after(() => {
  anyone.close();
  stripe.close();
});

const password = 'correct horse';
const made = { count: 0 };
async function person() {
  made.count++;
  const email = `payer-${made.count}@example.com`;
  const signup = await anyone.signup(email, `Payer ${made.count}`, password);
  const token = await anyone.login(email, password);
  return { email, tenantId: signup.tenant_id, key: anyone.as(signup.key), login: anyone.as(token) };
}

/** Completes the open page of a tenant, as a person does. */
async function subscribe(key: ApiClient) {
  const { url } = await key.call<{ url: string }>('POST', '/v1/billing/checkout');
  const subscription = stripe.stripe.complete(url.split('/').at(-1) ?? '');
  await stripe.deliver();
  return subscription;
}

const post = (body: string | Uint8Array, headers: Record<string, string> = {}) =>
  fetch(`${server.url}/v1/billing/webhook`, { method: 'POST', body, headers });
const stripeSays = (body: string, with_ = secret, atMs = Date.now()) => ({
  'stripe-signature': stripe.stripe.signatureOf(body, with_, atMs),
});

describe('a paid plan', () => {
  it('begins with a checkout, is known to every request at once, and outlives a restart', async () => {
    const { key } = await person();
    assert.deepEqual((await key.call<Billing>('GET', '/v1/billing')).configured, true);
    await subscribe(key);

    const billing = await key.call<Billing>('GET', '/v1/billing');
    assert.deepEqual([billing.plan, billing.subscribed, billing.status], ['pro', true, 'active']);
    assert.deepEqual(
      [billing.bill.base, billing.bill.total],
      [0, 0],
      'the hours before the first month are free',
    );
    const answer = await key.request('GET', '/v1/namespaces');
    assert.equal(answer.headers['ratelimit-limit'], '1000');
    const refused = await key.refused({ status: 409, code: 'conflict' }, 'POST', '/v1/billing/checkout');
    assert.match(refused.error, /portal/);

    server = await restart(await stopped());
    anyone.close();
    anyone = new ApiClient(server.url);
    stripe.webhook = { url: `${server.url}/v1/billing/webhook`, secret };
    assert.equal((await anyone.as(key.key).call<Billing>('GET', '/v1/billing')).plan, 'pro');
  });

  it('that is owed for suspends after two weeks, lets its people see and pay, and is active again when that is paid', async () => {
    const { key, login } = await person();
    const subscription = await subscribe(key);
    await key.put('notes', [{ id: 'a', text: 'x' }]);
    stripe.owes(subscription, 13);
    await stripe.deliver();
    assert.equal((await key.call<Me>('GET', '/v1/me')).tenant.status, 'past_due');
    assert.equal((await key.get('notes', 'a')).text, 'x');

    stripe.owes(subscription, 15);
    await stripe.deliver();
    for (const client of [key, login])
      await client.refused({ status: 403, code: 'forbidden' }, 'GET', '/v1/namespaces/notes/docs/a');
    await key.refused({ status: 403, code: 'forbidden' }, 'GET', '/v1/billing');
    assert.equal((await login.call<Me>('GET', '/v1/me')).tenant.status, 'suspended');
    assert.equal((await login.call<Billing>('GET', '/v1/billing')).status, 'past_due');
    assert.match((await login.call<{ url: string }>('POST', '/v1/billing/portal')).url, /\/portal\/cus_/);

    stripe.stripe.payUp(subscription);
    await stripe.deliver();
    assert.equal((await key.get('notes', 'a')).text, 'x');
  });

  it('that ends with more stored than the free plan has leaves all readable, and writes are 507', async () => {
    const { key } = await person();
    const subscription = await subscribe(key);
    // An unverified free tenant has 10 MB.
    const text = 'y'.repeat(1_000_000);
    for (let n = 0; n < 12; n++) await key.put('large', [{ id: `d${n}`, text: `${n} ${text}` }]);
    stripe.stripe.end(subscription, Math.floor(Date.now() / 1_000));
    await stripe.deliver();

    const billing = await key.call<Billing>('GET', '/v1/billing');
    assert.deepEqual([billing.plan, billing.subscribed, billing.status], ['free', false, 'canceled']);
    assert.equal((await key.call<{ count: number }>('POST', '/v1/namespaces/large/count', {})).count, 12);
    assert.equal((await key.get('large', 'd3')).text.length, 1_000_002);
    await key.refused({ status: 507, code: 'quota_full' }, 'POST', '/v1/namespaces/large/docs', {
      body: { docs: [{ id: 'more', text: 'z' }] },
    });
    await key.call('POST', '/v1/namespaces/large/delete', { ids: ['d0'] });
  });

  it('of a tenant that is deleted ends first; where the provider is away nothing is deleted', async () => {
    const { login } = await person();
    const second = await login.call<{ id: number }>('POST', '/v1/tenants', { name: 'Second' });
    const acting = { headers: { 'x-tenant': String(second.id) } };
    const { url } = (await login.request('POST', '/v1/billing/checkout', acting)).json() as { url: string };
    const subscription = stripe.stripe.complete(url.split('/').at(-1) ?? '');
    await stripe.deliver();
    stripe.stripe.fault = () => 500;
    await login.refused({ status: 502, code: 'billing_failed' }, 'DELETE', `/v1/tenants/${second.id}`);
    stripe.stripe.fault = () => undefined;
    assert.equal(((await login.request('GET', '/v1/billing', acting)).json() as Billing).plan, 'pro');

    await login.call('DELETE', `/v1/tenants/${second.id}`);
    assert.equal(subscription.state, 'canceled');
    await stripe.deliver();
  });

  it('is not begun where the provider fails: 502, in time, also where it says nothing at all', async () => {
    const { key } = await person();
    for (const fault of [500, 429, 'garbage', 'no-answer'] as const) {
      stripe.stripe.fault = () => fault;
      const beganMs = performance.now();
      await key.refused({ status: 502, code: 'billing_failed' }, 'POST', '/v1/billing/checkout');
      assert.ok(performance.now() - beganMs < 40_000, String(fault));
    }
    stripe.stripe.fault = () => undefined;
    await key.refused({ status: 409, code: 'conflict' }, 'POST', '/v1/billing/portal');
    const urls = await Promise.all(
      [1, 2, 3].map(() => key.call<{ url: string }>('POST', '/v1/billing/checkout')),
    );
    assert.equal(new Set(urls.map(({ url }) => url)).size, 1);
  });
});

describe('the webhook', () => {
  it('refuses what is not signed, signed too long ago or by another, too large or no event; nothing is done', async () => {
    const body = JSON.stringify({
      id: 'evt_1',
      object: 'event',
      type: 'customer.subscription.updated',
      livemode: false,
      data: { object: { object: 'subscription', customer: 'cus_unknown' } },
    });
    const statuses = async (...asked: Promise<Response>[]) =>
      Promise.all(asked.map(async (one) => (await one).status));

    assert.deepEqual(
      await statuses(
        post(body),
        post(body, { 'stripe-signature': 'nonsense' }),
        post(body, stripeSays(body, 'whsec_other')),
        post(body, stripeSays(body, secret, Date.now() - 310_000)),
        post(`${body} `, stripeSays(body)),
        post('[]', stripeSays('[]')),
        post('', stripeSays('')),
        post(new Uint8Array(1_000_000), { 'stripe-signature': 't=1,v1=00' }),
        post(new Uint8Array(256 * 1024), { 'stripe-signature': 't=1,v1=00' }),
      ),
      [400, 400, 400, 400, 400, 400, 400, 413, 400],
    );
    // Of nobody here, by either secret, as often as it comes: taken.
    const hundred = Array.from({ length: 100 }, () => post(body, stripeSays(body)));
    assert.deepEqual(
      new Set(await statuses(post(body, stripeSays(body, 'whsec_previous')), ...hundred)),
      new Set([200]),
    );
  });
});

describe('the billing page in a browser', { skip: browserMissing }, () => {
  let browser: Browser;
  before(async () => {
    browser = await startBrowser();
  });
  after(() => browser.close());

  const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();

  it('goes from the free plan to pro, a failed payment, suspension, paying, and cancelling', async () => {
    const { email, key } = await person();
    const page = await browser.newPage({ viewport: desktop, reducedMotion: 'reduce' });
    const watch = watched(page, server.url);
    await page.goto(`${server.url}/console#/billing`);
    await page.getByLabel('E-mail', { exact: true }).fill(email);
    await page.getByLabel('Password', { exact: true }).fill(password);
    await press(page, 'Log in');
    const planCard = page.getByRole('region', { name: 'Plan' });
    await planCard.getByText('This tenant has the free plan.').waitFor();
    await page.getByText('Nothing has cost anything so far.').waitFor();
    await inspectPage(page, 'billing-free');

    await press(page, 'Upgrade to pro');
    await press(page, 'Subscribe');
    await planCard.getByText('It renews on').waitFor();
    await page.getByRole('table', { name: /^From \d{4}-\d\d-\d\d until/ }).waitFor();
    await inspectPage(page, 'billing-pro');

    const subscription = [...stripe.stripe.subscriptions.values()].at(-1) ?? assert.fail('no subscription');
    // As if it had begun some days ago: its price is due from the first day on.
    subscription.anchor -= 6 * 86_400;
    stripe.stripe.tellOf(subscription);
    await stripe.deliver();
    await page.reload();
    await page.getByRole('img', { name: /^Bill so far by day/ }).waitFor();
    assert.match((await page.getByRole('row', { name: /^Total/ }).textContent()) ?? '', /20\.00/);
    await inspectPage(page, 'billing-pro-later');

    stripe.owes(subscription, 1);
    await stripe.deliver();
    await page.reload();
    await planCard.getByText('The last payment failed.').waitFor();
    await inspectPage(page, 'billing-past-due');

    stripe.owes(subscription, 20);
    await stripe.deliver();
    await page.reload();
    await planCard.getByText('This tenant is suspended').waitFor();
    await inspectPage(page, 'billing-suspended');
    await key.refused({ status: 403, code: 'forbidden' }, 'GET', '/v1/namespaces');

    await press(page, 'Cards, invoices, cancelling');
    await press(page, 'Pay what is due');
    await planCard.getByText('It renews on').waitFor();
    await press(page, 'Cards, invoices, cancelling');
    await press(page, 'Cancel the plan');
    await planCard.getByText('It ends on').waitFor();
    await inspectPage(page, 'billing-ending');

    const others = watch.complaints.filter((each) => !each.startsWith(`call of ${stripe.url}`));
    assert.deepEqual([others, watch.refusals], [[], []]);
    await page.close();
  });
});

async function stopped(): Promise<ServerProcess> {
  await server.stop();
  return server;
}
