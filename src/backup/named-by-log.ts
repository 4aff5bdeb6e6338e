import { storedCheck } from '../../protocol/stored-schema.ts';
import { tenantEventSchema } from '../../protocol/stored-tenant.ts';
import { z } from '../../protocol/validate.ts';
import { decodePayload } from '../base/record.ts';
import { paths } from '../object-store/paths.ts';
import { isImport } from '../stored/import-mark.ts';
import type { RecordHead } from '../stored/log-object.ts';

/** What a record of the log means for a backup, beside its own bytes. */
export type RecordMeaning =
  /** The rows of an import are an object that no manifest may name yet. */
  | { readonly kind: 'import'; readonly namespaceId: string; readonly key: string; readonly size: number }
  | { readonly kind: 'namespace-deleted'; readonly namespaceId: string }
  /** The tenant is gone, with all of its namespaces. */
  | { readonly kind: 'tenant-deleted'; readonly tenantId: number };

const checkImport = storedCheck(z.looseObject({ id: z.string(), size: z.int().min(1) }));
const checkEvent = storedCheck(tenantEventSchema);

/** Answers what a record means; null where it names nothing. Throws a `DataError` that names `place`. */
export function meaningOf(head: RecordHead, payload: Uint8Array, place: string): RecordMeaning | null {
  const { tenantId, namespaceId, detail } = head;
  if (namespaceId !== '') {
    if (!isImport(detail)) return null;
    const { id, size } = decodePayload(payload, place, checkImport);
    return { kind: 'import', namespaceId, key: paths.namespaceSegment(namespaceId, id), size };
  }
  const event = decodePayload(payload, place, checkEvent);
  if (event.kind === 'namespace-deleted') return { kind: event.kind, namespaceId: event.namespaceId };
  if (event.kind === 'tenant-status' && event.status === 'deleting')
    return { kind: 'tenant-deleted', tenantId };
  return null;
}
