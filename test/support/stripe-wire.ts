/** What the stand-in for Stripe keeps, how it refuses, and how requests are written. */
import type { Fields } from './stripe-objects.ts';

export interface StoredSubscription {
  readonly id: string;
  readonly customer: string;
  readonly metadata: Fields;
  readonly created: number;
  readonly prices: readonly string[];
  anchor: number;
  period: { start: number; end: number };
  state: string;
  cancelAtPeriodEnd: boolean;
  endedAt: number | null;
  latestInvoice: string | null;
}

export interface StoredInvoice {
  readonly id: string;
  readonly subscription: string;
  readonly customer: string;
  readonly created: number;
  /** The period whose usage it is over. */
  readonly from: number;
  readonly to: number;
  /** Cents of the next month, in advance. */
  readonly baseCents: number;
  status: 'draft' | 'open' | 'paid';
  finalizedAt: number | null;
  /** Cents by price, once it is final. */
  lines: Record<string, number>;
}

export interface TakenMeterEvent {
  readonly eventName: string;
  readonly customer: string;
  readonly value: number;
  readonly identifier: string;
  readonly timestamp: number;
  readonly receivedAt: number;
}

export interface Exchange {
  readonly operation: string;
  readonly request: Fields;
  readonly status: number;
  readonly answer: unknown;
}

/** How a request fails: with this status before anything is done; done, and then no answer; nothing, and no answer; no JSON. */
export type Fault = number | 'lost-answer' | 'no-answer' | 'garbage';

export class Refusal extends Error {
  readonly status: number;
  readonly code: string;
  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export const missing = (what: unknown) =>
  new Refusal(404, 'resource_missing', `No such object: '${String(what)}'`);
export const invalid = (message: string) => new Refusal(400, 'parameter_invalid', message);

/** The price of units, with decimals of a cent, rounded to whole cents, half a cent up. */
export function centsOf(units: number, cents: string): number {
  const [whole = '0', digits = ''] = cents.split('.');
  const fractions = BigInt(whole + digits.padEnd(12, '0'));
  const one = 10n ** 12n;
  return Number((BigInt(units) * fractions + one / 2n) / one);
}

/** The path with `{id}` where an id is. */
export function templateOf(path: string): string {
  return path.replace(/\/(cus|cs|sub|in|price|mtr)_[^/]+/, '/{id}');
}

/** `a[b][0][c]=1` as objects and arrays of text. */
export function decodeForm(text: string): Fields {
  const root: Fields = {};
  for (const [name, value] of new URLSearchParams(text)) {
    const path = [...name.matchAll(/[^[\]]+/g)].map(([part]) => part);
    let at: Fields = root;
    for (const part of path.slice(0, -1)) {
      at[part] ??= {};
      at = at[part] as Fields;
    }
    at[path.at(-1) ?? ''] = value;
  }
  return withArrays(root) as Fields;
}

function withArrays(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([key, inner]) => [key, withArrays(inner)] as const);
  const isArray = entries.length > 0 && entries.every(([key], index) => key === String(index));
  return isArray ? entries.map(([, inner]) => inner) : Object.fromEntries(entries);
}
