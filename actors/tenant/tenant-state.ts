import { storedCheck } from '../../protocol/stored-schema.ts';
import {
  type KeyRecord,
  type NameEntry,
  type NamespaceReport,
  type ProviderKeyRecord,
  type StoredAnswer,
  type TenantEvent,
  type TenantManifestWire,
  type TenantRecord,
  tenantEventSchema,
} from '../../protocol/stored-tenant.ts';
import { decodePayload, decodeRecord, encodeRecord, encodeValue } from '../../src/base/record.ts';
import { tenantManifestFormat } from '../../src/stored/tenant-manifest.ts';
import type { LogWatermark } from '../storage/manifest.ts';
import { storeAnswer } from './stored-answers.ts';
import {
  applyNote,
  copyOfUsage,
  emptyUsage,
  meterTaken,
  meterWrites,
  noteCreation,
  type UsageState,
  usageFromWire,
  usageToWire,
} from './tenant-usage.ts';

/** What a tenant consists of, the events that change it, and its one durable object. All pure. The stored shapes are protocol/stored-tenant.ts. */
export interface TenantState {
  tenant: TenantRecord | null;
  readonly keys: Map<number, KeyRecord>;
  readonly names: Map<string, NameEntry>;
  /** Bytes of deleted namespaces that others hold, by the ids of these. */
  readonly held: Map<string, number>;
  /** By provider. */
  readonly providerKeys: Map<string, ProviderKeyRecord>;
  /** By the digest of the request's `Idempotency-Key`, oldest first. */
  readonly answers: Map<string, StoredAnswer>;
  readonly usage: UsageState;
  version: number;
}

export function emptyTenant(): TenantState {
  return {
    tenant: null,
    keys: new Map(),
    names: new Map(),
    held: new Map(),
    providerKeys: new Map(),
    answers: new Map(),
    usage: emptyUsage(),
    version: 0,
  };
}

/** Whether a tenant is being deleted, from the event of its end on, or is a remnant. */
export function isDeleting({ tenant }: TenantState): boolean {
  return tenant?.status === 'deleting';
}

/** A name that was made again meanwhile belongs to another namespace. */
export function entryOf(
  { names }: TenantState,
  { name, namespaceId }: { readonly name: string; readonly namespaceId: string },
): NameEntry | undefined {
  const known = names.get(name);
  return known?.namespaceId === namespaceId ? known : undefined;
}

/** Links that stay at a version of a namespace: they have objects, which go with it. */
export function linksAt(
  { names }: TenantState,
  sourceId: string,
): readonly { readonly name: string; readonly namespaceId: string; readonly entry: NameEntry }[] {
  return [...names].flatMap(([name, entry]) =>
    entry.linked?.sourceId === sourceId && !entry.linked.follows
      ? [{ name, namespaceId: entry.namespaceId, entry }]
      : [],
  );
}

/** Whether a name is a link to a namespace that is gone. */
export function isDangling(state: TenantState, { linked }: NameEntry): boolean {
  if (linked === undefined) return false;
  return entryOf(state, { name: linked.source, namespaceId: linked.sourceId }) === undefined;
}

/** Which keys a `keys-ended` ends, of those that there are. */
export function keysThatEnd(
  { keys }: TenantState,
  { madeBy }: { readonly madeBy: number | null },
): readonly KeyRecord[] {
  return [...keys.values()].filter(({ personId }) => madeBy === null || personId === madeBy);
}

/** Names and patterns that keys are limited to, in number. */
export function patternsOf(keys: Iterable<Pick<KeyRecord, 'namespaces'>>): number {
  let count = 0;
  for (const { namespaces } of keys) count += namespaces.length;
  return count;
}

/**
 * What a namespace has reported: by how many bytes more is stored. Zero too where the tenant knew as much: the last words of
 * an actor that was put away may come after its successor's first, and a report that was seen comes again from the log.
 */
export function applyReport(
  state: TenantState,
  { name, report }: { readonly name: string; readonly report: NamespaceReport },
): number {
  const known = entryOf(state, { name, namespaceId: report.namespaceId });
  if (known === undefined || isDangling(state, known) || !isNews(known, report)) return 0;
  meterWrites(state.usage, known, report);
  state.names.set(name, withReport(known, report));
  return report.storedBytes - known.storedBytes;
}

/** Whether a report says what the tenant does not know. */
export function isNews(known: NameEntry, { writes, docsWritten, storedBytes }: NamespaceReport): boolean {
  if (docsWritten < known.docsWritten || writes < known.writes) return false;
  return writes !== known.writes || storedBytes !== known.storedBytes;
}

export function withReport(
  known: NameEntry,
  { writes, docsWritten, bytesWritten, storedBytes }: NamespaceReport,
): NameEntry {
  return { ...known, writes, docsWritten, bytesWritten, storedBytes };
}

/** What is encoded must not change while a commit is tried again. */
export function copyOfState(state: TenantState): TenantState {
  return {
    ...state,
    keys: new Map(state.keys),
    names: new Map(state.names),
    held: new Map(state.held),
    providerKeys: new Map(state.providerKeys),
    answers: new Map(state.answers),
    usage: copyOfUsage(state.usage),
  };
}

export function applyTenantEvent(state: TenantState, event: TenantEvent): void {
  state.version++;
  switch (event.kind) {
    case 'tenant-created':
      state.tenant = event.tenant;
      if (event.firstKey !== null) state.keys.set(event.firstKey.id, event.firstKey);
      return;
    case 'tenant-status':
      if (state.tenant !== null) state.tenant = { ...state.tenant, status: event.status };
      return;
    case 'tenant-billing': {
      const { plan, status, billing } = event;
      // Two servers may tell at once, the later standing first: an older one changes nothing.
      if (billing.version <= (state.tenant?.billing?.version ?? 0)) return;
      if (state.tenant !== null) state.tenant = { ...state.tenant, plan, status, billing };
      return;
    }
    case 'owner-verified':
      if (state.tenant !== null) state.tenant = { ...state.tenant, ownerVerified: true };
      return;
    case 'key-created':
      state.keys.set(event.key.id, event.key);
      if (event.answer !== null) storeAnswer(state.answers, event.answer);
      return;
    case 'key-limits': {
      const known = state.keys.get(event.keyId);
      if (known !== undefined) state.keys.set(event.keyId, { ...known, ...event.limits });
      return;
    }
    case 'answer-stored':
      storeAnswer(state.answers, event.answer);
      return;
    case 'answer-forgotten':
      state.answers.delete(event.keyDigest);
      return;
    case 'key-revoked':
      state.keys.delete(event.keyId);
      state.usage.keys.delete(event.keyId);
      return;
    case 'keys-ended':
      for (const { id } of keysThatEnd(state, event)) {
        state.keys.delete(id);
        state.usage.keys.delete(id);
      }
      return;
    case 'connections-ended':
      for (const connectionId of event.ids) state.usage.keys.delete(connectionId);
      return;
    case 'namespace-created': {
      const { namespaceId, createdAt, vector, embed, linked, branched, begins } = event;
      state.names.set(event.name, {
        namespaceId,
        createdAt,
        vector,
        embed,
        writes: 0,
        docsWritten: 0,
        bytesWritten: 0,
        storedBytes: 0,
        ...begins,
        ...(linked === undefined ? {} : { linked }),
        ...(branched === undefined ? {} : { branched }),
      });
      if (event.answer !== null) storeAnswer(state.answers, event.answer);
      noteCreation(state.usage, createdAt);
      return;
    }
    case 'namespace-embedding': {
      const known = entryOf(state, event);
      if (known !== undefined) state.names.set(event.name, { ...known, embed: event.embed });
      return;
    }
    case 'provider-key-stored':
      state.providerKeys.set(event.record.provider, event.record);
      return;
    case 'provider-key-forgotten':
      state.providerKeys.delete(event.provider);
      return;
    case 'namespace-deleted': {
      const known = entryOf(state, event);
      if (known === undefined) return;
      meterTaken(state.usage, known, event);
      state.names.delete(event.name);
      for (const { name, entry } of linksAt(state, event.namespaceId))
        state.names.set(name, { ...entry, storedBytes: 0 });
      return;
    }
    case 'namespace-held':
      if (event.bytes === 0) state.held.delete(event.namespaceId);
      else state.held.set(event.namespaceId, event.bytes);
      return;
    case 'namespace-reported':
      applyReport(state, event);
      return;
    case 'usage-noted':
      for (const note of event.notes) applyNote(state.usage, note);
      return;
  }
}

/**
 * What stays of a tenant that was deleted: its number, and that it is none any more. Its manifest is kept with this for two
 * reasons: a log that is replayed may still hold the records that made the tenant, which the watermarks beside it refuse; and a
 * credential that a front has looked up before leads here, where a tenant that is missing would read as damage.
 */
export function remnantOf({ version, tenant }: TenantState): TenantState {
  if (tenant === null) return emptyTenant();
  const { id } = tenant;
  const gone: TenantRecord = {
    id,
    name: '',
    plan: 'free',
    status: 'deleting',
    ownerId: 0,
    ownerVerified: false,
    createdAt: '',
  };
  return { ...emptyTenant(), tenant: gone, version };
}

const checkTenantEvent = storedCheck(tenantEventSchema);
export const encodeTenantEvent = (event: TenantEvent): Uint8Array => new Uint8Array(encodeValue(event));

/** The event that a record of the log has as its payload; `place` says which record, for the `DataError` of another payload. */
export function decodeTenantEvent(bytes: Uint8Array, place: string): TenantEvent {
  return decodePayload(bytes, place, checkTenantEvent);
}

export interface TenantManifest {
  readonly version: number;
  readonly nonce: string;
  readonly owner: { readonly logId: string; readonly view: number };
  readonly applied: ReadonlyMap<string, LogWatermark>;
  readonly state: TenantState;
}

export const tenantManifestCodec = {
  encode(manifest: TenantManifest, place: string): Uint8Array {
    const { state } = manifest;
    const wire: TenantManifestWire = {
      ...manifest,
      applied: [...manifest.applied].map(([logId, { slot, index }]) => [logId, slot, index]),
      state: {
        tenant: state.tenant,
        keys: [...state.keys.values()],
        names: [...state.names],
        ...(state.held.size === 0 ? {} : { held: [...state.held] }),
        providerKeys: [...state.providerKeys.values()],
        answers: [...state.answers.values()],
        usage: usageToWire(state.usage),
        version: state.version,
      },
    };
    return encodeRecord(tenantManifestFormat, wire, place);
  },
  decode(bytes: Uint8Array, place: string): TenantManifest {
    const wire = decodeRecord(bytes, place, tenantManifestFormat);
    return {
      ...wire,
      applied: new Map(wire.applied.map(([logId, slot, index]) => [logId, { slot, index }])),
      state: {
        tenant: wire.state.tenant,
        keys: new Map(wire.state.keys.map((key) => [key.id, key])),
        names: new Map(wire.state.names),
        held: new Map(wire.state.held),
        providerKeys: new Map(wire.state.providerKeys.map((record) => [record.provider, record])),
        answers: new Map(wire.state.answers.map((answer) => [answer.keyDigest, answer])),
        usage: usageFromWire(wire.state.usage),
        version: wire.state.version,
      },
    };
  },
};
