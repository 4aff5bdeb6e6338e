import { includedUnits, type MeteredPart, meteredParts, unitPriceCents } from '../accounts/billing.ts';
import type { Plan } from '../accounts/plans.ts';
import type { PaymentProvider, ProviderMeter, ProviderPrice } from './payment-provider.ts';
import type { Meters, PartMeter } from './tell-metered.ts';

/** The prices of the operator's account, by their ids. */
export interface PriceSettings {
  /** The plan's price a month. */
  readonly priceId: string;
  /** The metered parts of the bill, each with the name of the events that its meter takes. */
  readonly usagePrices: Readonly<
    Partial<Record<MeteredPart, { readonly price: string; readonly meter: string }>>
  >;
}

/** A price at the payment provider is not what the plan says; the message is a sentence for the operator. */
export class PriceError extends Error {
  override name = 'PriceError';
}

/** Currencies whose smallest unit is no hundredth: our bills are in cents. */
const withoutCents = new Set(
  'bif clp djf gnf jpy kmf krw mga pyg rwf ugx vnd vuv xaf xof xpf bhd jod kwd omr tnd'.split(' '),
);

/**
 * Fetches all prices and meters, and holds them against the plan: else our bill and the invoice would be two. Throws PriceError,
 * and PaymentError where the provider can't be asked.
 */
export async function checkPrices(
  provider: Pick<PaymentProvider, 'price' | 'meter'>,
  { priceId, usagePrices }: PriceSettings,
  plan: Plan,
): Promise<Meters> {
  const base = await provider.price(priceId);
  refuse('STRIPE_PRICE_ID', basePriceProblem(base, plan));
  const meters = new Map<MeteredPart, PartMeter>();
  for (const part of meteredParts) {
    const setting = usagePrices[part];
    if (setting === undefined) {
      const isFree = unitPriceCents(plan, part) === '0' || includedUnits(plan, part) === null;
      refuse('STRIPE_USAGE_PRICES', isFree ? null : `must have "${part}": the plan has a price for it`);
      continue;
    }
    const price = await provider.price(setting.price);
    const name = `STRIPE_USAGE_PRICES, "${part}": ${setting.price}`;
    refuse(name, usagePriceProblem(price, { plan, part, currency: base.currency }));
    const meter = await provider.meter(price.meterId ?? '');
    refuse(name, meterProblem(meter, setting.meter));
    meters.set(part, { id: meter.id, eventName: meter.eventName });
  }
  return meters;
}

function refuse(name: string, problem: string | null): void {
  if (problem !== null) throw new PriceError(`${name} ${problem}`);
}

function basePriceProblem(price: ProviderPrice, plan: Plan): string | null {
  const cents = String(Math.round(plan.price_month * 100));
  if (withoutCents.has(price.currency))
    return `is in ${price.currency}, which has no cents: bills are counted in cents`;
  if (price.meterId !== null) return 'must be a price of no metered usage';
  return (
    commonProblem(price) ??
    (sameCents(onlyPrice(price), cents) ? null : `must be ${cents} cents a month, as the plans say`)
  );
}

function usagePriceProblem(
  price: ProviderPrice,
  { plan, part, currency }: { readonly plan: Plan; readonly part: MeteredPart; readonly currency: string },
): string | null {
  if (price.currency !== currency) return `is in ${price.currency}, and the plan's price in ${currency}`;
  if (price.meterId === null) return 'must be a price of metered usage, with a meter';
  const problem = commonProblem(price);
  if (problem !== null) return problem;
  const [cents, included] = [unitPriceCents(plan, part), includedUnits(plan, part)];
  const wanted =
    included === null || included === 0
      ? `${included === null ? 0 : cents} cents a unit`
      : `graduated: ${included} units free, then ${cents} cents each`;
  return isAsPlanned(price, { cents, included }) ? null : `must be ${wanted}, as the plans say`;
}

function isAsPlanned(
  price: ProviderPrice,
  { cents, included }: { readonly cents: string; readonly included: number | null },
): boolean {
  if (included === null) return sameCents(onlyPrice(price), '0');
  if (included === 0) return sameCents(onlyPrice(price), cents);
  const [free, rest, ...more] = price.tiers;
  return (
    more.length === 0 &&
    free?.upTo === included &&
    sameCents(free.cents, '0') &&
    rest?.upTo === null &&
    sameCents(rest.cents, cents) &&
    sameCents(free.flatCents, '0') &&
    sameCents(rest.flatCents, '0')
  );
}

function commonProblem({ isActive, isMonthly, isPlain }: ProviderPrice): string | null {
  if (!isActive) return 'is not active any more';
  if (!isMonthly) return 'must be a price a month';
  return isPlain ? null : 'must count units as they are: no packages, and tiers graduated';
}

/** Null where it has several. */
function onlyPrice({ tiers }: ProviderPrice): string | null {
  const [only, ...more] = tiers;
  return only === undefined || more.length > 0 || !sameCents(only.flatCents, '0') ? null : only.cents;
}

/** Decimals may be written in several ways. */
function sameCents(a: string | null, b: string): boolean {
  return a !== null && a.trim() !== '' && Number(a) === Number(b);
}

function meterProblem(meter: ProviderMeter, eventName: string): string | null {
  if (meter.eventName !== eventName)
    return `has a meter of "${meter.eventName}" events, and not of "${eventName}"`;
  if (!meter.isActive) return 'has a meter that is not active any more';
  return meter.isSum
    ? null
    : 'must have a meter that adds up "value" by "stripe_customer_id", without a time window';
}
