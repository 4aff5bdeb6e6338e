/**
 * What a plan with a hard limit lets a tenant use in a period. An unverified owner's tenant has a share of it. Pure.
 */
import type { Used } from '../../protocol/messages.ts';
import { allowedShare, type Plan } from './plans.ts';

export const nothingUsed: Used = {
  queries: 0,
  writes: 0,
  writeBytes: 0,
  storeGets: 0,
  outBytes: 0,
  cpuMs: 0,
  hostedTokens: 0,
  gbMonths: 0,
};

/** `delete`: a write that frees what it writes: it needs no room. */
export type Need = 'query' | 'write' | 'delete' | 'hosted-tokens';

/** An allowance that is used up. */
export interface UsedUp {
  /** What of: for a sentence that begins with it. */
  readonly what: string;
  readonly included: number;
  /** The whole plan's would not be used up: the owner's address is not verified. */
  readonly unverified: boolean;
}

interface Allowance {
  readonly needs: readonly Need[];
  readonly what: string;
  readonly included: (plan: Plan) => number | null;
  readonly used: (used: Used) => number;
}

const storedMonths = (used: Used) => used.gbMonths;

/**
 * Whether the quota alone keeps a tenant within its GB-months. Only one that had another plan before can have used more, and it is told
 * by the quota, 507, until it stores less.
 */
function isBoundByQuota({ storage_quota_gb }: Plan, gbMonths: number): boolean {
  return storage_quota_gb !== null && storage_quota_gb <= gbMonths;
}

const allowances: readonly Allowance[] = [
  {
    needs: ['query'],
    what: 'queries',
    included: (plan) => plan.included_queries,
    used: (used) => used.queries,
  },
  {
    needs: ['query'],
    what: 'seconds of query CPU',
    included: (plan) => plan.included_cpu_seconds,
    used: (used) => used.cpuMs / 1_000,
  },
  {
    needs: ['query'],
    what: 'object-storage reads',
    included: (plan) => plan.included_store_gets,
    used: (used) => used.storeGets,
  },
  {
    needs: ['query'],
    what: 'GB of answers',
    included: (plan) => plan.included_out_gb,
    used: (used) => used.outBytes / 1e9,
  },
  {
    needs: ['write', 'delete'],
    what: 'write requests',
    included: (plan) => plan.included_writes,
    used: (used) => used.writes,
  },
  {
    needs: ['write'],
    what: 'GB written',
    included: (plan) => plan.included_write_gb,
    used: (used) => used.writeBytes / 1e9,
  },
  {
    needs: ['write'],
    what: 'GB-months of storage',
    included: (plan) => plan.included_gb_months,
    used: storedMonths,
  },
  {
    needs: ['hosted-tokens'],
    what: 'tokens of the hosted embedding model',
    included: (plan) => plan.included_embed_tokens,
    used: (used) => used.hostedTokens,
  },
];

/** The first allowance that is used up for `need`, or null. Plans without a hard limit bill what is past. */
export function usedUp(
  plan: Plan,
  { ownerVerified }: { readonly ownerVerified: boolean },
  used: Used,
  need: Need,
): UsedUp | null {
  if (!plan.hard_limit) return null;
  const share = allowedShare(plan, ownerVerified);
  for (const { needs, what, included, used: amount } of allowances) {
    const whole = included(plan);
    if (whole === null || !needs.includes(need)) continue;
    if (amount === storedMonths && isBoundByQuota(plan, whole)) continue;
    // To nine digits: a hundred times 0.07 is a little more than 7.
    const [spent, limit] = [amount(used), Number((whole * share).toPrecision(9))];
    if (spent >= limit) return { what, included: limit, unverified: spent < whole };
  }
  return null;
}

/** Whether anything of the plan can be used up at all. */
export function hasAllowances(plan: Plan): boolean {
  return plan.hard_limit && allowances.some(({ included }) => included(plan) !== null);
}

/** For a 402: what is used up, and what to do. `resets`: the first day of the next period. */
export function usedUpSentence({ what, included, unverified }: UsedUp, plan: Plan, resets: string): string {
  const amount = `${shown(included)} ${what}`;
  if (unverified) {
    return `until its owner's e-mail address is verified this tenant has ${Number((plan.unverified_share * 100).toPrecision(6))}% of the ${plan.name} plan, and its ${amount} of this month are used up: verify the address`;
  }
  return `the ${plan.name} plan's ${amount} of this month are used up: wait until ${resets} or upgrade to pro`;
}

/** For a 402: one request needs more than is left. */
export function noRoomSentence(
  { what, included, unverified }: UsedUp,
  plan: Plan,
  { resets, left, needed }: { readonly resets: string; readonly left: number; readonly needed: number },
): string {
  const remedy = unverified
    ? "verify the address of the tenant's owner"
    : `wait until ${resets} or upgrade to pro`;
  return `this request needs at least ${shown(needed)} ${what}, and ${shown(left)} of this month's ${shown(included)} of the ${plan.name} plan are left: send less, or ${remedy}`;
}

function shown(amount: number): string {
  return Number(amount.toPrecision(6)).toLocaleString('en-US');
}
