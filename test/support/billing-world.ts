/** Billing over the stand-in: the real door and package, any number of servers over one store, tenants whose usage a test says. */
import type { BillingChange, TenantStanding } from '../../protocol/messages.ts';
import type { UsageCounters } from '../../protocol/stored-tenant.ts';
import { includedUnits, meteredParts, unitPriceCents } from '../../src/accounts/billing.ts';
import { builtInPlans, type Plan } from '../../src/accounts/plans.ts';
import { noUsage } from '../../src/accounts/usage.ts';
import type { Clock } from '../../src/base/clock.ts';
import type { PriceSettings } from '../../src/billing/check-prices.ts';
import { BillingRounds } from '../../src/billing/keep-billing.ts';
import { PaidPlans } from '../../src/billing/paid-plans.ts';
import { Prices } from '../../src/billing/prices.ts';
import { openStripe } from '../../src/billing/stripe-provider.ts';
import { type BillingTenants, Subscriptions } from '../../src/billing/subscriptions.ts';
import { MemoryObjectStore } from '../../src/object-store/memory-object-store.ts';
import type { ObjectStore } from '../../src/object-store/object-store.ts';
import { quiet, seededBytes } from './in-process.ts';
import { StripeStandIn } from './stripe-stand-in.ts';

export const secrets = ['whsec_present', 'whsec_previous'] as const;
/** The paid plan with a price for every part, so that each has a meter. */
export const plan: Plan = {
  ...builtInPlans.pro,
  included_store_gets: 1_000_000,
  per_million_store_gets: 0.4,
};

/** What an operator would set. */
export function priceSettingsOf(of: Plan): PriceSettings {
  const parts = meteredParts.filter((part) => unitPriceCents(of, part) !== '0');
  return {
    priceId: 'price_pro',
    usagePrices: Object.fromEntries(
      parts.map((part) => [part, { price: `price_${part}`, meter: `${part}_used` }]),
    ),
  };
}
export const priceSettings = priceSettingsOf(plan);

/** With the prices of a plan. */
export function standInAt(nowMs: number, of = plan): StripeStandIn {
  const stripe = new StripeStandIn(nowMs);
  stripe.addPrice({ id: 'price_pro', cents: String(of.price_month * 100) });
  for (const part of meteredParts)
    stripe.addPrice({
      id: `price_${part}`,
      cents: unitPriceCents(of, part),
      meter: `mtr_${part}_used`,
      freeUnits: includedUnits(of, part) ?? 0,
    });
  return stripe;
}

/** Its network is the stand-in, called in place. */
export function providerOver(stripe: StripeStandIn) {
  return openStripe(
    { secretKey: 'sk_test_1234', baseUrl: null },
    {
      triesMax: 1,
      httpClient: {
        getClientName: () => 'in place',
        async makeRequest(_host, _port, path, method, headers, body) {
          const lower = Object.fromEntries(
            Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)]),
          );
          const answer = stripe.ask(method, path, body ?? '', lower);
          if (answer === null) throw Object.assign(new TypeError('no answer'), { code: 'ETIMEDOUT' });
          const json = async () => {
            return JSON.parse(answer.text);
          };
          return {
            getStatusCode: () => answer.status,
            getHeaders: () => ({ 'request-id': answer.requestId }),
            getRawResponse: () => answer,
            toStream: () => null,
            toJSON: json,
          };
        },
      },
    },
  );
}

/** A tenant as billing sees it, with what it was told. */
export class StandInTenants {
  readonly told: BillingChange[] = [];
  readonly days = new Map<string, UsageCounters>();
  isGone = false;
  readonly clock: Clock;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  get change(): BillingChange | null {
    return this.told.reduce<BillingChange | null>(
      (newest, each) => (newest === null || each.billing.version > newest.billing.version ? each : newest),
      null,
    );
  }

  async get(id: number): Promise<TenantStanding | null> {
    const { plan: name = 'free', status = 'active' } = this.change ?? {};
    return { id, name: 'T', plan: name, status: this.isGone ? 'deleting' : status } as TenantStanding;
  }

  async setBilling(_id: number, change: BillingChange): Promise<void> {
    this.told.push(change);
  }

  async meteredUsage() {
    return { untilMs: this.clock.now(), days: [...this.days] };
  }

  use(day: string, more: Partial<UsageCounters>): void {
    const known = { ...(this.days.get(day) ?? noUsage) };
    for (const [name, amount] of Object.entries(more)) known[name as keyof UsageCounters] += amount;
    this.days.set(day, known);
  }
}

/** Sleeps take no time: time is the stand-in's. */
export function clockOf(stripe: StripeStandIn): Clock {
  const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
  return {
    now: () => stripe.nowMs,
    monotonic: () => stripe.nowMs,
    sleep: turn,
    after: () => () => {},
    yieldTurn: turn,
    hasBurst: () => false,
  };
}

export function billingServer(
  stripe: StripeStandIn,
  tenants: BillingTenants,
  store: ObjectStore = new MemoryObjectStore(),
  seed = 1,
  of: Plan = plan,
) {
  const clock = clockOf(stripe);
  const provider = providerOver(stripe);
  const prices = new Prices({ provider, logger: quiet }, priceSettingsOf(of), of);
  const components = {
    objectStore: store,
    clock,
    random: seededBytes(seed),
    provider,
    prices,
    tenants,
    logger: quiet,
  };
  const billing = new PaidPlans(components, {
    webhookSecrets: secrets,
    isLive: false,
    baseUrl: 'https://tide.example',
  });
  const subscriptions = new Subscriptions(components);
  const rounds = new BillingRounds({ ...components, subscriptions, meters: () => prices.meters() });
  /** Delivers an event of the stand-in, as Stripe would. */
  const deliver = (event: { readonly body: string }, secret: string = secrets[0]) =>
    billing.webhook(Buffer.from(event.body), stripe.signatureOf(event.body, secret));
  return { billing, rounds, store, provider, deliver, components };
}
