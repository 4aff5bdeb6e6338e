/**
 * The connections of a tenant: what its people let MCP clients have (OAuth calls them grants). One object a tenant, so that
 * using up a code, rotating a refresh token, ending one connection or all of them, and refusing one too many are each one
 * compare-and-set, and with the tenant they go by one delete. No token is in it, only digests. Times are milliseconds since 1970.
 */
import type { PersonId, TenantId } from '../../protocol/ids.ts';
import { limits } from '../../protocol/limits.ts';
import { storedCheck, storedId } from '../../protocol/stored-schema.ts';
import { z } from '../../protocol/validate.ts';
import { formats } from '../../protocol/version.ts';
import { encodeRecord, type RecordFormat } from '../base/record.ts';
import { type RecordStore, readRecord, type StoredRecord, updateRecord } from '../identity/stored-record.ts';
import type { ObjectStore } from '../object-store/object-store.ts';
import { paths } from '../object-store/paths.ts';
import { clientAuthMethods } from './client-record.ts';

export const connectionScopes = ['read', 'write'] as const;
/** `write` includes `read`. */
export type ConnectionScope = (typeof connectionScopes)[number];

const refreshSchema = z.strictObject({
  /** Rises by one with each rotation; that of the first token is 1. */
  number: z.int(),
  digest: z.string(),
  /** The digest of the token before; null for the first. */
  previousDigest: z.string().nullable(),
  expiresAt: z.number(),
  /** When earlier tokens were replaced, the last few of them, oldest first. */
  replaced: z.array(z.strictObject({ number: z.int(), at: z.number() }).readonly()).readonly(),
});
export type Refresh = Readonly<z.output<typeof refreshSchema>>;

const accessTokenSchema = z
  .strictObject({ digest: z.string(), scope: z.enum(connectionScopes), expiresAt: z.number() })
  .readonly();
export type AccessToken = z.output<typeof accessTokenSchema>;

const connectionSchema = z.strictObject({
  /** Random, 48 bits. */
  id: storedId<number>(),
  client: z
    .strictObject({
      id: z.string(),
      name: z.string(),
      method: z.enum(clientAuthMethods),
      secretDigest: z.string().nullable(),
    })
    .readonly(),
  /** Who let it connect. */
  personId: storedId<PersonId>(),
  /** The person's generation at that time: another one now (a new password) means that the connection has ended. */
  generation: z.int(),
  scope: z.enum(connectionScopes),
  /** Names or `prefix*` patterns; empty means every namespace. */
  namespaces: z.array(z.string()).readonly(),
  createdAt: z.number(),
  /** It stays after it was used, so that its second use is recognised. The challenge is that of PKCE, S256. */
  code: z
    .strictObject({
      digest: z.string(),
      redirectUri: z.string(),
      challenge: z.string(),
      expiresAt: z.number(),
    })
    .readonly(),
  /** Random, hexadecimal: refresh tokens are made of it and of the server's key. */
  seed: z.string(),
  /** The refresh tokens; null until the code was used. */
  refresh: refreshSchema.readonly().nullable(),
  /** Access tokens that have not expired, oldest first. */
  access: z.array(accessTokenSchema).readonly(),
});
export type Connection = Readonly<z.output<typeof connectionSchema>>;

const tenantConnectionsSchema = z.strictObject({
  connections: z.array(connectionSchema).readonly(),
  nonce: z.string(),
});
export type TenantConnections = Readonly<z.output<typeof tenantConnectionsSchema>>;

const format: RecordFormat<TenantConnections> = {
  magic: 'TBCN',
  versions: [formats.connections.version],
  check: storedCheck(tenantConnectionsSchema),
};

export function encodeConnections(tenantId: number, value: TenantConnections): Uint8Array {
  return encodeRecord(format, value, paths.tenantConnections(tenantId));
}

function storedConnections(tenantId: number): StoredRecord<TenantConnections> {
  const path = paths.tenantConnections(tenantId);
  return { path, format, absent: { connections: [], nonce: '' }, name: 'the list of connections' };
}

/** All that are stored, those too that have lapsed. Throws `StoreError` and `DataError`. */
export async function readConnections(
  store: Pick<ObjectStore, 'get'>,
  tenantId: number,
): Promise<readonly Connection[]> {
  const stored = await readRecord(store, storedConnections(tenantId));
  return stored?.value.connections ?? [];
}

/**
 * Replaces a tenant's connections by what `change` makes of those that have not lapsed, as `updateRecord` says. `change` answers
 * the list that it was given where there is nothing to write.
 */
export async function updateConnections(
  store: RecordStore,
  tenantId: TenantId,
  change: (connections: readonly Connection[]) => readonly Connection[],
): Promise<void> {
  await updateRecord(store, storedConnections(tenantId), (stored) => {
    const nowMs = store.clock.now();
    const living = stored.connections.filter((each) => !hasLapsed(each, nowMs));
    const connections = change(living);
    return connections === living ? stored : { ...stored, connections };
  });
}

/** Whether its code was not used in time, or its refresh token has expired, and with it all that came of it. */
export function hasLapsed({ refresh, code }: Connection, nowMs: number): boolean {
  return nowMs >= (refresh === null ? code.expiresAt : refresh.expiresAt);
}

/** How long access tokens work; here for who answers `expires_in`. */
export const accessTokenSeconds = limits.accessTokenMs / 1_000;
