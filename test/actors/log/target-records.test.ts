import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { targetRecords } from '../../../actors/log/target-records.ts';
import { ApiError } from '../../../protocol/errors.ts';
import { limits } from '../../../protocol/limits.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import type { ObjectStore } from '../../../src/object-store/object-store.ts';
import { paths } from '../../../src/object-store/paths.ts';
import { writeFloor } from '../../../src/stored/log-floor.ts';
import { encodeLogObject, type LogObjectKind } from '../../../src/stored/log-object.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const logId = 'l'.repeat(30);
const log = { logId, placement: 3 };
let clock: FakeClock;
let store: MemoryObjectStore;

beforeEach(() => {
  clock = new FakeClock();
  store = new MemoryObjectStore(clock);
});

/** Stores a group with a record of each of the namespaces, of its version there. */
async function put(
  slot: number,
  versions: Readonly<Record<string, number>>,
  {
    kind = 'group',
    placement = 3,
    bytes = 4,
  }: { kind?: LogObjectKind; placement?: number; bytes?: number } = {},
): Promise<void> {
  const header = { logId, slot, kind, placement, previousChecksum: 0n, batchId: 'ab'.repeat(16) };
  const records = Object.entries(versions).map(([namespaceId, version]) => ({
    head: { tenantId: 7, namespace: 'n', namespaceId, version, blob: null, detail: null },
    payload: new Uint8Array(bytes),
  }));
  await store.putIfAbsent(paths.logObject(logId, slot), [encodeLogObject(header, records).bytes]);
}

const read = (from: Pick<ObjectStore, 'get' | 'list'> = store) =>
  targetRecords({ store: from, clock }, log, 'mine');
const slots = ({ records }: Awaited<ReturnType<typeof read>>) =>
  records.map(({ position, head }) => [position.slot, position.index, head.version]);

test('the records of a namespace come in the order of the log, from its floor to its end', async () => {
  await writeFloor(store, logId, { floor: 2, placement: 3 });
  for (let slot = 3; slot < 30; slot++) await put(slot, { other: slot, mine: slot - 2 });

  const all = await read();

  assert.deepEqual(
    slots(all),
    Array.from({ length: 27 }, (_, at) => [at + 3, 1, at + 1]),
  );
});

test('what is read is as old as the question after the end, not as the answer', async () => {
  await put(1, { mine: 1 });
  const slow: Pick<ObjectStore, 'get' | 'list'> = {
    list: (...asked) => store.list(...asked),
    async get(key, range) {
      const found = await store.get(key, range);
      await clock.sleep(50);
      return found;
    },
  };

  const all = await clock.run(read(slow));

  // The floor took 50 ms, and all slots were asked for after it.
  assert.deepEqual([all.asOfMs, all.records.length], [50, 1]);
  assert.ok(clock.monotonic() >= 150);
});

test('slots that are collected while they are read are passed over', async () => {
  for (const slot of [1, 2, 4]) await put(slot, { mine: slot });
  let floors = 0;
  const racing: Pick<ObjectStore, 'get' | 'list'> = {
    list: (...asked) => store.list(...asked),
    async get(key, range) {
      // By the second look at the floor the third slot was flushed and deleted.
      if (key === paths.logFloor(logId) && ++floors === 2)
        await writeFloor(store, logId, { floor: 3, placement: 3 });
      return store.get(key, range);
    },
  };

  assert.deepEqual(slots(await read(racing)).at(-1), [4, 0, 4]);
});

test('of a log that was sealed nothing is known after its seal was stored', async () => {
  await put(1, { mine: 1 });
  await put(2, {}, { kind: 'seal' });
  await clock.advance(700);

  const all = await read();

  assert.deepEqual([all.asOfMs, slots(all)], [0, [[1, 0, 1]]]);
});

test('nor of one that has passed to a placement that is not known here', async () => {
  await put(1, { mine: 1 });
  await clock.advance(100);
  await put(2, { other: 1 }, { kind: 'barrier', placement: 4 });
  await clock.advance(400);
  await put(3, { other: 2 }, { placement: 4 });

  assert.equal((await read()).asOfMs, 100);
});

test('a namespace with more in the log than a copy may take is refused, and one with less is not kept by the others', async () => {
  const half = limits.copyLogBytesMax / 2;
  await put(1, { mine: 1, other: 1 }, { bytes: half });
  await put(2, { other: 2 }, { bytes: half });
  assert.equal((await read()).records.length, 1);
  await put(3, { mine: 2 }, { bytes: half + 1 });

  await assert.rejects(read(), (error) => error instanceof ApiError && error.code === 'unavailable');
});
