import type { Scope } from '../../protocol/account.ts';
import { ApiError, noSuchNamespace } from '../../protocol/errors.ts';
import type { Operation } from '../../protocol/operations.ts';
import { isUnlimitedAdmin, namespaceAllowed, scopeIncludes } from '../accounts/scopes.ts';
import type { Principal } from './principal.ts';

/**
 * What an operation asks of its caller:
 *
 * - a scope: of a key, or of a login (an owner's is `admin`);
 * - `manage-keys`: an admin key without namespace limits and caps, or the owner's login;
 * - `billing`: any admin key, or the owner's login;
 * - `login`: a person, because keys belong to one tenant.
 */
export type Authority = Scope | 'manage-keys' | 'billing' | 'login';

/**
 * Answers null where the principal may do it, else 403 `forbidden`. `namespace` is the name that the request names, if any: one
 * outside the key's patterns is refused in the same way whether it exists or not, with 403, or with the 404 of a missing
 * namespace where the operation says `not_found`. A suspended tenant's people may do what the operation lets them, and its keys
 * nothing. Pure.
 */
export function authorize(
  principal: Principal,
  required: Authority,
  namespace: string | null,
  { outsidePatterns, whenSuspended }: Pick<Operation, 'outsidePatterns' | 'whenSuspended'> = {
    outsidePatterns: 'forbidden',
    whenSuspended: false,
  },
): ApiError | null {
  if (principal.tenantStatus === 'suspended' && !(whenSuspended && principal.auth === 'login'))
    return forbidden('the tenant is suspended: its people can log in and pay what is due');
  const refusal = refusalOf(principal, required);
  if (refusal !== null) return forbidden(refusal);
  if (namespace !== null && !namespaceAllowed(principal.namespaces, namespace)) {
    return outsidePatterns === 'not_found'
      ? noSuchNamespace(namespace)
      : forbidden('this key may not use that namespace');
  }
  return null;
}

function refusalOf(principal: Principal, required: Authority): string | null {
  const isOwner = principal.role === 'owner';
  switch (required) {
    case 'manage-keys':
      return isOwner || (principal.auth === 'key' && isUnlimitedAdmin(principal))
        ? null
        : 'this needs an admin key without namespace limits and caps, or the login of the owner';
    case 'billing':
      return isOwner || (principal.auth === 'key' && principal.scope === 'admin')
        ? null
        : 'this needs an admin key or the login of the owner';
    case 'login':
      return principal.auth === 'login' ? null : 'this needs a login: a key belongs to one tenant';
    default:
      return scopeIncludes(principal.scope, required)
        ? null
        : `this needs the scope "${required}"; the key has "${principal.scope}"`;
  }
}

function forbidden(sentence: string): ApiError {
  return new ApiError('forbidden', sentence);
}
