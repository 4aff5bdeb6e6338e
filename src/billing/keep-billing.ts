import type { TenantId } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import { hourMs } from '../accounts/usage.ts';
import { describeError } from '../base/log.ts';
import { LruMap } from '../base/lru.ts';
import { repeat } from '../base/repeat.ts';
import { readBilling } from './billing-record.ts';
import { customerIds, tenantOfCustomer } from './customer-claim.ts';
import { isLive, nextChangeAt } from './subscription-state.ts';
import type { Subscriptions } from './subscriptions.ts';
import { type TellComponents, tellMetered } from './tell-metered.ts';

export interface KeepBillingComponents extends TellComponents {
  readonly subscriptions: Subscriptions;
}

export interface KeptBilling extends KeepBillingComponents {
  /** Whether this server does it for all, now. */
  readonly isMine: () => boolean;
}

/**
 * Goes through all customers every few minutes: whose subscription was not looked at for a day is fetched, in case that events were
 * missed; who owes for too long is suspended; and what was used in the hours that have ended is told to the meters. No request
 * waits for any of it. One server does it for all; while the servers change two may, and each hour is planned by one of them. The answer
 * stops it.
 */
export function keepBilling(components: KeptBilling): () => void {
  const { clock, logger } = components;
  const rounds = new BillingRounds(components);
  return repeat(clock, limits.billingFirstRoundMs, async () => {
    try {
      if (components.isMine()) await rounds.run();
    } catch (error) {
      logger.error('billing was not looked after: it is tried again', { error: describeError(error) });
    }
    return limits.billingRoundMs;
  });
}

export class BillingRounds {
  readonly #components: KeepBillingComponents;
  /** Claims never change. */
  readonly #tenants = new LruMap<string, TenantId>(limits.billingCustomersKept);

  constructor(components: KeepBillingComponents) {
    this.#components = components;
  }

  /** One tenant's failure is not another's: it is logged, and the next round tries again. */
  async run(): Promise<void> {
    const { objectStore, logger } = this.#components;
    const all = customerIds(objectStore);
    const some = async () => {
      for (let next = await all.next(); !next.done; next = await all.next()) {
        const tenantId = await this.#tenantOf(next.value);
        if (tenantId === null) continue;
        await this.#lookAfter(tenantId).catch((error: unknown) =>
          logger.error('the billing of a tenant failed: it is tried again', {
            tenantId,
            error: describeError(error),
          }),
        );
      }
    };
    await Promise.all(Array.from({ length: limits.billingTenantsAtOnce }, some));
  }

  async #lookAfter(tenantId: TenantId): Promise<void> {
    const { clock, objectStore, subscriptions } = this.#components;
    const record = await readBilling(objectStore, tenantId);
    const { subscription, change, told, fetchedAt } = record;
    if (record.customerId === null) return;
    const nowMs = clock.now();
    if (nowMs >= fetchedAt + limits.subscriptionKeptMs) await subscriptions.refresh(tenantId);
    else if (
      change?.status === 'past_due' &&
      nowMs >= (nextChangeAt(subscription) ?? Number.POSITIVE_INFINITY)
    )
      await subscriptions.age(tenantId);
    if (subscription === null) return;
    const isOver = !isLive(subscription) && told !== null && told.hours.length === 0;
    if (isOver && told.until >= (subscription.endedAt ?? 0)) return;
    // What was told until an hour ago, and has all arrived, has nothing to be told yet.
    if (told !== null && told.hours.length === 0 && nowMs < told.until + hourMs + limits.meteredSettleMs)
      return;
    await tellMetered(this.#components, tenantId);
  }

  async #tenantOf(customerId: string): Promise<TenantId | null> {
    const known = this.#tenants.get(customerId);
    if (known !== undefined) return known;
    const tenantId = await tenantOfCustomer(this.#components.objectStore, customerId);
    if (tenantId !== null) this.#tenants.set(customerId, tenantId);
    return tenantId;
  }
}
