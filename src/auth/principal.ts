import type { Scope } from '../../protocol/account.ts';
import type { KeyId, PersonId, TenantId } from '../../protocol/ids.ts';
import type { PlanName } from '../accounts/plans.ts';
import type { KeyCaps, Role } from '../accounts/scopes.ts';
import type { Share } from '../base/share.ts';

/** `past_due` is served like `active`; `suspended` is refused with 403; `deleting` counts as gone. */
export type TenantStatus = 'active' | 'past_due' | 'suspended' | 'deleting';

/** Who a request acts for and what it may do: all that authorisation and admission need, found without I/O. */
export interface Principal {
  readonly auth: 'key' | 'login' | 'oauth';
  readonly tenantId: TenantId;
  /** The own tenant of who logged in, whichever they act for; of a key or a connection its tenant. */
  readonly homeTenantId: TenantId;
  readonly tenantStatus: TenantStatus;
  readonly planName: PlanName;
  /** False on a free tenant: only `unverified_share` of the plan is to be had. */
  readonly ownerVerified: boolean;
  /** Who logged in, who made the key, or who let the client connect. */
  readonly personId: PersonId | null;
  /** What the person who logged in is in the tenant; null for keys, and for connections, which never act as an owner. */
  readonly role: Role | null;
  readonly keyId: KeyId | null;
  /** The OAuth connection (src/oauth/connection-record.ts) that asks; null for keys and logins. */
  readonly connectionId: number | null;
  readonly scope: Scope;
  /** Names or `prefix*` patterns; empty means every namespace. */
  readonly namespaces: readonly string[];
  readonly caps: KeyCaps;
  readonly limits: PrincipalLimits;
  /** Who is charged for what the request makes the server hold and do: the tenant, and its owner, whoever asks. */
  readonly share: Share;
}

/** What a principal may ask of one server; null means no limit. */
export interface PrincipalLimits {
  /** Requests a second of the whole tenant: the plan's. */
  readonly tenantQps: number | null;
  /** Requests a second of this key, only where it is tighter than the tenant's. */
  readonly keyQps: number | null;
  /** Requests in flight of the tenant. A key has the same bound, which its tenant always meets first. */
  readonly concurrency: number | null;
  /** SQL queries of the tenant that may be in flight at once. */
  readonly sqlConcurrency: number | null;
}

export function principalLimits(
  plan: {
    readonly qps: number | null;
    readonly concurrency: number | null;
    readonly sql_concurrency: number | null;
  },
  ratePerS: number | null,
): PrincipalLimits {
  const tighter = ratePerS !== null && (plan.qps === null || ratePerS < plan.qps);
  return {
    tenantQps: plan.qps,
    keyQps: tighter ? ratePerS : null,
    concurrency: plan.concurrency,
    sqlConcurrency: plan.sql_concurrency,
  };
}

export const noCaps: KeyCaps = { ratePerS: null, queries: null, writes: null };
