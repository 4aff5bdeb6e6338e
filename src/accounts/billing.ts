import type { UsageCounters } from '../../protocol/stored-tenant.ts';
import type { Plan } from './plans.ts';
import { gbMonths, type Period } from './usage.ts';

/**
 * What a period costs, in the currency of the plan's prices, as the payment provider's invoice will say it: usage is counted in
 * whole units, rounded down; units past what the plan includes are charged; each line is rounded to whole cents, half a cent up.
 * Both sides use this table, so they agree to the cent. Pure.
 */
export interface Bill {
  /** The plan's price a month. */
  readonly base: number;
  readonly storage: number;
  readonly writes: number;
  readonly queries: number;
  /** Tokens of the hosted model. */
  readonly embedding: number;
  /** Reads of the object store. */
  readonly reads: number;
  /** All of these but the base. */
  readonly usage: number;
  readonly total: number;
}

/** The parts of a bill that are metered. */
export const meteredParts = ['storage', 'writes', 'queries', 'embedding', 'reads'] as const;
export type MeteredPart = (typeof meteredParts)[number];
/** Whole units of each part. */
export type Units = Readonly<Record<MeteredPart, number>>;

interface PartRule {
  /** Units in what the plan's price and allowance are of. */
  readonly unitsEach: number;
  readonly used: (usage: UsageCounters, period: Period) => number;
  readonly included: (plan: Plan) => number | null;
  readonly price: (plan: Plan) => number;
}

const partRules: Readonly<Record<MeteredPart, PartRule>> = {
  /** A unit is a megabyte that is stored for the month. */
  storage: {
    unitsEach: 1_000,
    used: (usage, period) => gbMonths(usage, period) * 1_000,
    included: (plan) => plan.included_gb_months,
    price: (plan) => plan.per_gb_month,
  },
  /** A unit is a megabyte. */
  writes: {
    unitsEach: 1_000,
    used: ({ writeBytes }) => writeBytes / 1e6,
    included: (plan) => plan.included_write_gb,
    price: (plan) => plan.per_gb_written,
  },
  queries: {
    unitsEach: 1e6,
    used: ({ queries }) => queries,
    included: (plan) => (plan.included_queries === null ? null : plan.included_queries / 1e6),
    price: (plan) => plan.per_million_queries,
  },
  /** A unit is a token. */
  embedding: {
    unitsEach: 1e6,
    used: ({ hostedTokens }) => hostedTokens,
    included: (plan) => (plan.included_embed_tokens === null ? null : plan.included_embed_tokens / 1e6),
    price: (plan) => plan.per_million_embed_tokens,
  },
  /** A unit is a GET. */
  reads: {
    unitsEach: 1e6,
    used: ({ storeGets }) => storeGets,
    included: (plan) => (plan.included_store_gets === null ? null : plan.included_store_gets / 1e6),
    price: (plan) => plan.per_million_store_gets,
  },
};

/** Fractions of a cent that prices of a unit are whole numbers of: the provider takes twelve digits. */
const fractionsOfCent = 10n ** 12n;

/** What is used in a period, in whole units. A sum of fractions may miss a whole number by some of its last digits. */
export function unitsOf(usage: UsageCounters, period: Period): Units {
  const units = (part: MeteredPart) =>
    Math.floor(Number(partRules[part].used(usage, period).toPrecision(12)));
  return Object.fromEntries(meteredParts.map((part) => [part, units(part)])) as Record<MeteredPart, number>;
}

/** Units of a part that the plan's price covers; null: all. */
export function includedUnits(plan: Plan, part: MeteredPart): number | null {
  const { included, unitsEach } = partRules[part];
  const whole = included(plan);
  return whole === null ? null : Math.floor(Number((whole * unitsEach).toPrecision(12)));
}

/** The price of one unit past what is included, in cents, as a decimal of at most twelve digits. */
export function unitPriceCents(plan: Plan, part: MeteredPart): string {
  const fractions = unitPrice(plan, part);
  const digits = (fractions % fractionsOfCent).toString().padStart(12, '0').replace(/0+$/, '');
  return `${fractions / fractionsOfCent}${digits === '' ? '' : `.${digits}`}`;
}

function unitPrice(plan: Plan, part: MeteredPart): bigint {
  const { price, unitsEach } = partRules[part];
  return BigInt(Math.round((price(plan) * 100 * Number(fractionsOfCent)) / unitsEach));
}

function lineCents(plan: Plan, part: MeteredPart, units: number): number {
  const included = includedUnits(plan, part);
  if (included === null || units <= included) return 0;
  return Number((BigInt(units - included) * unitPrice(plan, part) + fractionsOfCent / 2n) / fractionsOfCent);
}

/** `billed` false: before a subscription's first month, which costs nothing. */
export function billOf(
  plan: Plan,
  usage: UsageCounters,
  period: Period & { readonly billed?: boolean },
): Bill {
  const isFree = period.billed === false;
  const units = unitsOf(usage, period);
  const cents = meteredParts.map((part) => (isFree ? 0 : lineCents(plan, part, units[part])));
  const [storage = 0, writes = 0, queries = 0, embedding = 0, reads = 0] = cents.map(inMoney);
  const base = isFree ? 0 : Math.round(plan.price_month * 100);
  const sum = cents.reduce((total, line) => total + line, 0);
  return {
    base: inMoney(base),
    storage,
    writes,
    queries,
    embedding,
    reads,
    usage: inMoney(sum),
    total: inMoney(base + sum),
  };
}

const inMoney = (cents: number) => cents / 100;
