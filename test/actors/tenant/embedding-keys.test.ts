import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  applyTenantEvent,
  decodeTenantEvent,
  emptyTenant,
  encodeTenantEvent,
  type TenantState,
  tenantManifestCodec,
} from '../../../actors/tenant/tenant-state.ts';
import type { ProviderKeyRecord, TenantEvent } from '../../../protocol/stored-tenant.ts';
import { openProviderKey, sealProviderKey } from '../../../src/accounts/provider-key-envelope.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { InProcess, seededBytes, tenantId } from '../../support/in-process.ts';
import { alone } from '../../support/key-rings.ts';

const keyEncryptionKeys = alone(new Uint8Array(32).fill(9));
const random = seededBytes(3);

function stored(provider: string, key: string, second: number): TenantEvent {
  const record: ProviderKeyRecord = {
    provider,
    hint: `${key.slice(0, 3)}…`,
    createdAt: '2024-01-01T00:00:00.000Z',
    updatedAt: `2024-01-01T00:00:0${second}.000Z`,
    envelope: sealProviderKey(keyEncryptionKeys, { tenantId: 7, provider }, key, random),
  };
  return { kind: 'provider-key-stored', record };
}

const namespaceId = 'ab'.repeat(16);
const embedOf = (provider: 'openai' | 'service', id = namespaceId): TenantEvent => ({
  kind: 'namespace-embedding',
  name: 'n',
  namespaceId: id,
  embed: { provider, model: 'm' },
});
const events: readonly TenantEvent[] = [
  stored('openai', 'first key', 1),
  stored('cohere', 'another key', 2),
  {
    kind: 'namespace-created',
    name: 'n',
    namespaceId,
    createdAt: '2024-01-02T00:00:00.000Z',
    vector: { dims: 3, metric: 'cosine' },
    embed: null,
    answer: null,
  },
  embedOf('openai'),
  stored('openai', 'second key', 3),
  { kind: 'provider-key-forgotten', provider: 'cohere' },
  { kind: 'provider-key-forgotten', provider: 'mistral' },
  embedOf('service', 'ff'.repeat(16)),
  stored('google', 'third key', 4),
];

function replayed(from: TenantState, rest: readonly TenantEvent[]): TenantState {
  for (const event of rest) applyTenantEvent(from, decodeTenantEvent(encodeTenantEvent(event), 'event'));
  return from;
}

function throughManifest(state: TenantState): TenantState {
  const owner = { logId: 'log-a', view: 1 };
  const manifest = { version: 1, nonce: '00', owner, applied: new Map(), state };
  return tenantManifestCodec.decode(tenantManifestCodec.encode(manifest, 'm'), 'm').state;
}

test('keys and models come out of log and manifest alike, wherever the manifest was written', () => {
  const whole = throughManifest(replayed(emptyTenant(), events));

  for (let at = 0; at <= events.length; at++) {
    const flushed = throughManifest(replayed(emptyTenant(), events.slice(0, at)));
    assert.deepEqual(throughManifest(replayed(flushed, events.slice(at))), whole, `after ${at} events`);
  }
  assert.deepEqual([...whole.providerKeys.keys()].sort(), ['google', 'openai']);
  assert.deepEqual(whole.names.get('n')?.embed, { provider: 'openai', model: 'm' });
});

test('a key opens after both, and only for its tenant and provider', () => {
  const { providerKeys } = throughManifest(replayed(emptyTenant(), events));
  const { envelope } = providerKeys.get('openai') ?? assert.fail('no key');
  const open = (owner: { tenantId: number; provider: string }) =>
    openProviderKey(keyEncryptionKeys, owner, envelope);

  assert.equal(open({ tenantId: 7, provider: 'openai' }), 'second key');
  assert.throws(() => open({ tenantId: 8, provider: 'openai' }));
  assert.throws(() => open({ tenantId: 7, provider: 'cohere' }));
});

test('keys and models outlive kills and flushes', async () => {
  const clock = new FakeClock();
  const store = new MemoryObjectStore();
  let starts = 0;
  const start = () => clock.run(InProcess.start({ store, clock, random: seededBytes(70 + starts++) }));
  const put = (process: InProcess, provider: string, key: string) =>
    clock.run(process.ask('putEmbeddingKey', '', { argument: provider, body: { key } }));
  const list = async (process: InProcess) =>
    (await clock.run(process.ask('listEmbeddingKeys', ''))).body.keys as Record<string, string>[];

  const first = await start();
  await clock.run(first.createTenant());
  const made = await put(first, 'openai', 'key-of-openai-1234567890');
  await put(first, 'cohere', 'key-of-cohere-1234567890');
  const name = 'n';
  await clock.run(
    first.ask('createNamespace', '', { body: { name, embed: { provider: 'openai', dims: 16 } } }),
  );
  await clock.run(first.host.flush(tenantId, '', ''));
  const again = await put(first, 'openai', 'key-of-openai-0987654321');
  await clock.run(first.ask('deleteEmbeddingKey', '', { argument: 'cohere' }));
  await clock.run(first.ask('updateNamespace', 'n', { body: { embed: null } }));
  const before = await list(first);
  first.kill();

  const second = await start();
  assert.deepEqual(await list(second), before);
  assert.deepEqual(before, [again.body]);
  assert.deepEqual([again.body.created_at, again.body.hint], [made.body.created_at, 'key…4321']);
  assert.equal((await clock.run(second.ask('getNamespace', 'n'))).body.embed, undefined);
  await clock.run(second.ask('updateNamespace', 'n', { body: { embed: { provider: 'openai' } } }));
  await clock.run(second.drain());

  const third = await start();
  assert.deepEqual(await list(third), before);
  assert.equal((await clock.run(third.ask('getNamespace', 'n'))).body.embed.provider, 'openai');
  third.kill();
});
