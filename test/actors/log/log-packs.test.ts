/** Packs of log slots: what is written, and that a replay finds with them what it finds without. */
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { LogPacks } from '../../../actors/log/log-packs.ts';
import { replayLog } from '../../../actors/log/replay.ts';
import { limits } from '../../../protocol/limits.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { type StoredObject, StoreError } from '../../../src/object-store/object-store.ts';
import { lastSlotOfPackKey, paths } from '../../../src/object-store/paths.ts';
import { encodeLogObject } from '../../../src/stored/log-object.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { InProcess, quiet, seededBytes } from '../../support/in-process.ts';

const { logPackSlots } = limits;
const logId = 'l'.repeat(30);

/** Notes what is asked for, and fails to store packs where it is told to. */
class NotingStore extends MemoryObjectStore {
  readonly asked: string[] = [];
  refusesPacks = false;

  override get(...[key, options]: Parameters<MemoryObjectStore['get']>): Promise<StoredObject | null> {
    this.asked.push(key);
    return super.get(key, options);
  }

  override async putIfAbsent(...args: Parameters<MemoryObjectStore['putIfAbsent']>) {
    if (this.refusesPacks && lastSlotOfPackKey(args[0]) !== null)
      throw new StoreError('create', args[0], 'not-applied', 'failed');
    return super.putIfAbsent(...args);
  }
}

let store: NotingStore;
let packs: LogPacks;
let slots: number;
let checksum: bigint;

beforeEach(() => {
  store = new NotingStore();
  packs = new LogPacks({ store, clock: new FakeClock(), random: seededBytes(1), logger: quiet }, logId);
  slots = 0;
  checksum = 0n;
});

/** Writes the next slots as the log does, and has them packed. Slots alternate between a group of two records and a barrier. */
async function write(count: number, { payloadBytes = 10, logOf = logId } = {}): Promise<void> {
  for (const last = slots + count; slots < last; ) {
    const slot = ++slots;
    const kind = slot % 5 === 0 ? 'barrier' : 'group';
    const header = { logId: logOf, slot, kind, placement: 1, previousChecksum: checksum } as const;
    const record = (version: number) => ({
      head: { tenantId: 1, namespace: 'n', namespaceId: 'x', version, blob: null, detail: null },
      payload: Buffer.alloc(payloadBytes + (version % 7), version),
    });
    const made = encodeLogObject(
      { ...header, batchId: slot.toString(16).padStart(32, '0') },
      kind === 'barrier' ? [] : [record(2 * slot), record(2 * slot + 1)],
    );
    checksum = made.checksum;
    await store.putIfAbsent(paths.logObject(logOf, slot), [made.bytes]);
    packs.stored(slot, made.bytes);
  }
}

async function replay(after: number, through: number): Promise<string[]> {
  const found: string[] = [];
  for await (const { position, head, payload } of replayLog(store, { logId, after, through }))
    found.push(`${position.slot}.${position.index} v${head.version} ${Buffer.from(payload).toString('hex')}`);
  return found;
}

async function packsStored(): Promise<number[]> {
  const { objects } = await store.list(paths.logFolder(logId), { limit: 1_000 });
  return objects.flatMap(({ key }) => lastSlotOfPackKey(key) ?? []);
}

/** What replays find without packs. */
async function withoutPacks(ranges: readonly (readonly [number, number])[]): Promise<string[][]> {
  for (const last of await packsStored()) await store.delete(paths.logPack(logId, last));
  return Promise.all(ranges.map(([after, through]) => replay(after, through)));
}

test('a pack is written when its last slot is stored', async () => {
  await write(logPackSlots - 1);
  assert.deepEqual(await packsStored(), []);
  await write(1);
  assert.deepEqual(await packsStored(), [logPackSlots]);
  await write(2 * logPackSlots + 3);
  assert.deepEqual(
    await packsStored(),
    [1, 2, 3].map((n) => n * logPackSlots),
  );
});

test('slots that are too large together have no pack, and the next ones have', async () => {
  await write(logPackSlots, { payloadBytes: limits.logPackBytesMax / logPackSlots });
  await write(logPackSlots);

  assert.deepEqual(await packsStored(), [2 * logPackSlots]);
});

test('a pack that is not stored costs nothing but itself', async () => {
  store.refusesPacks = true;
  await write(logPackSlots);
  store.refusesPacks = false;
  await write(logPackSlots);

  assert.deepEqual(await packsStored(), [2 * logPackSlots]);
  assert.equal((await replay(0, slots)).length, 2 * Math.ceil(slots * 0.8));
});

test('replays of all ranges find with packs what they find without', async () => {
  await write(4 * logPackSlots + 5);
  const ends = [0, 1, 2, logPackSlots - 3, logPackSlots - 1, logPackSlots, logPackSlots + 1];
  const ranges = ends.flatMap((after) =>
    [...ends, 2 * logPackSlots, 3 * logPackSlots + 7, slots].map((through) => [after, through] as const),
  );

  const found = await Promise.all(ranges.map(([after, through]) => replay(after, through)));

  assert.ok(found.some((records) => records.length > 200));
  assert.deepEqual(found, await withoutPacks(ranges));
});

test('a replay reads packs in place of their slots, and none that has slots above its end', async () => {
  await write(3 * logPackSlots);
  store.asked.length = 0;
  await replay(0, 3 * logPackSlots - 1);

  const singles = Array.from({ length: logPackSlots - 1 }, (_, i) =>
    paths.logObject(logId, 2 * logPackSlots + 1 + i),
  );
  assert.deepEqual(store.asked, [
    paths.logPack(logId, logPackSlots),
    paths.logPack(logId, 2 * logPackSlots),
    ...singles,
  ]);
});

for (const [what, damage] of [
  ['is cut off', (bytes: Buffer) => bytes.subarray(0, bytes.length - 9)],
  ['has a wrong byte', (bytes: Buffer) => Buffer.from(bytes).fill(7, 200, 201)],
  ['is empty', () => Buffer.alloc(0)],
  ['says that a record is longer than it', (bytes: Buffer) => Buffer.from(bytes).fill(0xff, 100, 104)],
] as const)
  test(`where a pack ${what}, its slots are read`, async () => {
    await write(2 * logPackSlots);
    const key = paths.logPack(logId, logPackSlots);
    const bytes = Buffer.from((await store.get(key))?.bytes ?? []);
    await store.delete(key);
    await store.putIfAbsent(key, [damage(bytes)]);

    const found = await replay(0, slots);

    assert.ok(store.asked.includes(paths.logObject(logId, 1)));
    assert.deepEqual([found], await withoutPacks([[0, slots]]));
  });

test('a pack of other slots, or of another log, is not believed', async () => {
  await write(2 * logPackSlots);
  const second = (await store.get(paths.logPack(logId, 2 * logPackSlots)))?.bytes ?? new Uint8Array();
  await store.delete(paths.logPack(logId, logPackSlots));
  await store.putIfAbsent(paths.logPack(logId, logPackSlots), [second]);
  const found = await replay(0, slots);
  assert.deepEqual([found], await withoutPacks([[0, slots]]));

  const other = 'm'.repeat(30);
  slots = 0;
  checksum = 0n;
  const ofOther = new NotingStore();
  [store, packs] = [
    ofOther,
    new LogPacks({ store: ofOther, clock: new FakeClock(), random: seededBytes(1), logger: quiet }, logId),
  ];
  await write(logPackSlots, { logOf: other });
  // Its own slots are not there: nothing of the other log takes their place.
  await assert.rejects(replay(0, logPackSlots), /missing/);
});

test('a server packs its log, and its packs go with what they are of', async () => {
  const clock = new FakeClock();
  const truth = new MemoryObjectStore(clock);
  const server = await clock.run(InProcess.start({ store: truth, clock, random: seededBytes(1) }));
  const folder = paths.logFolder(server.joined.identity.logId);
  const packed = async () =>
    (await truth.list(folder, { limit: 1_000 })).objects.flatMap(({ key }) => lastSlotOfPackKey(key) ?? []);
  await clock.run(server.createTenant());
  for (let n = 0; n < logPackSlots; n++) await clock.run(server.put('n', [{ id: `${n}`, text: 'tide' }]));
  assert.deepEqual(await packed(), [logPackSlots]);

  await clock.advance(800_000);

  assert.deepEqual(await packed(), []);
});
