import type { TenantId } from '../../protocol/ids.ts';
import { type Person, readPerson } from '../identity/person-record.ts';
import type { ObjectStore } from '../object-store/object-store.ts';
import type { Connection } from './connection-record.ts';

/**
 * The person behind a connection, where they still are who let it connect: with the same password, and in the tenant. Null
 * otherwise: then the connection has ended, whatever its record says. Throws `StoreError` and `DataError`.
 */
export async function personBehind(
  store: ObjectStore,
  tenantId: TenantId,
  { personId, generation }: Pick<Connection, 'personId' | 'generation'>,
): Promise<Person | null> {
  const person = await readPerson(store, personId);
  if (person === null || person.generation !== generation) return null;
  return person.tenants.some((each) => each.tenantId === tenantId) ? person : null;
}
