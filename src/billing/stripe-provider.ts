/**
 * The door to Stripe: the only file that imports its package. Requests are bounded in time, and tried twice: with the same
 * `Idempotency-Key` Stripe does the second one only where it did not do the first. What it answers is read field by field.
 */
import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import Stripe from 'stripe';
import { ApiError } from '../../protocol/errors.ts';
import { parseId48 } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import {
  type CheckoutOrder,
  type MeterEvent,
  PaymentError,
  type PaymentProvider,
  type ProviderEvent,
  type ProviderPrice,
  type ProviderSubscription,
  subscriptionStates,
} from './payment-provider.ts';

export interface StripeAccount {
  readonly secretKey: string;
  /** Null: Stripe's own address. */
  readonly baseUrl: string | null;
}

/** For tests: another way to Stripe than the network, and how often a request is sent. */
export interface StripeNetwork {
  readonly httpClient?: NonNullable<ConstructorParameters<typeof Stripe>[1]>['httpClient'] & object;
  readonly triesMax?: number;
}

const seconds = (ms: number) => Math.floor(ms / 1_000);
const milliseconds = (s: number) => s * 1_000;

export function openStripe(
  { secretKey, baseUrl }: StripeAccount,
  { httpClient, triesMax = limits.paymentTriesMax }: StripeNetwork = {},
): PaymentProvider {
  const at = baseUrl === null ? null : new URL(baseUrl);
  const isPlain = at?.protocol === 'http:';
  const agent = isPlain ? new HttpAgent({ keepAlive: true }) : new HttpsAgent({ keepAlive: true });
  const stripe = new Stripe(secretKey, {
    timeout: limits.paymentRequestMs,
    maxNetworkRetries: triesMax - 1,
    telemetry: false,
    ...(httpClient === undefined ? { httpAgent: agent } : { httpClient }),
    ...(at === null
      ? {}
      : {
          host: at.hostname,
          port: at.port === '' ? (isPlain ? 80 : 443) : Number(at.port),
          protocol: isPlain ? ('http' as const) : ('https' as const),
        }),
  });
  return {
    createCustomer: ({ tenantId, name }, key) =>
      asked(async () => {
        const params = { name, metadata: { tenant_id: String(tenantId) } };
        return textOf((await stripe.customers.create(params, { idempotencyKey: key })).id);
      }),
    createCheckout: (order, key) =>
      asked(async () => {
        const { id, url } = await stripe.checkout.sessions.create(checkoutParams(order), {
          idempotencyKey: key,
        });
        return { id: textOf(id), url: textOf(url) };
      }),
    checkout: (id) =>
      asked(async () => {
        const { status, url } = await stripe.checkout.sessions.retrieve(id);
        return { isComplete: status === 'complete', url: status === 'open' ? textOf(url) : null };
      }),
    expireCheckout: (id) =>
      asked(async () => {
        if ((await stripe.checkout.sessions.retrieve(id)).status === 'open')
          await stripe.checkout.sessions.expire(id);
      }),
    createPortal: (customer, return_url) =>
      asked(async () => textOf((await stripe.billingPortal.sessions.create({ customer, return_url })).url)),
    subscriptions: (customer) =>
      asked(async () => {
        const { data } = await stripe.subscriptions.list({ customer, status: 'all', limit: 100 });
        return data.map(subscriptionOf);
      }),
    unpaidSince: (subscription) =>
      asked(async () => {
        const { data } = await stripe.invoices.list({ subscription, status: 'open', limit: 100 });
        const since = data.map(
          ({ status_transitions, created }) => status_transitions.finalized_at ?? created,
        );
        return since.length === 0 ? null : milliseconds(numberOf(Math.min(...since)));
      }),
    cancel: (id) =>
      asked(async () => {
        if ((await stripe.subscriptions.retrieve(id)).status !== 'canceled')
          await stripe.subscriptions.cancel(id, { invoice_now: true, prorate: false });
      }),
    price: (id) => asked(async () => priceOf(await stripe.prices.retrieve(id, { expand: ['tiers'] }))),
    meter: (id) =>
      asked(async () => {
        const meter = await stripe.billing.meters.retrieve(id);
        const keys = [meter.customer_mapping.event_payload_key, meter.value_settings.event_payload_key];
        return {
          id: textOf(meter.id),
          eventName: textOf(meter.event_name),
          isActive: meter.status === 'active',
          isSum:
            meter.default_aggregation.formula === 'sum' &&
            meter.event_time_window === null &&
            keys.join() === 'stripe_customer_id,value',
        };
      }),
    tellMeter: (event) => asked(() => tellMeter(stripe, event)),
    meteredValue: ({ meterId, customerId, fromMs, toMs }) =>
      asked(async () => {
        const { data } = await stripe.billing.meters.listEventSummaries(meterId, {
          customer: customerId,
          start_time: seconds(fromMs),
          end_time: seconds(toMs),
        });
        return data.reduce((sum, { aggregated_value }) => sum + numberOf(aggregated_value), 0);
      }),
    readSignedEvent,
    close: () => agent.destroy(),
  };
}

function checkoutParams(order: CheckoutOrder): Stripe.Checkout.SessionCreateParams {
  const { tenantId, customerId, priceIds, anchorAt, expiresAt } = order;
  const metadata = { tenant_id: String(tenantId) };
  return {
    mode: 'subscription',
    customer: customerId,
    client_reference_id: String(tenantId),
    // A metered price has no quantity.
    line_items: priceIds.map((price, index) => (index === 0 ? { price, quantity: 1 } : { price })),
    subscription_data: {
      metadata,
      billing_cycle_anchor: seconds(anchorAt),
      proration_behavior: 'none',
    },
    metadata,
    expires_at: seconds(expiresAt),
    success_url: order.doneUrl,
    cancel_url: order.cancelUrl,
  };
}

/** Without an `Idempotency-Key` of ours: Stripe would answer a failure for as long as it remembers that. */
async function tellMeter(stripe: Stripe, event: MeterEvent): Promise<void> {
  const { eventName, customerId, units, identifier, atMs } = event;
  try {
    await stripe.billing.meterEvents.create({
      event_name: eventName,
      payload: { stripe_customer_id: customerId, value: String(units) },
      identifier,
      timestamp: seconds(atMs),
    });
  } catch (error) {
    if (!isDuplicate(error)) throw error;
  }
}

function isDuplicate(error: unknown): boolean {
  return (
    error instanceof Stripe.errors.StripeInvalidRequestError &&
    /already exists with identifier/i.test(error.message)
  );
}

function subscriptionOf(subscription: Stripe.Subscription): ProviderSubscription {
  const { id, status, metadata, created, billing_cycle_anchor, ended_at } = subscription;
  const state = subscriptionStates.find((each) => each === status);
  if (state === undefined)
    throw new TypeError(`a subscription is ${status}, which this server does not know`);
  return {
    id: textOf(id),
    state,
    tenantId: parseId48(metadata?.tenant_id ?? '') ?? null,
    createdAt: milliseconds(numberOf(created)),
    anchorAt: milliseconds(numberOf(billing_cycle_anchor)),
    cancelAtPeriodEnd:
      subscription.cancel_at_period_end === true || typeof subscription.cancel_at === 'number',
    endedAt: ended_at === null ? null : milliseconds(numberOf(ended_at)),
  };
}

function priceOf(price: Stripe.Price): ProviderPrice {
  const { recurring } = price;
  const isTiered = price.billing_scheme === 'tiered';
  const cents = (amount: { readonly unit_amount_decimal: unknown }) =>
    String(amount.unit_amount_decimal ?? '0');
  return {
    id: textOf(price.id),
    isActive: price.active === true,
    currency: textOf(price.currency),
    isMonthly: recurring?.interval === 'month' && recurring.interval_count === 1,
    meterId: recurring?.usage_type === 'metered' ? textOf(recurring.meter) : null,
    tiers: isTiered
      ? (price.tiers ?? []).map((tier) => ({
          upTo: tier.up_to,
          cents: cents(tier),
          flatCents: String(tier.flat_amount_decimal ?? '0'),
        }))
      : [{ upTo: null, cents: cents(price), flatCents: '0' }],
    isPlain: price.transform_quantity === null && (!isTiered || price.tiers_mode === 'graduated'),
  };
}

function readSignedEvent(
  bytes: Uint8Array,
  signature: string,
  {
    secrets,
    nowMs,
    isLive,
  }: { readonly secrets: readonly string[]; readonly nowMs: number; readonly isLive: boolean },
): ProviderEvent | null {
  const payload = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (const secret of secrets) {
    try {
      const tolerance = limits.webhookToleranceMs / 1_000;
      return eventOf(
        Stripe.webhooks.constructEvent(payload, signature, secret, tolerance, undefined, nowMs),
        isLive,
      );
    } catch (error) {
      if (error instanceof Stripe.errors.StripeSignatureVerificationError) continue;
      if (error instanceof ApiError) throw error;
      throw new ApiError('bad_request', 'the body is signed, and it is no event', { cause: error });
    }
  }
  return null;
}

function eventOf(event: Stripe.Event, isLive: boolean): ProviderEvent {
  const { id, type, livemode, account } = event;
  const about = event.data?.object as { object?: unknown; id?: unknown; customer?: unknown } | undefined;
  if (
    typeof id !== 'string' ||
    id.length > limits.paymentIdCharactersMax ||
    typeof type !== 'string' ||
    typeof about !== 'object'
  )
    throw new ApiError('bad_request', 'the body is signed, and it is no event');
  const customer = about?.object === 'customer' ? about.id : idOf(about?.customer);
  const customerId = typeof customer === 'string' && /^[A-Za-z0-9_]{1,255}$/.test(customer) ? customer : null;
  return { id, type, customerId, isOurs: livemode === isLive && (account === undefined || account === null) };
}

/** An object of Stripe's may stand for itself, or by its id. */
function idOf(value: unknown): unknown {
  return typeof value === 'object' && value !== null && 'id' in value ? value.id : value;
}

function textOf(value: unknown): string {
  if (typeof value === 'string' && value !== '') return value;
  throw new TypeError('a field that must be text is not');
}

function numberOf(value: unknown): number {
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  throw new TypeError('a field that must be a number is not');
}

/** Does a request, whose every failure is a PaymentError. */
async function asked<T>(request: () => Promise<T>): Promise<T> {
  try {
    return await request();
  } catch (error) {
    throw paymentError(error);
  }
}

function paymentError(cause: unknown): PaymentError {
  const status = cause instanceof Stripe.errors.StripeError ? cause.statusCode : undefined;
  const answered = status !== undefined && status >= 400;
  // After a wrong key, too many requests or two at once the next try may hear something else.
  const refused = answered && status < 500 && ![401, 403, 409, 429].includes(status);
  const sentence = answered
    ? 'the payment provider refused; nothing was changed: try again later'
    : 'the payment provider did not answer as it should: try again later';
  return new PaymentError(sentence, { answered, refused, cause });
}
