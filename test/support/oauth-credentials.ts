import { join } from 'node:path';
import type { TenantId } from '../../protocol/ids.ts';
import { systemClock } from '../../src/base/clock.ts';
import { systemRandom } from '../../src/base/random.ts';
import { updateConnections } from '../../src/oauth/connection-record.ts';
import { FsObjectStore } from '../../src/object-store/fs-object-store.ts';
import type { OauthCredential } from './authorisation-table.ts';
import { type Account, connect, sendForm } from './oauth-flow.ts';

/** An access token of each kind of connection that the table of authorisation has, of one person in one tenant. */
export async function oauthTokens(
  url: string,
  asked: {
    readonly account: Account;
    readonly tenantId: number;
    /** The folder of the server's data. */
    readonly folder: string;
    /** What the limited one may use. */
    readonly namespaces: string;
  },
): Promise<Readonly<Record<OauthCredential, string>>> {
  const { account, tenantId, folder, namespaces } = asked;
  const connected = (choice: Readonly<Record<string, string>>) =>
    connect(url, account, { tenant: String(tenantId), ...choice });
  const expired = (await connected({ access: 'write' })).tokens.access_token;
  await expireAll(folder, tenantId as TenantId);
  const revoked = await connected({ access: 'write' });
  await sendForm(`${url}/oauth/revoke`, {
    token: revoked.tokens.refresh_token,
    client_id: revoked.clientId,
  });
  return {
    'OAuth, read-only': (await connected({})).tokens.access_token,
    'OAuth, read-and-write': (await connected({ access: 'write' })).tokens.access_token,
    'OAuth, limited to namespaces': (await connected({ access: 'write', reach: 'some', namespaces })).tokens
      .access_token,
    'OAuth, expired': expired,
    'OAuth, revoked': revoked.tokens.access_token,
  };
}

/** Time passes for all access tokens of a tenant. One that was used already is remembered by the server as it was. */
async function expireAll(folder: string, tenantId: TenantId): Promise<void> {
  const objectStore = await FsObjectStore.open(join(folder, 'objects'), systemClock, systemRandom);
  const store = { objectStore, clock: systemClock, random: systemRandom };
  await updateConnections(store, tenantId, (connections) =>
    connections.map((each) => ({
      ...each,
      access: each.access.map((token) => ({ ...token, expiresAt: systemClock.now() - 1 })),
    })),
  );
  await objectStore.close();
}
