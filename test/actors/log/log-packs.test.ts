/** Packs of log slots: what is written, and that a replay finds with them what it finds without. */
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { LogPacks } from '../../../actors/log/log-packs.ts';
import { readSlots } from '../../../actors/log/read-slots.ts';
import { replayLog } from '../../../actors/log/replay.ts';
import { limits } from '../../../protocol/limits.ts';
import { DataError } from '../../../src/base/assert.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { type StoredObject, StoreError } from '../../../src/object-store/object-store.ts';
import { lastSlotOfPackKey, paths } from '../../../src/object-store/paths.ts';
import { patientGet } from '../../../src/object-store/patient-get.ts';
import { encodeLogObject } from '../../../src/stored/log-object.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { InProcess, quiet, seededBytes } from '../../support/in-process.ts';

const { logPackSlots } = limits;
const logId = 'l'.repeat(30);

/** Notes what is asked for, and fails or waits with packs where it is told to. */
class NotingStore extends MemoryObjectStore {
  readonly asked: string[] = [];
  /** Packs that were to be stored. */
  readonly packsSent: string[] = [];
  packFailure: Error | null = null;
  /** Packs are stored after it. */
  packsWaitFor: Promise<void> = Promise.resolve();

  override async get(...[key, options]: Parameters<MemoryObjectStore['get']>): Promise<StoredObject | null> {
    this.asked.push(key);
    this.#failPack(key);
    return super.get(key, options);
  }

  override async putIfAbsent(...args: Parameters<MemoryObjectStore['putIfAbsent']>) {
    this.#failPack(args[0]);
    if (lastSlotOfPackKey(args[0]) !== null) {
      this.packsSent.push(args[0]);
      await this.packsWaitFor;
    }
    return super.putIfAbsent(...args);
  }

  #failPack(key: string): void {
    if (this.packFailure !== null && lastSlotOfPackKey(key) !== null) throw this.packFailure;
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

/** Writes the next slots as the log does, and has them packed. Every fifth slot is a barrier, the others are groups of two records. */
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

const packKey = paths.logPack(logId, logPackSlots);
for (const [what, failure] of [
  ['the store fails', new StoreError('create', packKey, 'not-applied', 'failed')],
  ['the store answers what nobody can read', new DataError(packKey, 0, 'no answer of this store')],
] as const) {
  test(`a pack that is not stored because ${what} costs nothing but itself`, async () => {
    store.packFailure = failure;
    await write(logPackSlots);
    store.packFailure = null;
    await write(logPackSlots);

    assert.deepEqual(await packsStored(), [2 * logPackSlots]);
    assert.equal((await replay(0, slots)).length, 2 * Math.ceil(slots * 0.8));
  });

  test(`where packs can't be had because ${what}, their slots are read`, async () => {
    await write(2 * logPackSlots);
    store.packFailure = failure;

    const found = await replay(0, slots);

    store.packFailure = null;
    assert.deepEqual([found], await withoutPacks([[0, slots]]));
  });
}

test('who asks is told when the pack that is being stored has been, and a pack that fills meanwhile is not stored', async () => {
  let release = () => {};
  store.packsWaitFor = new Promise((resolve) => {
    release = resolve;
  });
  await write(2 * logPackSlots);
  let isSettled = false;
  const settled = packs.settled().then(() => {
    isSettled = true;
  });
  await new Promise(setImmediate);
  assert.equal(isSettled, false);

  release();
  await settled;
  assert.deepEqual(await packsStored(), [logPackSlots]);
});

test('without packs, slots are read ahead over the ends of those that are missing', async () => {
  await write(4 * logPackSlots);
  await withoutPacks([]);
  const all = Array.from({ length: slots }, (_, i) => paths.logObject(logId, i + 1));
  store.asked.length = 0;
  const readings = readSlots(store, { logId, after: 0, through: slots });
  let askedMost = 0;
  for (let slot = 1; slot <= slots; slot++) {
    const next = await readings.next();
    await next.value?.reading;
    const asked = store.asked.filter((key) => all.includes(key)).length;
    askedMost = Math.max(askedMost, asked - slot);
    // The packs of the slots ahead have been asked for by now, and are known to be missing.
    if (slot > 1) assert.equal(asked, Math.min(slots, slot + limits.replayReadsInFlight - 1), `slot ${slot}`);
  }
  assert.equal(askedMost, limits.replayReadsInFlight - 1);
});

test('replays of all ranges find with packs what they find without', async () => {
  await write(4 * logPackSlots + 5);
  const ends = [0, 1, 2, logPackSlots - 3, logPackSlots - 1, logPackSlots, logPackSlots + 1];
  const ranges = ends.flatMap((after) =>
    [...ends, 2 * logPackSlots, 3 * logPackSlots + 7, slots].map((through) => [after, through] as const),
  );

  const found = await Promise.all(ranges.map(([after, through]) => replay(after, through)));

  assert.ok(found.some((records) => records.length > 200));
  assert.ok(store.asked.some((key) => lastSlotOfPackKey(key) !== null));
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

test('where packs fail and the slots are read by a store that tries again, each pack is asked for once and nothing is waited for', async () => {
  await write(3 * logPackSlots);
  store.packFailure = new StoreError('get', packKey, 'not-applied', 'failed');
  store.asked.length = 0;
  const clock = new FakeClock();
  const range = { logId, after: 0, through: slots };
  let records = 0;
  for await (const _ of replayLog(patientGet(store, clock), range, store)) records++;

  assert.equal(records, 2 * Math.ceil(slots * 0.8));
  assert.equal(store.asked.filter((key) => lastSlotOfPackKey(key) !== null).length, 3);
  assert.equal(clock.monotonic(), new FakeClock().monotonic());
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

for (const [afterMs, what] of [
  [1_100, 'a pack that is on its way when a server stops goes with its slots'],
  [
    5_000,
    'where a pack is still on its way a second later, a stopping server leaves it and deletes its slots',
  ],
] as const)
  test(what, async () => {
    const clock = new FakeClock();
    store = new NotingStore(clock);
    const server = await clock.run(InProcess.start({ store, clock, random: seededBytes(1) }));
    await clock.run(server.createTenant());
    // Each of the writes below takes a quarter of a second.
    const writtenMs = (logPackSlots - 1) * 250;
    store.packsWaitFor = new Promise((resolve) => clock.after(writtenMs + afterMs, resolve));
    for (let n = 0; n < logPackSlots; n++) await clock.run(server.put('n', [{ id: `${n}`, text: 'tide' }]));
    assert.equal(store.packsSent.length, 1);
    assert.equal((await logKeys(server)).includes('pack'), false);
    await clock.run(server.drain());
    assert.deepEqual(await logKeys(server), ['floor']);

    await clock.advance(10_000);

    assert.deepEqual(await logKeys(server), afterMs > 2_000 ? ['floor', 'pack'] : ['floor']);
  });

/** What a server's log consists of in the store. */
async function logKeys({ joined }: InProcess): Promise<(string | undefined)[]> {
  const { objects } = await store.list(paths.logFolder(joined.identity.logId), { limit: 1_000 });
  return objects.map(({ key }) => key.split('/')[2]);
}
