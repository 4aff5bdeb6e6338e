import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { applyTenantEvent, emptyTenant, tenantManifestCodec } from '../../../actors/tenant/tenant-state.ts';
import { countOwned } from '../../../src/cluster/count-owned.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { paths } from '../../../src/object-store/paths.ts';
import { KnownMembers } from '../../../src/router/members.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const servers = ['server-1', 'server-2', 'server-3'];
const tenants = Array.from({ length: 40 }, (_, at) => at + 1);
const namesOf = (tenantId: number) => Array.from({ length: tenantId % 7 }, (_, at) => `name-${at}`);

async function storeTenant(store: MemoryObjectStore, tenantId: number): Promise<void> {
  const state = emptyTenant();
  for (const name of namesOf(tenantId))
    applyTenantEvent(state, {
      kind: 'namespace-created',
      name,
      namespaceId: 'ab'.repeat(16),
      createdAt: '2024-01-02T00:00:00.000Z',
      vector: null,
      embed: null,
      answer: null,
    });
  const owner = { logId: 'log-a', view: 1 };
  const manifest = { version: 1, nonce: '00', owner, applied: new Map(), state };
  const key = paths.tenantManifest(tenantId);
  await store.putIfAbsent(key, [tenantManifestCodec.encode(manifest, key)]);
}

describe('Namespaces of each server', () => {
  let store: MemoryObjectStore;
  beforeEach(async () => {
    store = new MemoryObjectStore();
    for (const tenantId of tenants) await storeTenant(store, tenantId);
    await store.putIfAbsent(paths.tenantBilling(1), [new Uint8Array(3)]);
    await store.putIfAbsent(paths.tenantSegment(1, 'segment'), [new Uint8Array(3)]);
  });

  it('are those that the router sends there', async () => {
    const members = new KnownMembers(
      { owners: { placement: 1, servers, self: '' }, logs: new Map() },
      new FakeClock(),
    );
    const expected = new Map(servers.map((server) => [server, 0]));
    for (const tenantId of tenants)
      for (const name of namesOf(tenantId)) {
        const owner = members.ownerOf(tenantId, name) ?? '';
        expected.set(owner, (expected.get(owner) ?? 0) + 1);
      }

    const counts = await countOwned(store, servers);

    assert.deepEqual(counts, expected);
    assert.ok([...expected.values()].every((count) => count > 10));
  });

  it('are all those of a server that is alone, and nobody’s where nobody owns anything', async () => {
    const all = tenants.reduce((sum, tenantId) => sum + namesOf(tenantId).length, 0);

    assert.deepEqual(await countOwned(store, ['server-1']), new Map([['server-1', all]]));
    assert.deepEqual(await countOwned(store, []), new Map());
  });

  it('are not counted where there are more tenants than are read for it', async () => {
    assert.notEqual(await countOwned(store, servers, tenants.length), null);
    assert.equal(await countOwned(store, servers, tenants.length - 1), null);
  });
});
