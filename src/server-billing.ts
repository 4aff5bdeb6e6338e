/** Billing, put together by hand for server.ts. */
import type { Plans } from './accounts/plans.ts';
import { systemClock } from './base/clock.ts';
import type { Logger } from './base/log.ts';
import { systemRandom } from './base/random.ts';
import { PaidPlans } from './billing/paid-plans.ts';
import type { PaymentProvider } from './billing/payment-provider.ts';
import { Prices } from './billing/prices.ts';
import type { ObjectStore } from './object-store/object-store.ts';
import type { Tenants } from './router/tenants.ts';
import type { StripeSettings } from './settings.ts';

export interface Payments {
  readonly settings: StripeSettings;
  readonly provider: PaymentProvider;
  readonly prices: Prices;
}

/** Null where no payment provider is set; its package is not even loaded then. Throws PriceError. */
export async function openPayments(
  settings: StripeSettings | null,
  plans: Plans,
  logger: Logger,
): Promise<Payments | null> {
  if (settings === null) return null;
  const { openStripe } = await import('./billing/stripe-provider.ts');
  const provider = openStripe(settings);
  const prices = new Prices({ provider, logger }, settings, plans.pro);
  await prices.checkAtStart();
  return { settings, provider, prices };
}

export function billingOf(
  payments: Payments | null,
  parts: {
    readonly store: ObjectStore;
    readonly tenants: Tenants;
    readonly baseUrl: string;
    readonly logger: Logger;
  },
): PaidPlans | null {
  if (payments === null) return null;
  const { settings, provider, prices } = payments;
  const { store, tenants, baseUrl, logger } = parts;
  return new PaidPlans(
    { objectStore: store, clock: systemClock, random: systemRandom, provider, prices, tenants, logger },
    {
      webhookSecrets: settings.webhookSecrets,
      isLive: /^[sr]k_live_/.test(settings.secretKey),
      baseUrl,
    },
  );
}
