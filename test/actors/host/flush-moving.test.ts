import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { flushMoving } from '../../../actors/host/flush-moving.ts';
import type { LogTarget } from '../../../actors/log/unflushed.ts';
import { limits } from '../../../protocol/limits.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { InProcess, quiet, seededBytes, tenantId } from '../../support/in-process.ts';

const owners = { placement: 9, servers: ['server-b'], self: 'server-a' };
const target = (namespace: string): LogTarget => ({
  tenantId: 1,
  namespace,
  namespaceId: `id-of-${namespace}`,
});

let clock: FakeClock;

beforeEach(() => {
  clock = new FakeClock();
});

test('the log hears of what moved away earlier before the hand-over goes on, whatever becomes of one look', async () => {
  const told: string[] = [];
  const log = {
    movedAway: async () => ['a', 'b', 'c'].map(target),
    heard: async () => void told.push('heard'),
  };
  const lookUp = async ({ namespace }: LogTarget) => {
    await clock.sleep(100);
    if (namespace === 'a') throw new Error('the store is away');
    told.push(namespace);
  };

  await clock.run(
    flushMoving({ clock, logger: quiet, log, lookUp }, [], { owners, withinMs: limits.leaveFlushMs }),
  );

  assert.deepEqual(told, ['b', 'c', 'heard']);
});

test('looks at what moved away end when the time is over', async () => {
  let looks = 0;
  const log = {
    movedAway: async () => Array.from({ length: limits.movedLookUpsMax }, (_, at) => target(`n${at}`)),
    heard: async () => {},
  };
  const lookUp = async () => {
    looks++;
    await clock.sleep(100);
  };

  const beganMs = clock.monotonic();

  await clock.run(flushMoving({ clock, logger: quiet, log, lookUp }, [], { owners, withinMs: 1_000 }));
  assert.equal(clock.monotonic() - beganMs, 1_000);
  await clock.advance(10_000);

  assert.equal(looks, 10 * limits.movingFlushesAtOnce);
});

test('a look that hangs, or a log that does not say what moved, holds up nothing for longer than looks may take', async () => {
  const told: string[] = [];
  const heard = async () => void told.push('heard');
  const hanging = { movedAway: async () => [target('a')], heard };
  const silent = { movedAway: () => Promise.reject(new Error('the log is away')), heard };
  const moving = { owners, withinMs: limits.leaveFlushMs };
  const lookUp = () => new Promise<void>(() => {});
  const beganMs = clock.monotonic();

  await clock.run(flushMoving({ clock, logger: quiet, log: hanging, lookUp }, [], moving));
  assert.equal(clock.monotonic() - beganMs, limits.movedLookUpsMsMax);
  await clock.run(flushMoving({ clock, logger: quiet, log: silent, lookUp }, [], moving));

  assert.deepEqual(told, ['heard', 'heard']);
  assert.equal(clock.monotonic() - beganMs, limits.movedLookUpsMsMax);
});

test('the log names targets that other servers own now, until it hears that their manifests have all of its records', async () => {
  const store = new MemoryObjectStore();
  const process = await clock.run(InProcess.start({ store, clock, random: seededBytes(1) }));
  await clock.run(process.createTenant());
  await clock.run(process.put('notes', [{ id: 'a', text: 'a' }]));
  const { log } = process.components;
  const namesOfMoved = async () => (await clock.run(log.movedAway())).map(({ namespace }) => namespace);
  const before = await namesOfMoved();

  const { standing } = process.joined;
  const later = { ...standing, version: standing.version + 1, owners };
  process.host.adopt(later);
  process.log.adopt(later);
  const after = await namesOfMoved();
  const [tenant, notes] = await clock.run(log.movedAway());
  assert.ok(tenant !== undefined && notes !== undefined);
  log.flushed(notes, { logId: log.logId, slot: 1_000, index: 0 });
  await clock.run(log.heard());

  assert.deepEqual([before, after, await namesOfMoved()], [[], ['', 'notes'], ['']]);
  assert.equal(notes.tenantId, tenantId);
  process.kill();
});
