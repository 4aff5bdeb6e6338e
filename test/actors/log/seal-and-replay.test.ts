import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { replayedFromWire, replayedToWire, replayLog } from '../../../actors/log/replay.ts';
import { sealLog } from '../../../actors/log/seal.ts';
import { DataError } from '../../../src/base/assert.ts';
import { xxh64 } from '../../../src/base/hash.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import type { ListOptions, ListPage } from '../../../src/object-store/object-store.ts';
import { paths } from '../../../src/object-store/paths.ts';
import { readFloor, writeFloor } from '../../../src/stored/log-floor.ts';
import { decodeLogObject, encodeLogObject } from '../../../src/stored/log-object.ts';
import { seededBytes } from '../../support/in-process.ts';

/** A store whose listings may be old. */
class StaleListStore extends MemoryObjectStore {
  listed: ListPage | null = null;
  override async list(prefix: string, options: ListOptions): Promise<ListPage> {
    return this.listed ?? super.list(prefix, options);
  }
}

const logId = 'l'.repeat(30);
let store: StaleListStore;

beforeEach(() => {
  store = new StaleListStore();
});

const head = (version: number) => ({
  tenantId: 1,
  namespace: 'n',
  namespaceId: 'x',
  version,
  blob: null,
  detail: null,
});

async function writeGroups(count: number): Promise<void> {
  let previousChecksum = 0n;
  for (let slot = 1; slot <= count; slot++) {
    const batchId = slot.toString(16).padStart(32, '0');
    const made = encodeLogObject({ logId, slot, kind: 'group', placement: 1, previousChecksum, batchId }, [
      { head: head(slot), payload: Buffer.from(`payload ${slot}`) },
    ]);
    previousChecksum = made.checksum;
    await store.putIfAbsent(paths.logObject(logId, slot), [made.bytes]);
  }
}

const seal = (seed = 1) => sealLog(store, seededBytes(seed), { logId, placement: 2 });

async function replay(range: { after: number; through: number }): Promise<number[]> {
  const versions: number[] = [];
  for await (const record of replayLog(store, { logId, ...range })) versions.push(record.head.version);
  return versions;
}

async function kindOf(slot: number): Promise<string | null> {
  const found = await store.get(paths.logObject(logId, slot));
  return found === null ? null : decodeLogObject(found.bytes, 'slot').kind;
}

test('a seal takes the slot after the last group', async () => {
  await writeGroups(3);

  assert.equal(await seal(), 4);
  assert.equal(await kindOf(4), 'seal');
});

test('an empty log is sealed in its first slot', async () => {
  assert.equal(await seal(), 1);
  assert.deepEqual(await replay({ after: 0, through: 0 }), []);
});

test('sealing a sealed log finds the seal that is there and adds none', async () => {
  await writeGroups(3);
  const first = await seal(1);

  const again = [await seal(2), await seal(3)];

  assert.deepEqual(again, [first, first]);
  assert.equal(await kindOf(5), null);
});

test('sealing a sealed empty log finds the seal that is there', async () => {
  await seal(1);

  assert.equal(await seal(2), 1);
});

test('a listing is only a hint: the end is found by trying', async () => {
  await writeGroups(5);
  for (const listed of [0, 2]) {
    const objects = Array.from({ length: listed }, (_, i) => ({
      key: paths.logObject(logId, i + 1),
      size: 1,
      modifiedAtMs: 0,
    }));
    store.listed = { objects, more: false };

    assert.equal(await seal(listed + 1), 6);
  }
});

test('two sealers at once agree on the end', async () => {
  await writeGroups(4);

  const [one, other] = await Promise.all([seal(1), seal(2)]);

  assert.deepEqual([one, other], [5, 5]);
});

test('other objects of the log do not confuse the search for its end', async () => {
  await writeGroups(1);
  await store.putIfAbsent(paths.logBlob(logId, 'ff'.repeat(16)), [Buffer.from('b')]);
  await writeFloor(store, logId, { floor: 1, placement: 1 });

  assert.equal(await seal(), 2);
});

test('a seal at or under the floor is made again above it', async () => {
  await writeGroups(3);
  await writeFloor(store, logId, { floor: 3, placement: 1 });
  for (let slot = 1; slot <= 3; slot++) await store.delete(paths.logObject(logId, slot));
  // The sealer has read an old floor and an old listing: to it the log looks empty.
  let reads = 0;
  const racing = new Proxy(store, {
    get(target, name) {
      if (name === 'get')
        return async (key: string) =>
          key === paths.logFloor(logId) && reads++ === 0 ? null : target.get(key);
      const value = Reflect.get(target, name, target) as unknown;
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  store.listed = { objects: [], more: false };

  const sealSeq = await sealLog(racing, seededBytes(1), { logId, placement: 2 });

  assert.equal(sealSeq, 4);
  assert.equal(await kindOf(4), 'seal');
});

test('a log sealed twice by an earlier mistake still replays up to its first seal', async () => {
  await writeGroups(3);
  const sealSeq = await seal();
  const second = encodeLogObject(
    {
      logId,
      slot: sealSeq + 1,
      kind: 'seal',
      placement: 3,
      previousChecksum: 0n,
      batchId: 'ab'.repeat(16),
    },
    [],
  );
  await store.putIfAbsent(paths.logObject(logId, sealSeq + 1), [second.bytes]);

  assert.deepEqual(await replay({ after: 0, through: sealSeq }), [1, 2, 3]);
});

test('replay reads what lies between the floor and the end, in order', async () => {
  await writeGroups(40);

  assert.deepEqual(
    await replay({ after: 10, through: 40 }),
    Array.from({ length: 30 }, (_, i) => i + 11),
  );
  assert.deepEqual(await replay({ after: 40, through: 40 }), []);
});

test('a missing slot is damage, never a shorter log', async () => {
  await writeGroups(5);
  await store.delete(paths.logObject(logId, 3));

  await assert.rejects(replay({ after: 0, through: 5 }), DataError);
  assert.deepEqual(await replay({ after: 3, through: 5 }), [4, 5]);
});

test('an object that does not follow the one before it, or lies in another slot, is damage', async () => {
  await writeGroups(2);
  const stranger = { logId, kind: 'group', placement: 1, batchId: 'cc'.repeat(16) } as const;
  const unchained = encodeLogObject({ ...stranger, slot: 3, previousChecksum: 5n }, []);
  await store.putIfAbsent(paths.logObject(logId, 3), [unchained.bytes]);
  await assert.rejects(replay({ after: 0, through: 3 }), DataError);
  assert.deepEqual(await replay({ after: 2, through: 3 }), []);

  await store.delete(paths.logObject(logId, 3));
  const misplaced = encodeLogObject({ ...stranger, slot: 4, previousChecksum: 0n }, []);
  await store.putIfAbsent(paths.logObject(logId, 3), [misplaced.bytes]);
  await assert.rejects(replay({ after: 2, through: 3 }), DataError);
});

test('what a paused writer collects while its log is replayed is passed over: it is in manifests', async () => {
  await writeGroups(5);
  for (const slot of [1, 2, 3]) await store.delete(paths.logObject(logId, slot));
  // A seal that was on its way for long has found a collected slot.
  const late = {
    logId,
    kind: 'seal',
    placement: 1,
    previousChecksum: 0n,
    batchId: 'ee'.repeat(16),
  } as const;
  await store.putIfAbsent(paths.logObject(logId, 2), [encodeLogObject({ ...late, slot: 2 }, []).bytes]);

  await writeFloor(store, logId, { floor: 3, placement: 1 });

  assert.deepEqual(await replay({ after: 0, through: 5 }), [4, 5]);
});

test('what is missing from a log that is done was taken over by somebody', async () => {
  await writeGroups(3);
  await store.delete(paths.logObject(logId, 2));

  await store.putIfAbsent(paths.logDone(logId), [Buffer.from([1])]);

  assert.deepEqual(await replay({ after: 0, through: 3 }), [1]);
});

test('a blob that is missing or differs is damage of its record alone', async () => {
  const damages = async () => {
    const found: (string | null)[] = [];
    for await (const record of replayLog(store, { logId, after: 0, through: 1 })) {
      const again = replayedFromWire(replayedToWire(record), record.payload);
      assert.deepEqual(again, record);
      found.push(record.damage?.place ?? null);
    }
    return found;
  };
  const bytes = Buffer.from('a large write');
  const blob = { id: 'dd'.repeat(16), length: bytes.length, checksum: xxh64(bytes) };
  const key = paths.logBlob(logId, blob.id);
  const made = encodeLogObject(
    { logId, slot: 1, kind: 'group', placement: 1, previousChecksum: 0n, batchId: 'aa'.repeat(16) },
    [
      { head: { ...head(1), blob }, payload: new Uint8Array() },
      { head: head(2), payload: Buffer.from('after it') },
    ],
  );
  await store.putIfAbsent(paths.logObject(logId, 1), [made.bytes]);
  assert.deepEqual(await damages(), [key, null]);

  await store.putIfAbsent(paths.logBlob(logId, blob.id), [Buffer.from('a large writf')]);
  assert.deepEqual(await damages(), [key, null]);

  await store.delete(paths.logBlob(logId, blob.id));
  await store.putIfAbsent(paths.logBlob(logId, blob.id), [bytes]);
  assert.deepEqual(await damages(), [null, null]);
});

test('a floor is raised only once the stored one is as high, whoever else writes it meanwhile', async () => {
  const store = new MemoryObjectStore();
  await Promise.all([6, 20, 9].map((floor) => writeFloor(store, logId, { floor, placement: 1 })));
  assert.equal(await readFloor(store, logId), 20);
  await Promise.all([21, 40, 30].map((floor) => writeFloor(store, logId, { floor, placement: 1 })));
  assert.equal(await readFloor(store, logId), 40);
});

test('the floor rises and never falls', async () => {
  assert.equal(await readFloor(store, logId), 0);

  for (const floor of [5, 3, 9]) await writeFloor(store, logId, { floor, placement: 1 });

  assert.equal(await readFloor(store, logId), 9);
});

test('a damaged floor is found: too high a one would lose what lies under it', async () => {
  await writeFloor(store, logId, { floor: 5, placement: 1 });
  const found = await store.get(paths.logFloor(logId));
  assert.ok(found);

  for (let at = 0; at < found.bytes.length; at++) {
    const spoilt = Buffer.from(found.bytes);
    spoilt[at] = (spoilt[at] ?? 0) ^ 4;
    await store.delete(paths.logFloor(logId));
    await store.putIfAbsent(paths.logFloor(logId), [spoilt]);
    await assert.rejects(readFloor(store, logId), DataError, `byte ${at}`);
  }
});
