/**
 * The object that leads from a customer of the payment provider to its tenant: events name customers. It stays when the tenant is
 * deleted, so that a subscription which somebody pays for on a page that was still open is found, and ended.
 */
import type { TenantId } from '../../protocol/ids.ts';
import { storedCheck, storedId } from '../../protocol/stored-schema.ts';
import { z } from '../../protocol/validate.ts';
import { formats } from '../../protocol/version.ts';
import { assert } from '../base/assert.ts';
import type { Clock } from '../base/clock.ts';
import { decodeRecord, encodeRecord } from '../base/record.ts';
import { claim } from '../object-store/claim.ts';
import { listAll } from '../object-store/list-all.ts';
import type { ObjectStore } from '../object-store/object-store.ts';
import { paths } from '../object-store/paths.ts';
import { readIntact } from '../object-store/read-intact.ts';

const customerClaimSchema = z.strictObject({ tenantId: storedId<TenantId>() });

const format = {
  magic: 'TBCU',
  versions: [formats.customerClaim.version],
  check: storedCheck(customerClaimSchema),
} as const;

export function encodeCustomerClaim(customerId: string, tenantId: number): Uint8Array {
  return encodeRecord(format, { tenantId }, paths.customerClaim(customerId));
}

/** Writing the same claim again is success. Throws `StoreError`. */
export async function writeCustomerClaim(
  store: ObjectStore,
  clock: Clock,
  { customerId, tenantId }: { readonly customerId: string; readonly tenantId: number },
): Promise<void> {
  const outcome = await claim(
    store,
    clock,
    paths.customerClaim(customerId),
    encodeCustomerClaim(customerId, tenantId),
  );
  assert(outcome === 'won', () => `customer ${customerId} is another tenant's, not ${tenantId}'s`);
}

/** Null where the customer is none of ours. Throws `StoreError` and `DataError`. */
export async function tenantOfCustomer(
  store: Pick<ObjectStore, 'get'>,
  customerId: string,
): Promise<TenantId | null> {
  const path = paths.customerClaim(customerId);
  const stored = await readIntact(store, path, ({ bytes }) => decodeRecord(bytes, path, format));
  return stored?.tenantId ?? null;
}

/** The ids of all customers, in the order of their bytes. */
export async function* customerIds(store: ObjectStore): AsyncGenerator<string> {
  for await (const { key } of listAll(store, paths.customerClaims))
    yield key.slice(paths.customerClaims.length);
}
