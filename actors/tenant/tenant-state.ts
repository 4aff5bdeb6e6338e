import type { KeyRecord, ProviderKeyRecord, TenantRecord, UsageNote } from '../../protocol/messages.ts';
import type { EmbedConfig, VectorConfig } from '../../protocol/namespace.ts';
import { decodeRecord, decodeValue, encodeRecord, encodeValue } from '../../src/base/record.ts';
import type { LogWatermark } from '../storage/manifest.ts';
import {
  applyNote,
  copyOfUsage,
  emptyUsage,
  meterTaken,
  noteCreation,
  type UsageState,
  type UsageStateWire,
  usageFromWire,
  usageToWire,
} from './tenant-usage.ts';

/** What a tenant consists of, the events that change it, and its one durable object. All pure. */
export interface NameEntry {
  readonly namespaceId: string;
  readonly createdAt: string;
  /** Null for text only. */
  readonly vector: VectorConfig | null;
  /** Null where texts are not embedded. */
  readonly embed: EmbedConfig | null;
  /** The ledger: what the namespace's actor reported last. */
  readonly writes: number;
  readonly docsWritten: number;
  readonly bytesWritten: number;
  readonly storedBytes: number;
}

export interface TenantState {
  tenant: TenantRecord | null;
  readonly keys: Map<number, KeyRecord>;
  readonly names: Map<string, NameEntry>;
  /** By provider. */
  readonly providerKeys: Map<string, ProviderKeyRecord>;
  readonly usage: UsageState;
  version: number;
}

export type TenantEvent =
  | { readonly kind: 'tenant-created'; readonly tenant: TenantRecord; readonly firstKey: KeyRecord }
  | { readonly kind: 'owner-verified' }
  | { readonly kind: 'key-created'; readonly key: KeyRecord }
  | { readonly kind: 'key-revoked'; readonly keyId: number }
  | {
      readonly kind: 'namespace-created';
      readonly name: string;
      readonly namespaceId: string;
      readonly createdAt: string;
      readonly vector: VectorConfig | null;
      readonly embed: EmbedConfig | null;
    }
  | {
      readonly kind: 'namespace-embedding';
      readonly name: string;
      readonly namespaceId: string;
      readonly embed: EmbedConfig | null;
    }
  | { readonly kind: 'provider-key-stored'; readonly record: ProviderKeyRecord }
  | { readonly kind: 'provider-key-forgotten'; readonly provider: string }
  | {
      readonly kind: 'namespace-deleted';
      readonly name: string;
      readonly namespaceId: string;
      /** What it had reported by then, and the day: its records in the log are dropped, and never reported again. */
      readonly taken: Pick<NameEntry, 'writes' | 'docsWritten' | 'bytesWritten'>;
      readonly day: string;
    }
  | { readonly kind: 'usage-noted'; readonly notes: readonly UsageNote[] };

export function emptyTenant(): TenantState {
  return {
    tenant: null,
    keys: new Map(),
    names: new Map(),
    providerKeys: new Map(),
    usage: emptyUsage(),
    version: 0,
  };
}

/** What is encoded must not change while a commit is tried again. */
export function copyOfState(state: TenantState): TenantState {
  return {
    ...state,
    keys: new Map(state.keys),
    names: new Map(state.names),
    providerKeys: new Map(state.providerKeys),
    usage: copyOfUsage(state.usage),
  };
}

export function applyTenantEvent(state: TenantState, event: TenantEvent): void {
  state.version++;
  switch (event.kind) {
    case 'tenant-created':
      state.tenant = event.tenant;
      state.keys.set(event.firstKey.id, event.firstKey);
      return;
    case 'owner-verified':
      if (state.tenant !== null) state.tenant = { ...state.tenant, ownerVerified: true };
      return;
    case 'key-created':
      state.keys.set(event.key.id, event.key);
      return;
    case 'key-revoked':
      state.keys.delete(event.keyId);
      state.usage.keys.delete(event.keyId);
      return;
    case 'namespace-created': {
      const { namespaceId, createdAt, vector, embed } = event;
      state.names.set(event.name, {
        namespaceId,
        createdAt,
        vector,
        embed,
        writes: 0,
        docsWritten: 0,
        bytesWritten: 0,
        storedBytes: 0,
      });
      noteCreation(state.usage, createdAt);
      return;
    }
    case 'namespace-embedding': {
      const known = state.names.get(event.name);
      if (known?.namespaceId === event.namespaceId)
        state.names.set(event.name, { ...known, embed: event.embed });
      return;
    }
    case 'provider-key-stored':
      state.providerKeys.set(event.record.provider, event.record);
      return;
    case 'provider-key-forgotten':
      state.providerKeys.delete(event.provider);
      return;
    case 'namespace-deleted': {
      const known = state.names.get(event.name);
      // A name that was made again meanwhile belongs to another namespace.
      if (known?.namespaceId !== event.namespaceId) return;
      meterTaken(state.usage, known, event);
      state.names.delete(event.name);
      return;
    }
    case 'usage-noted':
      for (const note of event.notes) applyNote(state.usage, note);
      return;
  }
}

export const encodeTenantEvent = (event: TenantEvent): Uint8Array => new Uint8Array(encodeValue(event));
export const decodeTenantEvent = (bytes: Uint8Array): TenantEvent => decodeValue(bytes) as TenantEvent;

export interface TenantManifest {
  readonly version: number;
  readonly nonce: string;
  readonly owner: { readonly logId: string; readonly view: number };
  readonly applied: ReadonlyMap<string, LogWatermark>;
  readonly state: TenantState;
}

export const tenantManifestFormat = 6;
const magic = 'TBTM';

export const tenantManifestCodec = {
  encode(manifest: TenantManifest, place: string): Uint8Array {
    const { state } = manifest;
    const wire = {
      ...manifest,
      applied: [...manifest.applied].map(([logId, { seq, index }]) => [logId, seq, index]),
      state: {
        tenant: state.tenant,
        keys: [...state.keys.values()],
        names: [...state.names],
        providerKeys: [...state.providerKeys.values()],
        usage: usageToWire(state.usage),
        version: state.version,
      },
    };
    return encodeRecord(magic, tenantManifestFormat, wire, place);
  },
  decode(bytes: Uint8Array, place: string): TenantManifest {
    const wire = decodeRecord(bytes, place, magic, tenantManifestFormat) as Omit<
      TenantManifest,
      'applied' | 'state'
    > & {
      applied: [string, number, number][];
      state: {
        tenant: TenantRecord | null;
        keys: KeyRecord[];
        names: [string, NameEntry][];
        providerKeys: ProviderKeyRecord[];
        usage: UsageStateWire;
        version: number;
      };
    };
    return {
      ...wire,
      applied: new Map(wire.applied.map(([logId, seq, index]) => [logId, { seq, index }])),
      state: {
        tenant: wire.state.tenant,
        keys: new Map(wire.state.keys.map((key) => [key.id, key])),
        names: new Map(wire.state.names),
        providerKeys: new Map(wire.state.providerKeys.map((record) => [record.provider, record])),
        usage: usageFromWire(wire.state.usage),
        version: wire.state.version,
      },
    };
  },
};
