/**
 * Ends the keys of somebody who could not show that the address was theirs: whoever signs up with another's address gets keys
 * before anybody has proved anything. When a reset is what first verifies the address, all keys of the person's own tenants
 * end, and in tenants of others those that the person made; so do the connections of MCP clients. Tenants and their data stay.
 *
 * It is done twice, before the password changes and after it. The first time makes a failure come early, while the link
 * still works; the second ends what was made between. The record remembers that the second time is due (`keysEnding`), so
 * that after a crash the next login does it, before it lets anybody in.
 */
import type { PersonId, TenantId } from '../../protocol/ids.ts';
import { type Person, type PersonStore, updatePerson } from './person-record.ts';

export interface KeyEnder {
  /** Ends the keys and connections of a tenant, or with a person those that they made: durable, and forgotten by every front, when it resolves. */
  readonly endKeys: (tenantId: TenantId, madeBy: PersonId | null) => Promise<void>;
}

/** One tenant after another: people have few, and the first failure says that it is not done. */
export async function endKeysOf(
  { endKeys }: KeyEnder,
  { id, tenants }: Pick<Person, 'id' | 'tenants'>,
): Promise<void> {
  for (const { tenantId, role } of tenants) await endKeys(tenantId, role === 'owner' ? null : id);
}

/** Ends the keys the second time, where the record says that this is due. */
export async function finishEndingKeys(people: KeyEnder & PersonStore, person: Person): Promise<void> {
  if (!person.keysEnding) return;
  await endKeysOf(people, person);
  await updatePerson(people, person.id, (now) => (now.keysEnding ? { ...now, keysEnding: false } : now));
}
