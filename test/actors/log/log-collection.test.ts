/** What a whole process deletes of its own and of its predecessors' logs, and what it must not. */
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { logSlotOfKey, paths } from '../../../src/object-store/paths.ts';
import { readFloor } from '../../../src/stored/log-floor.ts';
import { emptyLogObjectBytes } from '../../../src/stored/log-object.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { InProcess, seededBytes } from '../../support/in-process.ts';

let clock: FakeClock;
let truth: MemoryObjectStore;
let seed = 0;

beforeEach(() => {
  clock = new FakeClock();
  truth = new MemoryObjectStore(clock);
  seed = 0;
});

const start = () => clock.run(InProcess.start({ store: truth, clock, random: seededBytes(++seed) }));

async function objects(prefix: string) {
  return (await truth.list(prefix, { limit: 1_000 })).objects;
}

async function groupsOf(logId: string): Promise<number[]> {
  const found = await objects(paths.logFolder(logId));
  return found.filter((o) => o.size > emptyLogObjectBytes).flatMap(({ key }) => logSlotOfKey(key) ?? []);
}

/** Time passes without every heartbeat in it: what is due happens once. */
async function hours(count: number): Promise<void> {
  clock.jump(count * 3_600_000);
  await clock.advance(120_000);
}

test('slots and blobs under the floor are deleted once everything in them is in manifests', async () => {
  const server = await start();
  const { logId } = server.joined.identity;
  await clock.run(server.createTenant());
  await clock.run(
    server.put('n', [
      { id: 'large', text: 'tide '.repeat(380_000) },
      { id: 'l2', text: 'tide '.repeat(380_000) },
      { id: 'l3', text: 'tide '.repeat(380_000) },
    ]),
  );
  await clock.run(server.put('n', [{ id: 'small', text: 'tide' }]));
  assert.notEqual((await groupsOf(logId)).length, 0);
  assert.equal((await objects(`${paths.logFolder(logId)}blob/`)).length, 1);

  // The namespace is flushed by age, and what it reports then is a record of its tenant, which is flushed by age too.
  await clock.advance(800_000);

  assert.deepEqual(await groupsOf(logId), []);
  assert.deepEqual(await objects(`${paths.logFolder(logId)}blob/`), []);
  assert.equal((await clock.run(server.get('n', 'small'))).body.text, 'tide');
});

test('an orderly end leaves a floor at the end of the log, and no record under it', async () => {
  const server = await start();
  const { logId } = server.joined.identity;
  await clock.run(server.createTenant());
  await clock.run(server.put('n', [{ id: 'a', text: 'tide' }]));
  assert.equal(await readFloor(truth, logId), 0, 'no round of housekeeping came before');
  assert.notEqual((await groupsOf(logId)).length, 0);

  await clock.run(server.drain());

  assert.notEqual(await readFloor(truth, logId), 0);
  assert.deepEqual(await groupsOf(logId), []);
  const next = await start();
  assert.equal((await clock.run(next.get('n', 'a'))).body.text, 'tide');
});

test('a log that is not done when logs are collected is looked at again soon', async () => {
  const first = await start();
  await clock.run(first.createTenant());
  await clock.run(first.put('n', [{ id: 'a', text: 'tide' }]));
  const { logId } = first.joined.identity;
  first.kill();

  // It flushes nothing of what it replays until somebody asks for it.
  const second = await clock.run(
    InProcess.start({ store: truth, clock, random: seededBytes(++seed), recover: false }),
  );
  await clock.advance(90_000);
  assert.notEqual((await groupsOf(logId)).length, 0);
  second.host.recover();
  await clock.advance(90_000);
  assert.deepEqual(await groupsOf(logId), []);
});

test('nothing stays of a log that was taken over but its seal and its floor', async () => {
  const first = await start();
  await clock.run(first.createTenant());
  await clock.run(first.put('n', [{ id: 'a', text: 'tide' }]));
  const { logId } = first.joined.identity;
  first.kill();

  const second = await start();
  await hours(2);

  assert.deepEqual(await groupsOf(logId), []);
  const left = (await objects(paths.logFolder(logId))).map(({ key }) => key.split('/').at(-1));
  assert.deepEqual(left, ['00000000000000000003', 'done']);
  assert.equal(await truth.get(paths.lease(logId)), null);
  assert.equal((await clock.run(second.get('n', 'a'))).body.text, 'tide');

  second.kill();
  await start();
  await hours(2);
  assert.equal(await truth.get(paths.logDone(logId)), null, 'the view has forgotten it');
});

test('a duplicate that lands in an emptied slot is found by the next listing', async () => {
  const server = await start();
  const { logId } = server.joined.identity;
  await clock.run(server.createTenant());
  const late = await truth.get(paths.logObject(logId, 1));
  await clock.advance(400_000);
  assert.deepEqual(await groupsOf(logId), []);
  await truth.putIfAbsent(paths.logObject(logId, 1), [late?.bytes ?? new Uint8Array()]);
  assert.deepEqual(await groupsOf(logId), [1]);

  await hours(2);

  assert.deepEqual(await groupsOf(logId), []);
});

test('a process that was overtaken deletes nothing of logs and ends', async () => {
  const first = await start();
  await clock.run(first.createTenant());
  const second = await start();
  await clock.run(second.put('n', [{ id: 'a', text: 'tide' }]));
  const before = (await groupsOf(second.joined.identity.logId)).length;
  assert.ok(before > 0);
  second.kill();

  await hours(2);

  assert.equal(first.sealed, true);
  assert.equal((await groupsOf(second.joined.identity.logId)).length, before);
});
