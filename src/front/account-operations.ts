import type { Me } from '../../protocol/account.ts';
import type { OperationName } from '../../protocol/operations.ts';
import type { Principal } from '../auth/principal.ts';
import { must } from '../base/assert.ts';
import { readPerson } from '../identity/person-record.ts';
import type { ObjectStore } from '../object-store/object-store.ts';
import type { Tenants } from '../router/tenants.ts';
import type { FrontOperation } from './front-operation.ts';
import { type PeopleOperationsComponents, peopleOperations } from './people-operations.ts';

export interface AccountComponents extends PeopleOperationsComponents {
  readonly tenants: Tenants;
  readonly store: ObjectStore;
}

/** The operations that the front does itself: accounts. `body` is parsed JSON. */
export function accountOperations(components: AccountComponents): ReadonlyMap<OperationName, FrontOperation> {
  return new Map<OperationName, FrontOperation>([
    ...peopleOperations(components),
    ['me', (request) => me(components, must(request.principal, 'a principal'))],
  ]);
}

/** Who asks; with a key the person is whoever made it. */
async function me(components: AccountComponents, principal: Principal): Promise<Me> {
  const { tenants, store } = components;
  const [tenant, key, person] = await Promise.all([
    tenants.get(principal.tenantId),
    principal.keyId === null ? null : tenants.key(principal.tenantId, principal.keyId),
    principal.personId === null ? null : readPerson(store, principal.personId),
  ]);
  const { id, name, plan, status } = must(tenant, 'the tenant of a live credential');
  return {
    tenant_id: id,
    tenant: { id, name, plan, status, role: principal.role ?? 'owner' },
    plan,
    scope: principal.scope,
    namespaces: [...principal.namespaces],
    auth: principal.auth,
    person: person && { id: person.id, email: person.email, name: person.name, verified: person.verified },
    key: key && {
      id: key.id,
      name: key.name,
      prefix: key.prefix,
      rate_per_s: key.ratePerSecond,
      cap_queries: key.capQueries,
      cap_writes: key.capWrites,
    },
  };
}
