import type { Scope } from '../../../protocol/account.ts';
import type { KeyId, PersonId, TenantId } from '../../../protocol/ids.ts';
import type { KeyCaps } from '../../../src/accounts/scopes.ts';
import {
  noCaps,
  type Principal,
  type PrincipalLimits,
  type TenantStatus,
} from '../../../src/auth/principal.ts';

export interface PrincipalParts {
  readonly tenantId?: number;
  readonly keyId?: number;
  readonly scope?: Scope;
  readonly namespaces?: readonly string[];
  readonly caps?: Partial<KeyCaps>;
  readonly tenantStatus?: TenantStatus;
  readonly limits?: Partial<PrincipalLimits>;
}

/** The principal of a key, of an active free tenant where nothing else is said. */
export function keyPrincipal(parts: PrincipalParts): Principal {
  return {
    auth: 'key',
    tenantId: (parts.tenantId ?? 1) as TenantId,
    homeTenantId: (parts.tenantId ?? 1) as TenantId,
    tenantStatus: parts.tenantStatus ?? 'active',
    planName: 'free',
    ownerVerified: true,
    personId: 7 as PersonId,
    role: null,
    keyId: (parts.keyId ?? 9) as KeyId,
    connectionId: null,
    scope: parts.scope ?? 'admin',
    namespaces: parts.namespaces ?? [],
    caps: { ...noCaps, ...parts.caps },
    limits: { tenantQps: null, keyQps: null, concurrency: null, sqlConcurrency: null, ...parts.limits },
    share: { owner: 7, tenant: parts.tenantId ?? 1, weight: 4 },
  };
}

export function loginPrincipal(role: 'owner' | 'member', parts: PrincipalParts = {}): Principal {
  const scope = role === 'owner' ? 'admin' : 'write';
  return { ...keyPrincipal({ ...parts, scope }), auth: 'login', role, keyId: null };
}
