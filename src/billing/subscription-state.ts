/**
 * What follows for a tenant from its subscription, as one table. It depends on the subscription as it is now and on the time, and on
 * nothing that was heard before: in whatever order events come, or do not come, the end is the same. Pure.
 */
import { limits } from '../../protocol/limits.ts';
import type { BillingChange } from '../../protocol/messages.ts';
import type { BillingStanding, TenantRecord } from '../../protocol/stored-tenant.ts';
import { midnightFrom } from '../accounts/billing-period.ts';
import type { KnownSubscription } from './billing-record.ts';
import type { ProviderSubscription, SubscriptionState } from './payment-provider.ts';

interface Consequence {
  readonly plan: TenantRecord['plan'];
  readonly status: BillingStanding['status'];
  /** Whether somebody owes for it: then it is served for a while, and refused from then on until that is paid. */
  readonly isDue: boolean;
}

const paid = { plan: 'pro', status: 'active', isDue: false } as const;
const due = { plan: 'pro', status: 'past_due', isDue: true } as const;
const over = { plan: 'free', status: 'canceled', isDue: false } as const;
/** Nobody has paid for it yet, or nobody is asked to. */
const none = { plan: 'free', status: 'none', isDue: false } as const;

export const consequences: Readonly<Record<SubscriptionState, Consequence>> = {
  incomplete: none,
  incomplete_expired: none,
  trialing: paid,
  active: paid,
  past_due: due,
  unpaid: due,
  paused: none,
  canceled: over,
};

/** Whether it can still cost something. */
export function isLive({ state }: { readonly state: SubscriptionState }): boolean {
  return state !== 'canceled' && state !== 'incomplete_expired';
}

/** The first of these that a tenant has decides; of equal ones the newest. */
const ranks: readonly SubscriptionState[] = [
  'active',
  'trialing',
  'past_due',
  'unpaid',
  'paused',
  'canceled',
  'incomplete',
  'incomplete_expired',
];

/** The one that counts of all that a tenant has had; null where there is none. */
export function decidingSubscription(
  all: readonly ProviderSubscription[],
  tenantId: number,
): ProviderSubscription | null {
  const own = all.filter((each) => each.tenantId === tenantId);
  const rank = ({ state }: ProviderSubscription) => ranks.indexOf(state);
  return own.toSorted((a, b) => rank(a) - rank(b) || b.createdAt - a.createdAt)[0] ?? null;
}

/** `version` is to be given by whoever stores it. */
export function changeFor(
  subscription: KnownSubscription | null,
  nowMs: number,
): Omit<BillingChange, 'billing'> & { readonly billing: Omit<BillingStanding, 'version'> } {
  if (subscription === null) {
    const billing = { status: 'none', cancelAtPeriodEnd: false, anchorAt: null, endedAt: null } as const;
    return { plan: 'free', status: 'active', billing };
  }
  const { plan, status, isDue } = consequences[subscription.state];
  const { cancelAtPeriodEnd, endedAt } = subscription;
  const isOn = plan === 'pro';
  return {
    plan,
    status: isDue ? dueStatus(subscription, nowMs) : 'active',
    billing: {
      status,
      cancelAtPeriodEnd: isOn && cancelAtPeriodEnd,
      anchorAt: isOn ? midnightFrom(subscription.anchorAt) : null,
      endedAt: isOn ? null : endedAt,
    },
  };
}

function dueStatus({ unpaidSince }: KnownSubscription, nowMs: number): 'past_due' | 'suspended' {
  return unpaidSince !== null && nowMs >= unpaidSince + limits.pastDueServedMs ? 'suspended' : 'past_due';
}

/** When the time alone changes what follows; null: never. */
export function nextChangeAt(subscription: KnownSubscription | null): number | null {
  if (subscription === null || !consequences[subscription.state].isDue) return null;
  return subscription.unpaidSince === null ? null : subscription.unpaidSince + limits.pastDueServedMs;
}
