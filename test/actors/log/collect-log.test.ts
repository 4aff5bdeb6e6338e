import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ListedLog, listLogs, planLogCollection } from '../../../actors/log/collect-log.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { paths } from '../../../src/object-store/paths.ts';
import { emptyLogObjectBytes, encodeLogObject } from '../../../src/stored/log-object.ts';

const logId = 'l'.repeat(30);
const group = emptyLogObjectBytes + 1;

const listed = (overrides: Partial<ListedLog> = {}): ListedLog => ({
  logId,
  slots: [
    { slot: 3, size: group },
    { slot: 4, size: group },
    { slot: 5, size: emptyLogObjectBytes },
  ],
  blobIds: ['b1', 'b2'],
  packs: [32, 64],
  isDone: true,
  ...overrides,
});

test('a seal is as small as no group can be', () => {
  const header = { logId, slot: 1, placement: 1, previousChecksum: 0n, batchId: '0'.repeat(32) } as const;
  const seal = encodeLogObject({ ...header, kind: 'seal' }, []);

  assert.equal(seal.bytes.length, emptyLogObjectBytes);
});

test('slots of the own log at or under the floor go, and blobs that nothing in use names', () => {
  const plan = planLogCollection(listed(), { kind: 'own', floor: 3, blobsInUse: new Set(['b2']) });

  assert.deepEqual(plan, [paths.logObject(logId, 3), paths.logBlob(logId, 'b1')]);
});

test('packs of the own log go with their last slots', () => {
  const plan = (floor: number) =>
    planLogCollection(listed({ slots: [], blobIds: [] }), { kind: 'own', floor, blobsInUse: new Set() });

  assert.deepEqual(plan(31), []);
  assert.deepEqual(plan(63), [paths.logPack(logId, 32)]);
  assert.deepEqual(plan(64), [paths.logPack(logId, 32), paths.logPack(logId, 64)]);
});

test('a log whose records are not all in manifests stays whole', () => {
  assert.deepEqual(planLogCollection(listed(), { kind: 'needed' }), []);
});

test('everything of a log that is done goes but its seal, and the marker while the view names it', () => {
  const groups = [paths.logObject(logId, 3), paths.logObject(logId, 4)];
  const packs = [paths.logPack(logId, 32), paths.logPack(logId, 64)];
  const blobs = [paths.logBlob(logId, 'b1'), paths.logBlob(logId, 'b2')];

  assert.deepEqual(planLogCollection(listed(), { kind: 'done' }), [...groups, ...packs, ...blobs]);
  assert.deepEqual(planLogCollection(listed(), { kind: 'gone' }), [
    ...groups,
    ...packs,
    ...blobs,
    paths.logDone(logId),
  ]);
});

test('a listing is sorted by log', async () => {
  const store = new MemoryObjectStore();
  const other = 'm'.repeat(30);
  for (const key of [
    paths.logObject(logId, 7),
    paths.logFloor(logId),
    paths.logBlob(logId, 'x'),
    paths.logPack(logId, 32),
    paths.logObject(other, 1),
    paths.logDone(other),
  ])
    await store.putIfAbsent(key, [Buffer.alloc(9)]);

  const logs = await listLogs(store);

  assert.deepEqual(
    [...logs.values()],
    [
      { logId, slots: [{ slot: 7, size: 9 }], blobIds: ['x'], packs: [32], isDone: false },
      { logId: other, slots: [{ slot: 1, size: 9 }], blobIds: [], packs: [], isDone: true },
    ],
  );
});
