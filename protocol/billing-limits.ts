/** The bounds of billing: part of `limits`, with the same rules. */
export const billingLimits = {
  /** Service: body of an event of the payment provider, which are some kilobytes. */
  webhookBodyBytesMax: 256 * 1024,
  /** Service: how old the signature of such an event may be: as Stripe's own packages have it. */
  webhookToleranceMs: 300_000,
  /** Events of the payment provider that are read and done at once: 32 MB of bodies, and each asks the provider. Past it they come again later. */
  webhooksAtOnceMax: 128,
  /** How long one request to the payment provider may take, and how often it is sent: together within the time that a request of ours has. */
  paymentRequestMs: 8_000,
  paymentTriesMax: 2,
  /** Characters of an id that the payment provider made; its own are below 70. */
  paymentIdCharactersMax: 255,
  /** Ids of events that a tenant's billing record keeps: an older one that comes again has the subscription fetched once more, which is harmless. */
  billingEventsKept: 100,
  /** Service: how long a tenant is served that owes. */
  pastDueServedMs: 14 * 86_400_000,
  /** How long a checkout is open: Stripe takes half an hour to a day; a minute is for the way there. */
  checkoutLeastMs: 31 * 60_000,
  checkoutMostMs: 86_400_000 - 60_000,
  /** How often a checkout begins anew where others change it at the same moment. */
  checkoutTriesMax: 4,
  /** How long after its end an hour is metered: fronts and namespaces tell within seconds, a restart takes a minute. */
  meteredSettleMs: 5 * 60_000,
  /** The same of the last hour of a period: the invoice is a draft for an hour, and nothing can be added to it later. */
  meteredSettlePeriodMs: 30 * 60_000,
  /** How long we count on Stripe to know an identifier of usage again: it promises a day. */
  meterIdentifierKeptMs: 20 * 3_600_000,
  /** How old usage may be for Stripe to take it: 35 days, less one for the way. */
  meterEventsTakenMs: 34 * 86_400_000,
  /** How often billing is looked after, and how soon after a start. */
  billingRoundMs: 5 * 60_000,
  billingFirstRoundMs: 20_000,
  /** Tenants whose billing is looked after at once: each waits for the store and for Stripe. */
  billingTenantsAtOnce: 4,
  /** Customers whose tenant is remembered between two rounds, 100 bytes each. */
  billingCustomersKept: 10_000,
  /** How long a subscription counts as known, where no event came. */
  subscriptionKeptMs: 86_400_000,
} as const;
