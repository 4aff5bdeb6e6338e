import type { ConnectionItem } from '../../protocol/account.ts';
import { ApiError } from '../../protocol/errors.ts';
import { parseId48, type TenantId } from '../../protocol/ids.ts';
import type { OperationName } from '../../protocol/operations.ts';
import { must } from '../base/assert.ts';
import { personBehind } from '../oauth/connection-person.ts';
import type { Connection } from '../oauth/connection-record.ts';
import type { Connections } from '../oauth/connections.ts';
import type { ObjectStore } from '../object-store/object-store.ts';
import type { Tenants } from '../router/tenants.ts';
import type { FrontOperation, FrontRequest } from './front-operation.ts';

export interface ConnectionComponents {
  readonly connections: Pick<Connections, 'list' | 'end'>;
  readonly tenants: Pick<Tenants, 'connectionUse'>;
  readonly store: ObjectStore;
  /** Tells the tenant what this front has counted of it, as far as that can be had soon. */
  readonly tellUsage: (tenantId: number) => Promise<unknown>;
}

/** The list of what MCP clients were let have, and its end. */
export function connectionOperations(
  components: ConnectionComponents,
): readonly (readonly [OperationName, FrontOperation])[] {
  return [
    ['listConnections', (request) => list(components, tenantOf(request))],
    ['endConnection', (request) => end(components, request)],
  ];
}

function tenantOf({ principal }: FrontRequest): TenantId {
  return must(principal, 'a principal').tenantId;
}

/** Newest first, without those whose code nobody has used yet, and those whose person is not theirs any more. */
async function list(
  components: ConnectionComponents,
  tenantId: TenantId,
): Promise<readonly ConnectionItem[]> {
  const { connections, tenants, tellUsage } = components;
  await tellUsage(tenantId);
  const [all, used] = await Promise.all([connections.list(tenantId), tenants.connectionUse(tenantId)]);
  const lastUsed = new Map(used.map(({ id, lastUsedAt }) => [id, lastUsedAt]));
  const shown = all
    .filter(({ refresh }) => refresh !== null)
    .map((each) =>
      shownWithPerson(components, tenantId, { connection: each, usedAt: lastUsed.get(each.id) }),
    );
  return (await Promise.all(shown)).filter((each) => each !== null);
}

async function shownWithPerson(
  { store }: ConnectionComponents,
  tenantId: TenantId,
  { connection, usedAt }: { readonly connection: Connection; readonly usedAt: number | undefined },
): Promise<ConnectionItem | null> {
  const person = await personBehind(store, tenantId, connection);
  if (person === null) return null;
  const { id, client, scope, namespaces, createdAt, refresh } = connection;
  return {
    id,
    client: { id: client.id, name: client.name },
    person: { id: person.id, email: person.email, name: person.name },
    scope,
    namespaces: [...namespaces],
    created_at: new Date(createdAt).toISOString(),
    last_used_at: usedAt === undefined || usedAt === 0 ? null : new Date(usedAt).toISOString(),
    expires_at: new Date(refresh?.expiresAt ?? createdAt).toISOString(),
  };
}

async function end(components: ConnectionComponents, request: FrontRequest): Promise<void> {
  const tenantId = tenantOf(request);
  const connectionId = parseId48(request.parameters.id ?? '');
  // What was counted comes first, so that nothing is counted for it afterwards.
  if (connectionId !== null) await components.tellUsage(tenantId);
  const ended = connectionId !== null && (await components.connections.end({ tenantId, connectionId }));
  if (!ended) throw new ApiError('not_found', 'there is no such connection');
}
