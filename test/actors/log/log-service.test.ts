import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { LogService } from '../../../actors/log/log-service.ts';
import { sealLog } from '../../../actors/log/seal.ts';
import { limits } from '../../../protocol/limits.ts';
import type { Standing } from '../../../protocol/placement.ts';
import { isOwn } from '../../../src/base/owners.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { paths } from '../../../src/object-store/paths.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { quiet, seededBytes } from '../../support/in-process.ts';

const owners = { placement: 2, servers: ['a', 'b'], self: 'a' };
const logIds = Array.from({ length: 20 }, (_, at) => `${'0'.repeat(28)}${String(at).padStart(2, '0')}`);
/** Sealed logs of which this server says when they are done with, and the other one. */
const [finishedHere = '', finishedThere = ''] = [true, false].map((isHere) =>
  logIds.find((logId) => isOwn(owners, paths.logFolder(logId)) === isHere),
);
const own = 'f'.repeat(30);

let clock: FakeClock;
let store: MemoryObjectStore;

beforeEach(() => {
  clock = new FakeClock();
  store = new MemoryObjectStore();
});

test('a sealed log from which nothing has come here is read at the next housekeeping, by the server that says when it is done with', async () => {
  const removed = await Promise.all(
    [finishedHere, finishedThere].map(async (logId) => ({
      logId,
      sealSeq: await sealLog(store, seededBytes(1), { logId, placement: 2 }),
    })),
  );
  const standing: Standing = { version: 2, owners, others: [], removed: [], logs: [own] };
  const components = { store, clock, random: seededBytes(2), logger: quiet };
  const service = new LogService(components, { commitMs: 250, besideOthers: true });
  service.open({ logId: own, placement: 2 }, standing);
  await clock.advance(1_000);
  const isDone = async (logId: string) => (await store.get(paths.logDone(logId))) !== null;

  service.adopt({ ...standing, version: 3, removed, logs: [own, ...removed.map(({ logId }) => logId)] });
  await clock.advance(2_000);
  assert.deepEqual([await isDone(finishedHere), await isDone(finishedThere)], [false, false]);

  await clock.advance(2 * limits.logHousekeepingMs);
  assert.deepEqual([await isDone(finishedHere), await isDone(finishedThere)], [true, false]);
  await clock.run(service.drain());
});
