import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { dropEach } from '../../../actors/tenant/remove-tenant.ts';
import { emptyTenant, tenantManifestCodec } from '../../../actors/tenant/tenant-state.ts';
import { internalCalls } from '../../../protocol/internal-calls.ts';
import type { TenantRecord } from '../../../protocol/stored-tenant.ts';
import { listAll } from '../../../src/object-store/list-all.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { paths } from '../../../src/object-store/paths.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { InProcess, seededBytes, tenantId } from '../../support/in-process.ts';

let clock: FakeClock;
let truth: MemoryObjectStore;
let starts = 0;

beforeEach(() => {
  clock = new FakeClock();
  truth = new MemoryObjectStore();
});

async function start(): Promise<InProcess> {
  return clock.run(InProcess.start({ store: truth, clock, random: seededBytes(90 + starts++) }));
}

const setStatus = (process: InProcess, status: TenantRecord['status']) =>
  process.askInside(internalCalls.setTenantStatus, { status });

async function statusOf(process: InProcess): Promise<string> {
  const tenant = await clock.run(process.askInside(internalCalls.getTenant, null));
  return (tenant as TenantRecord).status;
}

async function keysUnder(prefix: string): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of listAll(truth, prefix)) keys.push(key);
  return keys;
}

/** A tenant with everything that one has: flushed and not, deleted and not. */
async function full(): Promise<InProcess> {
  const process = await start();
  await clock.run(process.createTenant());
  await clock.run(process.put('a', [{ id: 'a', text: 'x' }]));
  await clock.run(process.ask('createKey', '', { body: { name: 'second' } }));
  const third = await clock.run(process.ask('createKey', '', { body: { name: 'third' } }));
  await clock.run(process.host.flush(tenantId, '', ''));
  await clock.run(process.put('b', [{ id: 'b', text: 'x' }]));
  await clock.run(process.ask('createNamespace', '', { body: { name: 'c' } }));
  await clock.run(process.ask('revokeKey', '', { argument: String(third.body.id) }));
  return process;
}

async function assertNothingLeft(process: InProcess): Promise<void> {
  assert.equal(await statusOf(process), 'deleting');
  assert.deepEqual(await keysUnder('ns/'), []);
  assert.deepEqual(await keysUnder('account/'), []);
  const place = paths.tenantManifest(tenantId);
  assert.deepEqual(await keysUnder('tenant/'), [place]);
  const bytes = (await truth.get(place))?.bytes ?? new Uint8Array();
  const { state } = tenantManifestCodec.decode(bytes, place);
  const tenant = {
    id: tenantId,
    name: '',
    plan: 'free',
    status: 'deleting',
    ownerId: 0,
    ownerVerified: false,
    createdAt: '',
  };
  assert.deepEqual(state, { ...emptyTenant(), tenant, version: state.version });
  assert.equal(Buffer.from(bytes).includes('second'), false);
}

test('a status is durable, and nobody comes back from the end', async () => {
  const first = await full();
  await clock.run(setStatus(first, 'suspended'));
  first.kill();

  const second = await start();
  assert.equal(await statusOf(second), 'suspended');
  await clock.run(setStatus(second, 'past_due'));
  assert.equal(await statusOf(second), 'past_due');
  await clock.run(setStatus(second, 'deleting'));
  await assert.rejects(clock.run(setStatus(second, 'active')), { code: 'not_found' });
  await clock.run(setStatus(second, 'deleting'));
  await assertNothingLeft(second);
  second.kill();
});

test('a status of a tenant that never was is refused', async () => {
  const process = await start();

  await assert.rejects(clock.run(setStatus(process, 'deleting')), { code: 'not_found' });
  process.kill();
});

test('when a deletion is answered nothing is left but a remnant, also after a restart', async () => {
  const process = await full();

  await clock.run(setStatus(process, 'deleting'));

  await assertNothingLeft(process);
  await clock.run(process.drain());
  const next = await start();
  await clock.advance(60_000);
  await assertNothingLeft(next);
  next.kill();
});

test('what was under way when a tenant ended changes nothing any more', async () => {
  const process = await full();
  await clock.run(setStatus(process, 'deleting'));

  const late = await clock.run(
    Promise.all([
      process.put('a', [{ id: 'late', text: 'x' }]),
      process.put('new', [{ id: 'late', text: 'x' }]),
      process.search('a', {}),
      process.ask('createNamespace', '', { body: { name: 'd' } }),
      process.ask('createKey', '', { body: { name: 'late' } }),
    ]),
  );

  assert.deepEqual(
    late.map(({ status }) => status),
    [404, 404, 404, 404, 404],
  );
  await clock.advance(30_000);
  await assertNothingLeft(process);
  process.kill();
});

test('an owner may verify their address while a tenant is being deleted, and afterwards', async () => {
  const process = await full();

  const verify = () => process.askInside(internalCalls.ownerVerified, null);
  await clock.run(Promise.all([setStatus(process, 'deleting'), verify()]));
  await clock.run(verify());
  await clock.run(process.askInside(internalCalls.noteUsage, []));

  await assertNothingLeft(process);
  process.kill();
});

test('writes that race with the deletion of their tenant leave nothing behind', async () => {
  const process = await full();

  const racing = [1, 2, 3].flatMap((round) => [
    process.put(`race-${round}`, [{ id: 'a', text: 'x' }]),
    process.ask('createKey', '', { body: { name: 'late' } }),
    process.ask('createNamespace', '', { body: { name: `made-${round}` } }),
  ]);
  await clock.run(Promise.all([...racing, setStatus(process, 'deleting'), process.put('a', [{ id: 'b' }])]));
  await clock.advance(60_000);

  await assertNothingLeft(process);
  process.kill();
});

test('a kill at any step of a deletion leaves a tenant, or one whose end is finished by the next process', async () => {
  let [ended, stayed] = [0, 0];
  for (let step = 1; ; step++) {
    truth = new MemoryObjectStore();
    clock = new FakeClock();
    const process = await full();
    let calls = 0;
    process.store.plan = () => {
      if (++calls === step) process.kill();
      return undefined;
    };
    let answered = false;
    const answer = () => {
      answered = true;
    };
    setStatus(process, 'deleting').then(answer, () => {});
    await clock.advance(20_000);
    process.kill();

    const next = await start();
    await clock.advance(60_000);
    if ((await statusOf(next)) === 'deleting') {
      await assertNothingLeft(next);
      ended++;
    } else {
      assert.equal(answered, false);
      assert.equal((await clock.run(next.get('a', 'a'))).status, 200);
      assert.equal((await clock.run(next.get('b', 'b'))).status, 200);
      stayed++;
    }
    next.kill();
    if (answered && calls < step) break;
  }
  assert.ok(ended > 5, `${ended} ended, ${stayed} stayed`);
});

test('a deletion has happened though its objects cannot be removed yet; they go as soon as they can', async () => {
  const process = await full();
  let away = true;
  process.store.plan = ({ operation }) => (away && operation === 'delete' ? 'drop-before-apply' : undefined);

  await clock.run(setStatus(process, 'deleting'));

  assert.equal(await statusOf(process), 'deleting');
  assert.notDeepEqual(await keysUnder('account/'), []);
  away = false;
  await clock.advance(10_000);
  await assertNothingLeft(process);
  process.kill();
});

test('dropping stops where it is told to, and fails with what failed', async () => {
  const dropped: number[] = [];
  const items = Array.from({ length: 100 }, (_, i) => i);
  const stopsAt20 = async (item: number) => {
    dropped.push(item);
    return item < 20;
  };

  assert.equal(await dropEach(items, stopsAt20), false);
  assert.ok(dropped.length < 40);
  assert.equal(await dropEach(items, async () => true), true);
  assert.equal(await dropEach([], async () => false), true);
  await assert.rejects(
    dropEach(items, async (item) => {
      if (item === 5) throw new Error('the fifth');
      return true;
    }),
    /the fifth/,
  );
});

test('usage that is told while the tenant is being deleted may be told again, and is then taken by nobody', async () => {
  const process = await full();
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  process.store.plan = ({ operation }) => (operation === 'create' ? { until: opened } : undefined);
  const removed = setStatus(process, 'deleting');
  const note = { day: '2024-02-10', counters: { queries: 1 }, keys: [] };
  await clock.settle();

  // What this refusal means to the front: nothing was written, and there is nothing to log.
  await assert.rejects(clock.run(process.askInside(internalCalls.noteUsage, [note])), {
    code: 'unavailable',
  });
  open();
  await clock.run(removed);
  await clock.run(process.askInside(internalCalls.noteUsage, [note]));

  await assertNothingLeft(process);
  process.kill();
});
