/**
 * Plans, prices and limits as data: built in, or from the operator's plans file (`TIDEBASE_PLANS_FILE`).
 * Field names are those of the interface (the `plan` of a usage answer). Null means: no limit.
 */
import { limits } from '../../protocol/limits.ts';

export type PlanName = 'free' | 'pro';

export interface Plan {
  readonly name: PlanName;
  /** Prices are in one currency of the operator's choice. */
  readonly price_month: number;
  /** What a period includes. With `hard_limit` the use past it is refused, otherwise billed at the `per_…` price. */
  readonly included_gb_months: number | null;
  readonly included_write_gb: number | null;
  readonly included_queries: number | null;
  /** Write requests; an import is one. */
  readonly included_writes: number | null;
  /** Tokens of the hosted embedding model. */
  readonly included_embed_tokens: number | null;
  readonly per_gb_month: number;
  readonly per_gb_written: number;
  readonly per_million_queries: number;
  readonly per_million_embed_tokens: number;
  readonly per_million_store_gets: number;
  readonly hard_limit: boolean;
  /** Requests a second and requests in flight: per tenant and per key, per server. */
  readonly qps: number | null;
  readonly concurrency: number | null;
  readonly storage_quota_gb: number | null;
  /** Object-storage bytes that a tenant's running queries may hold at once, per server. */
  readonly read_inflight_mb: number | null;
  readonly sql_seconds: number;
  readonly sql_concurrency: number | null;
  readonly query_seconds: number;
  readonly max_namespaces: number | null;
  readonly included_cpu_seconds: number | null;
  readonly included_store_gets: number | null;
  readonly included_out_gb: number | null;
  readonly max_creates_day: number | null;
  /** What part of the allowances and of the storage quota a tenant has whose owner's address is not verified. */
  readonly unverified_share: number;
}

/** How often a credential may be guessed or a mail be asked for. Per-address limits spare loopback clients. */
export interface AttemptLimits {
  /** Requests without credentials, of all kinds together: counted before their body is read. */
  readonly open_per_address_minute: number | null;
  /** From one network: past it that network has to wait, longer with each failure, until the first of them leave the window. */
  readonly login_failures_per_account_and_network: number | null;
  /** From all networks together: past it every login of the account is held for the seconds below, and none is refused. */
  readonly login_failures_per_account: number | null;
  readonly login_account_delay_seconds: number;
  /** The window in which the failures of both count. */
  readonly login_window_seconds: number;
  readonly login_per_address_minute: number | null;
  readonly signup_per_address_hour: number | null;
  /** OAuth clients that register themselves. */
  readonly register_per_address_hour: number | null;
  readonly forgot_per_account_hour: number | null;
  readonly forgot_per_address_hour: number | null;
}

export interface Plans {
  readonly free: Plan;
  readonly pro: Plan;
  readonly attempts: AttemptLimits;
}

/** A longer query would meet the deadline of its request, and hold what it reads for as long. */
export const querySecondsMax = 30;

const gigabyte = 1e9;

/** Who pays has shown that there is somebody: only a free plan is cut. */
export function allowedShare({ name, unverified_share }: Plan, ownerVerified: boolean): number {
  return ownerVerified || name !== 'free' ? 1 : unverified_share;
}

/** How much of a busy server a tenant's owner gets beside others: who pays most, who has not shown an address least. */
export function shareWeight(name: PlanName, ownerVerified: boolean): number {
  if (name === 'pro') return limits.shareWeightPro;
  return ownerVerified ? limits.shareWeightFree : limits.shareWeightUnverified;
}

/** What a tenant of the plan may have in the store, in bytes; null: no limit. */
export function storageQuotaBytes(
  plan: Plan,
  { ownerVerified }: { readonly ownerVerified: boolean },
): number | null {
  const { storage_quota_gb } = plan;
  if (storage_quota_gb === null) return null;
  return Math.floor(storage_quota_gb * gigabyte * allowedShare(plan, ownerVerified));
}

export const builtInPlans: Plans = {
  free: {
    name: 'free',
    price_month: 0,
    included_gb_months: 1,
    included_write_gb: 1,
    included_queries: 100_000,
    included_writes: 100_000,
    included_embed_tokens: 1_000_000,
    per_gb_month: 0,
    per_gb_written: 0,
    per_million_queries: 0,
    per_million_embed_tokens: 0,
    per_million_store_gets: 0,
    hard_limit: true,
    qps: 100,
    concurrency: 16,
    storage_quota_gb: 1,
    read_inflight_mb: 64,
    sql_seconds: 10,
    sql_concurrency: 2,
    query_seconds: 10,
    max_namespaces: 1_000,
    included_cpu_seconds: 3_600,
    included_store_gets: 1_000_000,
    included_out_gb: 10,
    max_creates_day: 1_000,
    unverified_share: 0.01,
  },
  pro: {
    name: 'pro',
    price_month: 20,
    included_gb_months: 10,
    included_write_gb: 10,
    included_queries: 1_000_000,
    included_writes: null,
    included_embed_tokens: 1_000_000,
    per_gb_month: 0.25,
    per_gb_written: 1,
    per_million_queries: 4,
    // The cost of running the hosted model, without margin.
    per_million_embed_tokens: 0.02,
    per_million_store_gets: 0,
    hard_limit: false,
    qps: 1_000,
    concurrency: 64,
    storage_quota_gb: null,
    read_inflight_mb: 256,
    sql_seconds: 30,
    sql_concurrency: 8,
    query_seconds: 10,
    max_namespaces: null,
    included_cpu_seconds: null,
    included_store_gets: null,
    included_out_gb: null,
    max_creates_day: null,
    unverified_share: 1,
  },
  attempts: {
    open_per_address_minute: 120,
    login_failures_per_account_and_network: 10,
    login_failures_per_account: 30,
    login_account_delay_seconds: 3,
    login_window_seconds: 900,
    login_per_address_minute: 30,
    signup_per_address_hour: 20,
    register_per_address_hour: 10,
    forgot_per_account_hour: 3,
    forgot_per_address_hour: 10,
  },
};
