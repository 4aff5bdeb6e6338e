import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { LogTail } from '../../../actors/log/log-tail.ts';
import { sealLog } from '../../../actors/log/seal.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { paths } from '../../../src/object-store/paths.ts';
import { writeFloor } from '../../../src/stored/log-floor.ts';
import { encodeLogObject } from '../../../src/stored/log-object.ts';
import { seededBytes } from '../../support/in-process.ts';

const logId = 'l'.repeat(30);
let store: MemoryObjectStore;
let tail: LogTail;

beforeEach(() => {
  store = new MemoryObjectStore();
  tail = new LogTail(store, logId);
});

/** A header in each of the next slots, of these placements. */
async function write(from: number, ...placements: number[]): Promise<void> {
  for (const [at, placement] of placements.entries()) {
    const slot = from + at;
    const header = {
      logId,
      slot,
      kind: 'barrier',
      placement,
      previousChecksum: 0n,
      batchId: 'ab'.repeat(16),
    } as const;
    await store.putIfAbsent(paths.logObject(logId, slot), [encodeLogObject(header, []).bytes]);
  }
}

test('a log is open until a header has the placement, and what is below that header counts', async () => {
  assert.deepEqual(await tail.look(3), { kind: 'open' });
  await write(1, 2, 2);
  assert.deepEqual(await tail.look(3), { kind: 'open' });
  await write(3, 3, 3);

  assert.deepEqual(await tail.look(3), { kind: 'barred', after: 0, through: 2 });
  assert.deepEqual(await tail.look(3), { kind: 'barred', after: 0, through: 2 }, 'asked again');
  await write(5, 4);
  assert.deepEqual(await tail.look(4), { kind: 'barred', after: 0, through: 4 });
});

test('a log that has passed over a placement shows a later one', async () => {
  await write(1, 2, 5);

  assert.deepEqual(await tail.look(3), { kind: 'later' });
  assert.deepEqual(await tail.look(5), { kind: 'barred', after: 0, through: 1 });
});

test('a sealed log has ended in every placement that it has not reached', async () => {
  await write(1, 2);
  const sealSeq = await sealLog(store, seededBytes(1), { logId, placement: 9 });

  assert.deepEqual(await tail.look(3), { kind: 'sealed', sealSeq, placement: 2 });
  assert.deepEqual(await tail.look(4), { kind: 'sealed', sealSeq, placement: 2 });
});

test('a barrier that was collected is found in the floor', async () => {
  await write(6, 4);
  await writeFloor(store, logId, { floor: 5, placement: 3 });

  assert.deepEqual(await tail.look(3), { kind: 'barred', after: 5, through: 5 });
  assert.deepEqual(await tail.look(4), { kind: 'barred', after: 0, through: 5 });
});

test('the barrier of a long log is found in few reads, wherever it lies, and says what is needed below it', async () => {
  await write(1, ...Array.from({ length: 700 }, () => 2));
  const barrier = { logId, slot: 701, kind: 'barrier', placement: 3, previousChecksum: 0n } as const;
  const { bytes } = encodeLogObject({ ...barrier, batchId: 'ab'.repeat(16), othersFloor: 650 }, []);
  await store.putIfAbsent(paths.logObject(logId, 701), [bytes]);
  await write(702, ...Array.from({ length: 500 }, () => 3));
  let gets = 0;
  const counted = new LogTail(
    {
      get: (...asked) => {
        gets++;
        return store.get(...asked);
      },
    },
    logId,
  );

  assert.deepEqual(await counted.look(3), { kind: 'barred', after: 650, through: 700 });
  assert.ok(gets <= 50, `${gets} reads`);
  assert.deepEqual(await counted.look(4), { kind: 'open' });
  const sealSeq = await sealLog(store, seededBytes(1), { logId, placement: 9 });
  gets = 0;
  assert.deepEqual(await counted.look(4), { kind: 'sealed', sealSeq, placement: 3 });
  assert.ok(gets <= 4, `${gets} reads of an end that has not moved`);
});

test('a seal in a slot that was collected is not the end', async () => {
  const seal = {
    logId,
    slot: 1,
    kind: 'seal',
    placement: 9,
    previousChecksum: 0n,
    batchId: 'cd'.repeat(16),
  } as const;
  await store.putIfAbsent(paths.logObject(logId, 1), [encodeLogObject(seal, []).bytes]);
  await writeFloor(store, logId, { floor: 2, placement: 2 });
  await write(3, 3);

  assert.deepEqual(await tail.look(3), { kind: 'barred', after: 0, through: 2 });
});
