import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, test } from 'node:test';
import type { NamespaceDirectory } from '../../../actors/actor/components.ts';
import { AppendRefused } from '../../../actors/log/group-commit.ts';
import type { LogClient } from '../../../actors/log/log-client.ts';
import {
  applyTenantEvent,
  decodeTenantEvent,
  emptyTenant,
  encodeTenantEvent,
  tenantManifestCodec,
} from '../../../actors/tenant/tenant-state.ts';
import { ApiError } from '../../../protocol/errors.ts';
import { internalCalls } from '../../../protocol/internal-calls.ts';
import { limits } from '../../../protocol/limits.ts';
import type { NewNamespace } from '../../../protocol/messages.ts';
import type { TenantEvent } from '../../../protocol/stored-tenant.ts';
import { DataError } from '../../../src/base/assert.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { paths } from '../../../src/object-store/paths.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { gate } from '../../support/faulty-object-store.ts';
import { goldenBytes } from '../../support/golden.ts';
import { InProcess, keyRecord, seededBytes, tenantId } from '../../support/in-process.ts';

let clock: FakeClock;
let truth: MemoryObjectStore;
let starts = 0;

beforeEach(() => {
  clock = new FakeClock();
  truth = new MemoryObjectStore();
});

async function start(): Promise<InProcess> {
  return clock.run(InProcess.start({ store: truth, clock, random: seededBytes(40 + starts++) }));
}

async function withTenant(): Promise<InProcess> {
  const process = await start();
  await clock.run(process.createTenant());
  return process;
}

const createNamespace = (process: InProcess, name: string) =>
  process.ask('createNamespace', '', { body: { name } });
const deleteNamespace = (process: InProcess, name: string) =>
  process.ask('deleteNamespace', '', { argument: name });

async function names(process: InProcess, query = ''): Promise<string[]> {
  const { body } = await clock.run(process.ask('listNamespaces', '', { query }));
  return body.namespaces.map(({ name }: { name: string }) => name);
}

async function keys(process: InProcess): Promise<string[]> {
  const { body } = await clock.run(process.ask('listKeys', ''));
  return body.map(({ name }: { name: string }) => name);
}

test('names and keys outlive kills and flushes', async () => {
  const first = await withTenant();
  await clock.run(createNamespace(first, 'b'));
  await clock.run(createNamespace(first, 'a'));
  const made = await clock.run(first.ask('createKey', '', { body: { name: 'second' } }));
  await clock.run(first.host.flush(tenantId, '', ''));
  await clock.run(createNamespace(first, 'c'));
  await clock.run(deleteNamespace(first, 'b'));
  first.kill();

  const second = await start();
  assert.deepEqual(await names(second), ['a', 'c']);
  assert.deepEqual((await keys(second)).sort(), ['k', 'second']);
  assert.equal(
    (await clock.run(second.ask('revokeKey', '', { argument: String(made.body.id) }))).status,
    204,
  );
  await clock.run(second.drain());

  const third = await start();
  assert.deepEqual(await names(third), ['a', 'c']);
  assert.deepEqual(await keys(third), ['k']);
  third.kill();
});

test('a tenant whose manifest is gone is damaged, also where the log still has its last records', async () => {
  await clock.run((await withTenant()).drain());
  const last = await start();
  await clock.run(createNamespace(last, 'late'));
  last.kill();
  await truth.delete(paths.tenantManifest(tenantId));

  const next = await start();
  const asked = await clock.run(next.ask('listNamespaces', '', { query: '' }));

  assert.deepEqual(
    [asked.status, asked.body.error],
    [503, 'stored data could not be read; nothing was written'],
  );
  next.kill();
});

test('a name is made once: whoever comes second hears 409', async () => {
  const process = await withTenant();

  const [one, other] = await clock.run(
    Promise.all([createNamespace(process, 'n'), createNamespace(process, 'n')]),
  );
  const third = await clock.run(createNamespace(process, 'n'));

  assert.deepEqual([one.status, other.status, third.status], [201, 409, 409]);
  process.kill();
});

test('the list is by pages in byte order and shows what a key may see', async () => {
  const process = await withTenant();
  for (const name of ['b', 'a', 'a.1', 'c', 'b-2']) await clock.run(createNamespace(process, name));

  const page = await clock.run(process.ask('listNamespaces', '', { query: 'limit=2' }));
  const rest = await names(process, `limit=10&after=${page.body.next}`);
  const last = await clock.run(process.ask('listNamespaces', '', { query: 'limit=5' }));

  assert.deepEqual(
    page.body.namespaces.map(({ name }: { name: string }) => name),
    ['a', 'a.1'],
  );
  assert.deepEqual(rest, ['b', 'b-2', 'c']);
  assert.equal(last.body.next, '');
  process.kill();
});

test('the ledger hears of what is written', async () => {
  const process = await withTenant();
  await clock.run(
    process.put('n', [
      { id: 'a', text: 'x' },
      { id: 'b', text: 'y' },
    ]),
  );
  await clock.advance(1_000);

  const { body } = await clock.run(process.ask('listNamespaces', ''));

  assert.equal(body.namespaces[0].docs_written, 2);
  assert.ok(body.namespaces[0].stored_bytes > 0);
  process.kill();
});

test('deleting what is not there is 404, deleting it at once twice is harmless', async () => {
  const process = await withTenant();
  await clock.run(process.put('n', [{ id: 'a', text: 'x' }]));

  assert.equal((await clock.run(deleteNamespace(process, 'other'))).status, 404);
  const both = await clock.run(Promise.all([deleteNamespace(process, 'n'), deleteNamespace(process, 'n')]));
  assert.ok(both.some(({ status }) => status === 204));
  assert.deepEqual(await names(process), []);
  process.kill();
});

test('a refused change leaves no trace, and the next one counts', async () => {
  const process = await withTenant();
  const { log } = process.components;
  const append = log.append.bind(log);
  let refuse = true;
  Object.assign(log, {
    append: (...args: Parameters<LogClient['append']>) =>
      refuse ? Promise.reject(new AppendRefused('not-written')) : append(...args),
  });

  const refused = await clock.run(createNamespace(process, 'n'));
  refuse = false;

  assert.deepEqual([refused.status, refused.code], [503, 'unavailable']);
  assert.deepEqual(await names(process), []);
  assert.equal((await clock.run(createNamespace(process, 'n'))).status, 201);
  process.kill();
});

test('a change during a flush is in the next one', async () => {
  const process = await withTenant();
  await clock.run(createNamespace(process, 'a'));
  const landing = gate();
  process.store.plan = ({ key }) => (key.startsWith('tenant/') ? { until: landing.opened } : undefined);
  const flushing = process.host.flush(tenantId, '', '');
  await clock.settle();
  await clock.run(createNamespace(process, 'b'));
  landing.open();
  await clock.run(flushing);
  const load = async () => {
    const place = paths.tenantManifest(tenantId);
    const found = await truth.get(place);
    return [...tenantManifestCodec.decode(found?.bytes ?? new Uint8Array(), place).state.names.keys()];
  };
  assert.deepEqual(await load(), ['a']);

  await clock.run(process.host.flush(tenantId, '', ''));

  assert.deepEqual(await load(), ['a', 'b']);
  process.kill();
});

test('a tenant that was never made has no namespaces, and nothing makes one for it', async () => {
  const process = await start();

  assert.equal((await clock.run(process.put('n', [{ id: 'a', text: 'x' }]))).status, 404);
  process.kill();
});

const key = keyRecord(11);
const gone = { taken: { writes: 2, docsWritten: 3, bytesWritten: 4 }, day: '2024-01-03' };
const events: readonly TenantEvent[] = [
  {
    kind: 'tenant-created',
    tenant: {
      id: 7,
      name: 'T',
      plan: 'free',
      status: 'active',
      ownerId: 3,
      ownerVerified: false,
      createdAt: '2024-01-01T00:00:00.000Z',
    },
    firstKey: key,
  },
  { kind: 'key-created', key: { ...key, id: 12, ratePerSecond: 5, namespaces: ['a*'] }, answer: null },
  {
    kind: 'namespace-created',
    name: 'n',
    namespaceId: 'ab'.repeat(16),
    createdAt: '2024-01-02T00:00:00.000Z',
    vector: { dims: 3, metric: 'euclidean' },
    embed: null,
    answer: null,
  },
  {
    kind: 'namespace-created',
    name: 'm',
    namespaceId: 'cd'.repeat(16),
    createdAt: '2024-01-02T00:00:00.000Z',
    vector: null,
    embed: null,
    answer: null,
  },
  { kind: 'key-revoked', keyId: 12 },
  { kind: 'namespace-deleted', name: 'm', namespaceId: 'cd'.repeat(16), ...gone },
];

function stateOf(all: readonly TenantEvent[]) {
  const state = emptyTenant();
  for (const event of all) applyTenantEvent(state, decodeTenantEvent(encodeTenantEvent(event), 'event'));
  return state;
}

test('deleting a name that was made again deletes nothing', () => {
  const state = stateOf([
    ...events,
    { kind: 'namespace-deleted', name: 'n', namespaceId: 'ff'.repeat(16), ...gone },
  ]);

  assert.deepEqual([...state.names.keys()], ['n']);
  assert.equal(state.version, events.length + 1);
});

test('the bytes of a tenant’s manifest are those of the golden file, and any change of them is found', () => {
  const manifest = {
    version: 3,
    nonce: 'ab'.repeat(16),
    owner: { logId: 'log-a', view: 2 },
    applied: new Map([['log-a', { slot: 9, index: 1 }]]),
    state: stateOf(events.slice(0, 4)),
  };
  const bytes = tenantManifestCodec.encode(manifest, 'golden');

  const golden = goldenBytes('tenant-manifest-v9.bin', bytes);

  assert.deepEqual(Buffer.from(bytes), golden);
  assert.deepEqual(tenantManifestCodec.decode(golden, 'golden'), manifest);
  // Those of earlier versions read as well: 8 knows no links, 7 no subscription, and of 6 what differs is in its envelopes, which say so themselves.
  for (const version of [6, 7, 8]) {
    const older = readFileSync(join(process.cwd(), `test/golden/tenant-manifest-v${version}.bin`));
    assert.deepEqual(tenantManifestCodec.decode(older, 'golden'), manifest);
  }
  for (let at = 0; at < bytes.length; at++) {
    const spoilt = Buffer.from(bytes);
    spoilt[at] = (spoilt[at] ?? 0) ^ 2;
    assert.throws(() => tenantManifestCodec.decode(spoilt, 'golden'), DataError, `byte ${at}`);
  }
});

test('a change that the log does not confirm in time may or may not be applied, and its consequences still come', async () => {
  const process = await withTenant();
  await clock.run(createNamespace(process, 'old'));
  await clock.run(process.ask('createKey', '', { body: { name: 'second' } }));
  const listed = await clock.run(process.ask('listKeys', ''));
  const { id } = listed.body.find(({ name }: { name: string }) => name === 'second');
  let away = true;
  process.store.plan = ({ key }) => (away && key.startsWith('log/') ? 'drop-before-apply' : undefined);

  const answers = await clock.run(
    Promise.all([
      createNamespace(process, 'new'),
      process.ask('getNamespace', 'new'),
      deleteNamespace(process, 'old'),
      process.ask('createKey', '', { body: { name: 'third' } }),
      process.ask('revokeKey', '', { argument: String(id) }),
    ]),
  );
  const codes = answers.map(({ code }) => code);
  assert.deepEqual(codes, [
    'write_unknown',
    'unavailable',
    'write_unknown',
    'write_unknown',
    'write_unknown',
  ]);

  away = false;
  await clock.advance(2_000);
  assert.deepEqual(await names(process), ['new']);
  assert.ok((await keys(process)).includes('third'));
  assert.ok(!(await keys(process)).includes('second'));
  process.kill();
});

test('a deletion whose owner has not heard of it is not known to have happened', async () => {
  const process = await withTenant();
  await clock.run(process.put('n', [{ id: 'a', text: 'x' }]));
  const directory = process.components.directory as { drop: NamespaceDirectory['drop'] };
  const { drop } = directory;
  directory.drop = () => Promise.reject(new ApiError('unavailable', 'its server cannot be reached'));

  const told = await clock.run(deleteNamespace(process, 'n'));
  assert.deepEqual([told.status, told.code], [503, 'write_unknown']);
  assert.deepEqual(await names(process), []);

  directory.drop = drop;
  await clock.run(clock.sleep(limits.writeUnknownAfterMs));
  const again = await clock.run(process.put('n', [{ id: 'b', text: 'y' }]));
  assert.deepEqual([again.status, again.body.version], [200, 1]);
});

test('a deletion has happened though its objects cannot be removed yet; they go as soon as they can', async () => {
  const first = await withTenant();
  await clock.run(first.put('n', [{ id: 'a', text: 'x' }]));
  await clock.run(first.host.drain());
  first.kill();
  const process = await start();
  const objects = async () => (await truth.list('ns/', { limit: 10 })).objects.length;
  let away = true;
  process.store.plan = ({ operation }) => (away && operation === 'delete' ? 'drop-before-apply' : undefined);

  assert.equal(await objects(), 1);
  const { status } = await clock.run(deleteNamespace(process, 'n'));

  assert.equal(status, 204);
  assert.deepEqual(await names(process), []);
  assert.equal(await objects(), 1);
  away = false;
  await clock.advance(10_000);
  assert.equal(await objects(), 0);
  process.kill();
});

test('limits of a key are replaced as a whole, durably', async () => {
  const first = await withTenant();
  const body = { name: 'limited', namespaces: ['a*'], rate_per_s: 5, cap_queries: 6, cap_writes: 7 };
  const made = await clock.run(first.ask('createKey', '', { body }));
  const argument = String(made.body.id);
  const limitsOf = async (process: InProcess) => {
    const listed = await clock.run(process.ask('listKeys', ''));
    const found = listed.body.find(({ id }: { id: number }) => id === made.body.id);
    return [found.namespaces, found.rate_per_s, found.cap_queries, found.cap_writes];
  };
  const replace = (process: InProcess, limits: object, id = argument) =>
    clock.run(process.ask('replaceKeyLimits', '', { argument: id, body: limits }));

  assert.deepEqual(await limitsOf(first), [['a*'], 5, 6, 7]);
  assert.equal((await replace(first, { rate_per_s: 9 })).status, 204);
  first.kill();

  const second = await start();
  assert.deepEqual(await limitsOf(second), [[], 9, null, null]);
  assert.equal((await replace(second, {})).status, 204);
  assert.deepEqual(await limitsOf(second), [[], null, null, null]);
  for (const id of ['1234', 'x', '0', '-1', '1e3', '281474976710656'])
    assert.deepEqual((await replace(second, {}, id)).code, 'not_found');
  assert.deepEqual((await replace(second, { rate_per_s: 0 })).code, 'invalid');
  assert.deepEqual((await replace(second, { speed: 1 })).code, 'invalid');
  second.kill();
});

test('the claim of a revoked key goes with the next flush, and after a kill with that of the next process', async () => {
  const first = await withTenant();
  const claims = async () => (await truth.list('account/key/', { limit: 10 })).objects.length;
  const make = async (name: string) => {
    const { body } = await clock.run(first.ask('createKey', '', { body: { name } }));
    return String(body.id);
  };
  const [one, two] = [await make('one'), await make('two')];
  assert.equal(await claims(), 2);

  await clock.run(first.ask('revokeKey', '', { argument: one }));
  await clock.run(first.host.flush(tenantId, '', ''));
  assert.equal(await claims(), 1);
  await clock.run(first.ask('revokeKey', '', { argument: two }));
  assert.equal(await claims(), 1);
  first.kill();

  const second = await start();
  await clock.advance(10_000);
  assert.equal(await claims(), 0);
  second.kill();
});

/** A tenant whose keys are `count` more, each limited to as many names as a key may have. */
async function withKeys(process: InProcess, count: number, patterns: number): Promise<void> {
  const namespaces = Array.from({ length: patterns }, (_, i) => String(i).padStart(64, 'x'));
  const made = Array.from({ length: count }, (_, i) =>
    process.ask('createKey', '', { body: { name: `k${i}`, namespaces } }),
  );
  for (const { code } of await clock.run(Promise.all(made))) assert.equal(code, '');
}

test('a tenant has so many keys, those that are being made among them, and one fewer when one is revoked', async () => {
  const process = await withTenant();
  await withKeys(process, limits.keysOfTenantMax - 2, 0);
  const make = () => process.ask('createKey', '', { body: { name: 'last' } });

  const both = await clock.run(Promise.all([make(), make()]));
  assert.deepEqual(both.map(({ code }) => code).sort(), ['', 'conflict']);
  const refused = both.find(({ code }) => code !== '') ?? assert.fail('none was refused');
  assert.match(refused.body.error, /at most 1000 API keys: revoke some/);

  const id = both.find(({ code }) => code === '')?.body.id;
  await clock.run(process.ask('revokeKey', '', { argument: String(id) }));
  assert.equal((await clock.run(make())).code, '');
  process.kill();
});

test('the keys of a tenant have so many patterns together, which its memory counts', async () => {
  const process = await withTenant();
  const before = process.components.memory.bytes;
  const each = 100;
  await withKeys(process, limits.keyPatternsOfTenantMax / each, each);
  assert.ok(process.components.memory.bytes - before > limits.keyPatternsOfTenantMax * 64);

  const more = await clock.run(process.ask('createKey', '', { body: { name: 'more', namespaces: ['a'] } }));
  assert.deepEqual([more.status, Object.keys(more.body.fields)], [422, ['namespaces']]);
  const free = await clock.run(process.ask('createKey', '', { body: { name: 'more' } }));
  const limit = (id: number, namespaces: string[]) =>
    clock.run(process.ask('replaceKeyLimits', '', { argument: String(id), body: { namespaces } }));
  assert.equal((await limit(free.body.id, ['a'])).status, 422);
  const listed = (await clock.run(process.ask('listKeys', ''))).body;
  const one = listed.find(({ namespaces }: { namespaces: string[] }) => namespaces.length === each);
  assert.equal((await limit(one.id, one.namespaces.slice(1))).status, 204);
  assert.equal((await limit(free.body.id, ['a'])).status, 204);
  process.kill();
});

test('keys end together: those of one person or all, for good, and none is made meanwhile that stays', async () => {
  const first = await withTenant();
  await clock.run(first.ask('createKey', '', { body: { name: 'of another person' } }));
  assert.deepEqual((await keys(first)).toSorted(), ['k', 'of another person']);
  const end = (process: InProcess, madeBy: number | null) =>
    clock.run(process.askInside(internalCalls.endKeys, { madeBy }));

  await end(first, 1);
  assert.deepEqual(await keys(first), ['of another person']);
  const racing = Array.from({ length: 8 }, (_, at) =>
    first.ask('createKey', '', { body: { name: `late ${at}` } }),
  );
  const [made] = await Promise.all([clock.run(Promise.all(racing)), end(first, null)]);

  assert.deepEqual(await keys(first), []);
  for (const { status } of made) assert.ok(status === 201 || status === 503, `${status}`);
  await clock.run(first.ask('createKey', '', { body: { name: 'after' } }));
  first.kill();
  const second = await start();
  assert.deepEqual(await keys(second), ['after'], 'also where the log is replayed');
  await clock.run(second.drain());
  const { objects } = await truth.list('account/key/', { limit: 100 });
  assert.equal(objects.length, 1, 'claims of ended keys are gone');
});

test('who finds a name that somebody else is making hears of it once it is durable', async () => {
  const first = await withTenant();
  const resolve = (process: InProcess, create: NewNamespace | null) =>
    process.components.directory.resolve(tenantId, 'n', create);
  const asked = { vector: null, embed: null };

  const [made, found] = await clock.run(Promise.all([resolve(first, asked), resolve(first, asked)]));
  first.kill();

  assert.deepEqual([made?.created, found?.created], [true, false]);
  const second = await start();
  assert.equal((await clock.run(resolve(second, null)))?.namespaceId, found?.namespaceId);
  second.kill();
});
