/** The manifest of a tenant as it lies in the store; protocol/stored-tenant.ts has its shape, actors/tenant/tenant-state.ts what it means. */
import { storedCheck } from '../../protocol/stored-schema.ts';
import { tenantManifestSchema } from '../../protocol/stored-tenant.ts';
import { formats } from '../../protocol/version.ts';
import { decodeRecord } from '../base/record.ts';

/** Version 8 knows no links, version 7 no subscriptions either; version 6 has envelopes that do not name their key too. */
export const tenantManifestFormat = {
  magic: 'TBTM',
  versions: [formats.tenant.version, 8, 7, 6],
  check: storedCheck(tenantManifestSchema),
} as const;

/** The names of a tenant's namespaces. Throws `DataError`, which names `place`, where the bytes are no manifest. */
export function namesInManifest(bytes: Uint8Array, place: string): readonly string[] {
  return decodeRecord(bytes, place, tenantManifestFormat).state.names.map(([name]) => name);
}
