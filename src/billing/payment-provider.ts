import { ApiError } from '../../protocol/errors.ts';
import type { MeteredPart } from '../accounts/billing.ts';

/**
 * The payment provider as the rest of the house knows it: what we ask of it, in our words. stripe-provider.ts is the one that
 * there is. Every method but `readSignedEvent` may throw PaymentError and nothing else. Times are milliseconds since 1970.
 */
export interface PaymentProvider {
  /** → the customer's id. With one key it is one customer, however often it is asked for within a day. */
  createCustomer(of: { readonly tenantId: number; readonly name: string }, key: string): Promise<string>;
  /** Opens a page on which the customer subscribes. With one key it is one page. */
  createCheckout(order: CheckoutOrder, key: string): Promise<{ readonly id: string; readonly url: string }>;
  /** `url` is null unless the page is open. */
  checkout(id: string): Promise<{ readonly isComplete: boolean; readonly url: string | null }>;
  /** Closes the page; one that is closed already stays so. */
  expireCheckout(id: string): Promise<void>;
  /** → the address of the page for cards, invoices and cancelling. */
  createPortal(customerId: string, returnUrl: string): Promise<string>;
  /** All subscriptions that the customer has had, newest first, a hundred at most. */
  subscriptions(customerId: string): Promise<readonly ProviderSubscription[]>;
  /** Since when the oldest invoice of the subscription that is due has not been paid; null where none is. */
  unpaidSince(subscriptionId: string): Promise<number | null>;
  /** Ends the subscription at once, with an invoice over what was used; one that has ended stays so. */
  cancel(subscriptionId: string): Promise<void>;
  price(id: string): Promise<ProviderPrice>;
  meter(id: string): Promise<ProviderMeter>;
  /** Tells a meter. One that was told with the same identifier within a day is not counted again, and is success too. */
  tellMeter(event: MeterEvent): Promise<void>;
  /** What a meter was told of a customer in a span of time; both ends are whole minutes. */
  meteredValue(of: {
    readonly meterId: string;
    readonly customerId: string;
    readonly fromMs: number;
    readonly toMs: number;
  }): Promise<number>;
  /**
   * The event of a webhook; null where none of the secrets has signed these bytes within the last minutes. Asks nobody. Throws
   * 400 where they are no event.
   */
  readSignedEvent(
    bytes: Uint8Array,
    signature: string,
    by: { readonly secrets: readonly string[]; readonly nowMs: number; readonly isLive: boolean },
  ): ProviderEvent | null;
  /** Lets its connections go. */
  close(): void;
}

export interface CheckoutOrder {
  readonly tenantId: number;
  readonly customerId: string;
  /** The first is the plan's own, the others are metered. */
  readonly priceIds: readonly string[];
  /** When the first month begins. */
  readonly anchorAt: number;
  readonly expiresAt: number;
  readonly doneUrl: string;
  readonly cancelUrl: string;
}

/** Every state that the provider knows of a subscription. */
export const subscriptionStates = [
  'incomplete',
  'incomplete_expired',
  'trialing',
  'active',
  'past_due',
  'canceled',
  'unpaid',
  'paused',
] as const;
export type SubscriptionState = (typeof subscriptionStates)[number];

export interface ProviderSubscription {
  readonly id: string;
  readonly state: SubscriptionState;
  /** The tenant that it was made for, as its checkout wrote it; null where it is none of ours. */
  readonly tenantId: number | null;
  readonly createdAt: number;
  readonly anchorAt: number;
  readonly cancelAtPeriodEnd: boolean;
  readonly endedAt: number | null;
}

export interface ProviderPrice {
  readonly id: string;
  readonly isActive: boolean;
  readonly currency: string;
  readonly isMonthly: boolean;
  /** Null where the price is not of metered usage. */
  readonly meterId: string | null;
  /** Cents a unit as a decimal, up to a number of units; the last has no end. */
  readonly tiers: readonly {
    readonly upTo: number | null;
    readonly cents: string;
    readonly flatCents: string;
  }[];
  /** Whether units are counted as they are, each at the price of its own tier. */
  readonly isPlain: boolean;
}

export interface ProviderMeter {
  readonly id: string;
  readonly eventName: string;
  readonly isActive: boolean;
  /** Whether it adds up values under the names that we send them by. */
  readonly isSum: boolean;
}

export interface MeterEvent {
  readonly part: MeteredPart;
  readonly eventName: string;
  readonly customerId: string;
  readonly units: number;
  readonly identifier: string;
  readonly atMs: number;
}

/** An event of the provider, of which nothing is believed but that something changed, and for whom. */
export interface ProviderEvent {
  readonly id: string;
  readonly type: string;
  /** Null: it is about no customer. */
  readonly customerId: string | null;
  /** Whether it is of the account and mode that our key belongs to. */
  readonly isOurs: boolean;
}

/** The provider did not do what it was asked: 502 `billing_failed`. */
export class PaymentError extends ApiError {
  override name = 'PaymentError';
  /** Whether the provider answered, and so has done nothing; else nobody knows. */
  readonly answered: boolean;
  /** Whether it will say the same again, because the request itself is wrong. */
  readonly refused: boolean;

  constructor(
    sentence: string,
    {
      answered,
      refused,
      cause,
    }: { readonly answered: boolean; readonly refused: boolean; readonly cause: unknown },
  ) {
    super('billing_failed', sentence, { cause, retryAfter: 5 });
    this.answered = answered;
    this.refused = refused;
  }
}
