import { ApiError } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { midnightFrom } from '../accounts/billing-period.ts';
import { must } from '../base/assert.ts';
import { type BillingRecord, readBilling, updateBilling } from './billing-record.ts';
import { writeCustomerClaim } from './customer-claim.ts';
import { PaymentError } from './payment-provider.ts';
import { isLive } from './subscription-state.ts';
import type { Subscriptions, SubscriptionsComponents } from './subscriptions.ts';

export interface CheckoutComponents extends SubscriptionsComponents {
  readonly subscriptions: Subscriptions;
  /** The plan's own price first. Throws where they are not known to be right. */
  readonly priceIds: () => Promise<readonly string[]>;
  /** The public address of the pages, without a slash at its end. */
  readonly baseUrl: string;
}

/**
 * Pages of the payment provider. A tenant has one customer there, and one open checkout at most: whoever asks while it is open, at
 * the same moment too and on whatever server, gets that one. What is asked for is in the record before it is asked for, and the
 * `Idempotency-Key` is made of it, so that a try that was cut off is completed by the next and leaves nothing double.
 *
 * → the address of the page. Throws 409 where there is a subscription already, and 502.
 */
export async function openCheckout(components: CheckoutComponents, tenantId: number): Promise<string> {
  const { subscriptions, provider, baseUrl, priceIds } = components;
  const prices = await priceIds();
  const customerId = await customerOf(components, tenantId);
  // Another page may have been completed a moment ago, of which nobody has told us yet.
  const fresh = await subscriptions.refresh(tenantId);
  if (fresh.subscription !== null && isLive(fresh.subscription) && fresh.subscription.state !== 'incomplete')
    throw subscribedAlready();
  for (let tries = 0; tries < limits.checkoutTriesMax; tries++) {
    const record = await updateBilling(components, tenantId, (known) =>
      withCheckout(known, components.clock.now()),
    );
    const { sessionId, anchorAt, expiresAt } = must(record.checkout, 'the checkout that was just noted');
    if (sessionId === null) {
      const urls = {
        doneUrl: `${baseUrl}/console#/billing?checkout=done`,
        cancelUrl: `${baseUrl}/console#/billing`,
      };
      const order = { tenantId, customerId, priceIds: prices, anchorAt, expiresAt, ...urls };
      const key = `tidebase ${tenantId} checkout ${anchorAt} ${expiresAt} ${record.attempt}`;
      const asked = { tenantId, attempt: record.attempt };
      const made = await renewing(components, asked, () => provider.createCheckout(order, key));
      await updateBilling(components, tenantId, (known) =>
        known.checkout?.expiresAt === expiresAt
          ? { ...known, checkout: { sessionId: made.id, anchorAt, expiresAt } }
          : known,
      );
      return made.url;
    }
    const { url, isComplete } = await provider.checkout(sessionId);
    if (url !== null) return url;
    if (isComplete) {
      const { subscription } = await subscriptions.refresh(tenantId);
      if (subscription !== null && isLive(subscription)) throw subscribedAlready();
    }
    // It was used up or has ended before its time: the next one is another.
    await updateBilling(components, tenantId, (known) =>
      known.checkout?.sessionId === sessionId
        ? { ...known, checkout: null, attempt: known.attempt + 1 }
        : known,
    );
  }
  throw new ApiError('conflict', 'the checkout is being changed elsewhere: try again', { retryAfter: 1 });
}

/** → the address of the page for cards, invoices and cancelling. Throws 409 where the tenant is no customer yet, and 502. */
export async function openPortal(
  { objectStore, provider, baseUrl }: CheckoutComponents,
  tenantId: number,
): Promise<string> {
  const { customerId } = await readBilling(objectStore, tenantId);
  if (customerId === null)
    throw new ApiError('conflict', 'this tenant has never subscribed: POST /v1/billing/checkout comes first');
  return provider.createPortal(customerId, `${baseUrl}/console#/billing`);
}

async function customerOf(components: CheckoutComponents, tenantId: number): Promise<string> {
  const { objectStore, clock, provider, tenants } = components;
  const known = await readBilling(objectStore, tenantId);
  if (known.customerId !== null) return known.customerId;
  const { name } = must(await tenants.get(tenantId), 'the tenant of a credential');
  const key = `tidebase ${tenantId} customer ${known.attempt}`;
  const customerId = await renewing(components, { tenantId, attempt: known.attempt }, () =>
    provider.createCustomer({ tenantId, name }, key),
  );
  // What leads to the tenant comes first: an event may come as soon as the customer can do anything.
  await writeCustomerClaim(objectStore, clock, { customerId, tenantId });
  const record = await updateBilling(components, tenantId, (now) =>
    now.customerId === null ? { ...now, customerId } : now,
  );
  return must(record.customerId, 'the customer that was just noted');
}

/** What the provider's clock may differ from ours, with the time that a request takes. */
const slackMs = 30_000;

/** Answers the record with a checkout page in it: one that is open and lasts a while yet, or what a new one is to be. */
function withCheckout(record: BillingRecord, nowMs: number): BillingRecord {
  const { checkout } = record;
  const leastMs = checkout?.sessionId === null ? limits.checkoutLeastMs - slackMs : slackMs;
  if (checkout !== null && checkout.expiresAt > nowMs + leastMs) return record;
  // The month begins at the first midnight that the page surely reaches; it is open until then, or for a day.
  const anchorAt = midnightFrom(nowMs + limits.checkoutLeastMs);
  const expiresAt = Math.floor(Math.min(anchorAt, nowMs + limits.checkoutMostMs) / 1_000) * 1_000;
  return { ...record, checkout: { sessionId: null, anchorAt, expiresAt } };
}

/**
 * Asks under a key of the present attempt. What the provider answers to a key it answers to it for a day, failures too, so after one
 * the next try has another key; where nobody knows what became of it the key stays.
 */
async function renewing<T>(
  components: CheckoutComponents,
  { tenantId, attempt }: { readonly tenantId: number; readonly attempt: number },
  ask: () => Promise<T>,
): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof PaymentError && error.answered)
      await updateBilling(components, tenantId, (known) =>
        known.attempt === attempt ? { ...known, attempt: attempt + 1, checkout: openOnly(known) } : known,
      );
    throw error;
  }
}

function openOnly({ checkout }: BillingRecord): BillingRecord['checkout'] {
  return checkout?.sessionId === null ? null : checkout;
}

function subscribedAlready(): ApiError {
  return new ApiError('conflict', 'this tenant has a subscription: POST /v1/billing/portal changes it');
}
