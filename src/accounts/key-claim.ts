/**
 * The object that leads from a key's digest to its tenant. It is only a signpost: whether the key lives is the tenant's
 * record, so a claim without a record, left by a crash, lets nobody in.
 */
import type { KeyId, TenantId } from '../../protocol/ids.ts';
import { storedCheck, storedId } from '../../protocol/stored-schema.ts';
import { z } from '../../protocol/validate.ts';
import { formats } from '../../protocol/version.ts';
import { assert } from '../base/assert.ts';
import type { Clock } from '../base/clock.ts';
import { decodeRecord, encodeRecord } from '../base/record.ts';
import { claim } from '../object-store/claim.ts';
import type { ObjectStore } from '../object-store/object-store.ts';
import { paths } from '../object-store/paths.ts';
import { readIntact } from '../object-store/read-intact.ts';

const keyClaimSchema = z.strictObject({ tenantId: storedId<TenantId>(), keyId: storedId<KeyId>() });
export type KeyClaim = Readonly<z.output<typeof keyClaimSchema>>;

const format = {
  magic: 'TBKC',
  versions: [formats.keyClaim.version],
  check: storedCheck(keyClaimSchema),
} as const;

/** Writes the claim of a key. Writing the same claim again is success. Throws `StoreError`. */
export async function writeKeyClaim(
  store: ObjectStore,
  clock: Clock,
  keyDigest: string,
  { tenantId, keyId }: KeyClaim,
): Promise<void> {
  const key = paths.keyClaim(keyDigest);
  const outcome = await claim(store, clock, key, encodeRecord(format, { tenantId, keyId }, key));
  assert(outcome === 'won', () => `two keys of one digest: tenant ${tenantId}, key ${keyId}`);
}

/** Null where no key has this digest. Throws `StoreError` and `DataError`. */
export async function readKeyClaim(store: ObjectStore, keyDigest: string): Promise<KeyClaim | null> {
  const path = paths.keyClaim(keyDigest);
  return readIntact(store, path, ({ bytes }) => decodeRecord(bytes, path, format));
}
