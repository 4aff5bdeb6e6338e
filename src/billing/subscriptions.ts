import { limits } from '../../protocol/limits.ts';
import type { BillingChange, MeteredUsage, TenantStanding } from '../../protocol/messages.ts';
import type { Logger } from '../base/log.ts';
import type { RecordStore } from '../identity/stored-record.ts';
import { type BillingRecord, type KnownSubscription, readBilling, updateBilling } from './billing-record.ts';
import { tenantOfCustomer } from './customer-claim.ts';
import type { PaymentProvider, ProviderEvent } from './payment-provider.ts';
import { changeFor, decidingSubscription, isLive } from './subscription-state.ts';

/** The tenants, as billing needs them. */
export interface BillingTenants {
  get(tenantId: number): Promise<TenantStanding | null>;
  setBilling(tenantId: number, change: BillingChange): Promise<void>;
  meteredUsage(tenantId: number): Promise<MeteredUsage | null>;
}

export interface SubscriptionsComponents extends RecordStore {
  readonly provider: PaymentProvider;
  readonly tenants: BillingTenants;
  readonly logger: Logger;
}

/**
 * Keeps what tenants are told of their subscriptions at what the subscriptions are.
 *
 * 1. The tenant's billing record is read.
 * 2. Its customer's subscriptions are fetched. An event only says that it is time to.
 * 3. What they are, what follows, and the event's id become one version of the record, by compare-and-set. Whoever loses begins
 *    again at 1: so each version was fetched after the one before it was stored, and the last one is of the last state.
 * 4. The tenant's actor is told: durable, and known to every front. It takes no older version after a newer one.
 * 5. Only now the event is answered. A crash before that leaves it to the next try, which finds the id of the event in the record and
 *    does step 4 again.
 */
export class Subscriptions {
  readonly #components: SubscriptionsComponents;

  constructor(components: SubscriptionsComponents) {
    this.#components = components;
  }

  /** Durable when it resolves. Events that are about nobody of ours are nothing to us, and succeed. */
  async take({ id, type, customerId, isOurs }: ProviderEvent): Promise<void> {
    const { objectStore, logger } = this.#components;
    if (!isOurs || customerId === null || !changesSomething(type)) return;
    const tenantId = await tenantOfCustomer(objectStore, customerId);
    if (tenantId === null) return logger.info('an event is about a customer of nobody here', { event: id });
    await this.refresh(tenantId, id);
  }

  /** Fetches the subscription, and tells the tenant what follows. `eventId`: fetched at most once for it. */
  async refresh(tenantId: number, eventId: string | null = null): Promise<BillingRecord> {
    const record = await updateBilling(this.#components, tenantId, async (known) => {
      if (known.customerId === null) return known;
      if (eventId !== null && known.events.includes(eventId)) return known;
      const nowMs = this.#components.clock.now();
      const subscription = await this.#fetched(tenantId, known.customerId);
      const events =
        eventId === null ? known.events : [...known.events, eventId].slice(-limits.billingEventsKept);
      return withConsequences({ ...known, subscription, events, fetchedAt: nowMs }, nowMs);
    });
    await this.tell(tenantId, record);
    return record;
  }

  /** What the time alone has changed: who owes for too long is suspended. */
  async age(tenantId: number): Promise<void> {
    const record = await updateBilling(this.#components, tenantId, (known) =>
      withConsequences(known, this.#components.clock.now()),
    );
    await this.tell(tenantId, record);
  }

  /** Tells the tenant what its record says; what it knows already changes nothing. */
  async tell(tenantId: number, record: BillingRecord): Promise<void> {
    const { tenants } = this.#components;
    const tenant = await tenants.get(tenantId);
    if (tenant === null || tenant.status === 'deleting') return this.#endAll(tenantId, record);
    if (record.change !== null) await tenants.setBilling(tenantId, record.change);
  }

  /** Ends every subscription of a tenant that is to be deleted, or was: nobody pays for what is not there. */
  async endAll(tenantId: number): Promise<void> {
    await this.#endAll(tenantId, await readBilling(this.#components.objectStore, tenantId));
  }

  async #endAll(tenantId: number, { customerId, checkout }: BillingRecord): Promise<void> {
    const { provider } = this.#components;
    if (customerId === null) return;
    if (checkout !== null && checkout.sessionId !== null) await provider.expireCheckout(checkout.sessionId);
    for (const each of await provider.subscriptions(customerId))
      if (each.tenantId === tenantId && isLive(each)) await provider.cancel(each.id);
  }

  async #fetched(tenantId: number, customerId: string): Promise<KnownSubscription | null> {
    const { provider, logger } = this.#components;
    const all = await provider.subscriptions(customerId);
    const lives = all.filter(
      (each) => each.tenantId === tenantId && isLive(each) && each.state !== 'incomplete',
    );
    if (lives.length > 1)
      logger.error('a tenant has several subscriptions: end all but one', { tenantId, count: lives.length });
    const deciding = decidingSubscription(all, tenantId);
    if (deciding === null) return null;
    const { id, state, anchorAt, cancelAtPeriodEnd, endedAt } = deciding;
    const owes = state === 'past_due' || state === 'unpaid';
    const unpaidSince = owes ? await provider.unpaidSince(id) : null;
    return { id, state, anchorAt, cancelAtPeriodEnd, endedAt, unpaidSince };
  }
}

/** Types of events after which a subscription may be another. */
function changesSomething(type: string): boolean {
  return /^(checkout\.session|customer\.subscription|invoice)\./.test(type);
}

/** The record with what follows from it; a version of its own wherever that is something else than before. */
function withConsequences(record: BillingRecord, nowMs: number): BillingRecord {
  const { plan, status, billing } = changeFor(record.subscription, nowMs);
  const before = record.change;
  const change = { plan, status, billing: { version: (before?.billing.version ?? 0) + 1, ...billing } };
  const same = { ...change, billing: { ...change.billing, version: before?.billing.version } };
  if (JSON.stringify(same) === JSON.stringify(before)) return record;
  // Who never subscribed is told nothing.
  if (before === null && record.subscription === null) return record;
  return { ...record, change };
}
