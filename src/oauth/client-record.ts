import { limits } from '../../protocol/limits.ts';
import { storedCheck } from '../../protocol/stored-schema.ts';
import { z } from '../../protocol/validate.ts';
import { formats } from '../../protocol/version.ts';
import type { Clock } from '../base/clock.ts';
import { decodeRecord, encodeRecord } from '../base/record.ts';
import { claim } from '../object-store/claim.ts';
import type { ObjectStore } from '../object-store/object-store.ts';
import { paths } from '../object-store/paths.ts';
import { readIntact } from '../object-store/read-intact.ts';

/** How a client shows at the token endpoint that it is itself. */
export const clientAuthMethods = ['none', 'client_secret_basic', 'client_secret_post'] as const;
export type ClientAuthMethod = (typeof clientAuthMethods)[number];

const clientSchema = z.strictObject({
  /** Ours where it registered; the https address of its metadata document otherwise. */
  id: z.string(),
  name: z.string(),
  redirectUris: z.array(z.string()).readonly(),
  method: z.enum(clientAuthMethods),
  /** SHA-256 of its secret; null for public clients. */
  secretDigest: z.string().nullable(),
  /** Milliseconds since 1970. */
  createdAt: z.number(),
});
/** A program that wants to connect, as it described itself: nothing of it was checked by anybody. */
export type OauthClient = Readonly<z.output<typeof clientSchema>>;

const format = {
  magic: 'TBOC',
  versions: [formats.oauthClient.version],
  check: storedCheck(clientSchema),
} as const;

const registeredId = /^client-[0-9a-f]{32}$/;

/** Whether it has the form of an id that we gave. */
export function isRegisteredId(id: string): boolean {
  return registeredId.test(id);
}

/** The bytes of a registered client at one of its two places. */
export function encodeClient(client: OauthClient, path: string): Uint8Array {
  return encodeRecord(format, client, path);
}

/**
 * Stores a registration that nobody has used yet. These lie below a folder of their own and go after a day, all that are as old,
 * without being read; one that somebody let connect is copied to where it stays. Throws `StoreError`.
 */
export function storeRegistration(store: ObjectStore, clock: Clock, client: OauthClient): Promise<void> {
  return storeAt(paths.unusedClient(client.id), { store, clock, client });
}

/** Keeps a registration for good: somebody let it connect. Doing it again is success. Throws `StoreError`. */
export function keepRegistration(store: ObjectStore, clock: Clock, client: OauthClient): Promise<void> {
  return storeAt(paths.usedClient(client.id), { store, clock, client });
}

async function storeAt(
  path: string,
  {
    store,
    clock,
    client,
  }: { readonly store: ObjectStore; readonly clock: Clock; readonly client: OauthClient },
): Promise<void> {
  await claim(store, clock, path, encodeClient(client, path));
}

/** Reads a registration; null where nobody registered so, or did a day ago and was never let connect. Throws `StoreError` and `DataError`. */
export async function readRegistration(
  store: Pick<ObjectStore, 'get'>,
  id: string,
  nowMs: number,
): Promise<OauthClient | null> {
  if (!isRegisteredId(id)) return null;
  const used = await readClient(store, paths.usedClient(id));
  if (used !== null) return used;
  const unused = await readClient(store, paths.unusedClient(id));
  return unused === null || nowMs >= unused.createdAt + limits.unusedClientMs ? null : unused;
}

function readClient(store: Pick<ObjectStore, 'get'>, path: string): Promise<OauthClient | null> {
  return readIntact(store, path, ({ bytes }) => decodeRecord(bytes, path, format));
}
