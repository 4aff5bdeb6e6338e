import { join } from 'node:path';
import { internalCalls } from '../../protocol/internal-calls.ts';
import type { TenantRecord } from '../../protocol/stored-tenant.ts';
import { systemClock } from '../../src/base/clock.ts';
import { systemRandom } from '../../src/base/random.ts';
import { loadServerId } from '../../src/cluster/server-id.ts';
import { FsObjectStore } from '../../src/object-store/fs-object-store.ts';
import { InProcess } from './in-process.ts';

/**
 * Changes the status of tenants of a server that has stopped, as an operator's or the payment provider's word will once it
 * serves: the tenant's actor, opened over the server's folder, takes the same call. The product has no other way in.
 */
export async function setTenantStatus(
  folder: string,
  tenantIds: readonly number[],
  status: TenantRecord['status'],
): Promise<void> {
  // Threads without ports of their own do not keep a test alive, and there is nothing else here that would.
  const alive = setInterval(() => {}, 1_000);
  const store = await FsObjectStore.open(join(folder, 'objects'), systemClock, systemRandom);
  // The server's own name: another one would wait for its lease.
  const serverId = await loadServerId(folder, systemRandom);
  const process = await InProcess.start({ store, clock: systemClock, random: systemRandom, serverId });
  for (const id of tenantIds) await process.askInside(internalCalls.setTenantStatus, { status }, id);
  await process.drain();
  clearInterval(alive);
}
