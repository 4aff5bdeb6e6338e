import { ApiError } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import { SerialByKey } from '../base/serial-by-key.ts';
import { type CheckoutComponents, openCheckout, openPortal } from './checkout.ts';
import { keepBilling } from './keep-billing.ts';
import type { Prices } from './prices.ts';
import { Subscriptions, type SubscriptionsComponents } from './subscriptions.ts';
import { tellMetered } from './tell-metered.ts';

export interface PaidPlansComponents extends SubscriptionsComponents {
  readonly prices: Prices;
}

export interface PaidPlansSettings {
  /** Those that sign webhooks; two while they are rotated. */
  readonly webhookSecrets: readonly string[];
  /** Whether the account's key moves real money: events of the other mode are not ours. */
  readonly isLive: boolean;
  /** The public address of the pages, without a slash at its end. */
  readonly baseUrl: string;
}

/** All of billing, as the front has it. */
export class PaidPlans {
  readonly #components: PaidPlansComponents;
  readonly #settings: PaidPlansSettings;
  readonly #subscriptions: Subscriptions;
  readonly #turns = new SerialByKey<number>();

  constructor(components: PaidPlansComponents, settings: PaidPlansSettings) {
    this.#components = components;
    this.#settings = settings;
    this.#subscriptions = new Subscriptions(components);
  }

  checkout(tenantId: number): Promise<string> {
    return this.#turns.run(tenantId, () => openCheckout(this.#checkoutComponents(), tenantId));
  }

  portal(tenantId: number): Promise<string> {
    return openPortal(this.#checkoutComponents(), tenantId);
  }

  /** Takes an event of the provider: durable when it resolves. Throws 400 where it is not signed by the provider. */
  async webhook(bytes: Uint8Array, signature: string | undefined): Promise<void> {
    const { webhookSecrets: secrets, isLive } = this.#settings;
    const nowMs = this.#components.clock.now();
    if (signature === undefined)
      throw unsigned('the header is missing; only the payment provider calls this');
    const event = this.#components.provider.readSignedEvent(bytes, signature, { secrets, nowMs, isLive });
    const seconds = limits.webhookToleranceMs / 1_000;
    if (event === null)
      throw unsigned(
        `this body was not signed with the webhook's secret within the last ${seconds} seconds; check STRIPE_WEBHOOK_SECRET and the clock`,
      );
    await this.#subscriptions.take(event);
  }

  /** Before a tenant is deleted: tells what it has used, and ends what it would go on paying for. Throws 502. */
  async end(tenantId: number): Promise<void> {
    await tellMetered(this.#tellComponents(), tenantId, { isLast: true });
    await this.#subscriptions.endAll(tenantId);
  }

  /** Looks after all tenants from now on, whenever this server is the one that does; the answer stops it. */
  keep(isMine: () => boolean): () => void {
    return keepBilling({ ...this.#tellComponents(), subscriptions: this.#subscriptions, isMine });
  }

  close(): void {
    this.#components.provider.close();
  }

  #tellComponents() {
    return { ...this.#components, meters: () => this.#components.prices.meters() };
  }

  #checkoutComponents(): CheckoutComponents {
    const { prices } = this.#components;
    const { baseUrl } = this.#settings;
    return {
      ...this.#components,
      subscriptions: this.#subscriptions,
      baseUrl,
      priceIds: () => prices.ids(),
    };
  }
}

function unsigned(sentence: string): ApiError {
  return new ApiError('bad_request', `Stripe-Signature: ${sentence}`);
}
