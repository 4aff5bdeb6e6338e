import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Evictable, Eviction, OpenActors } from '../../../actors/host/open-actors.ts';
import { WaitingReplays } from '../../../actors/host/waiting-replays.ts';
import { Block, BlockCache } from '../../../actors/storage/block-fetch.ts';
import { FreshObjects } from '../../../actors/storage/fresh-objects.ts';
import { KnownShares } from '../../../actors/thread/known-shares.ts';
import { MemoryBudget } from '../../../actors/thread/memory-budget.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { type Answer, InProcess, quiet, seededBytes, tenantId } from '../../support/in-process.ts';
import { seededRandom } from '../../support/segments.ts';

const MiB = 1024 * 1024;

interface World {
  readonly clock: FakeClock;
  readonly truth: MemoryObjectStore;
  start(memoryBytes: number): Promise<InProcess>;
}

function world(seed: number): World {
  const clock = new FakeClock();
  const truth = new MemoryObjectStore();
  let starts = 0;
  return {
    clock,
    truth,
    start: (memoryBytes) =>
      clock.run(
        InProcess.start({ store: truth, clock, random: seededBytes(seed * 100 + starts++), memoryBytes }),
      ),
  };
}

/** Sends a write until it is taken; whatever is not taken must be write_busy. */
async function putTaken(clock: FakeClock, send: () => Promise<Answer>): Promise<number> {
  for (let refusals = 0; ; refusals++) {
    const { status, code } = await send();
    if (status === 200) return refusals;
    assert.deepEqual([status, code], [429, 'write_busy']);
    await clock.sleep(1_000);
  }
}

const text = (name: string, bytes: number) => `${name} ${'tide '.repeat(bytes / 5)}`;

test('hundreds of namespaces touched in turn answer right and stay within a small budget', async () => {
  const { clock, start } = world(1);
  const process = await start(MiB);
  await clock.run(process.createTenant());
  const { memory } = process.components;
  const names = Array.from({ length: 400 }, (_, i) => `n${i}`);
  for (let from = 0; from < names.length; from += 100) {
    const batch = names.slice(from, from + 100);
    const writes = batch.map((name) =>
      putTaken(clock, () => process.put(name, [{ id: name, text: text(name, 3_000) }])),
    );
    await clock.run(Promise.all(writes), 600_000);
  }

  // What only the log has must be flushed before it can be put away: that takes time, these reads take none.
  await clock.advance(400_000);
  for (let round = 0; round < 2; round++) {
    for (const name of names) {
      const { body } = await clock.run(process.get(name, name));
      assert.equal(body.text, text(name, 3_000));
      const { body: found } = await clock.run(process.search(name, { q: name }));
      assert.deepEqual(
        found.hits.map(({ id }: { id: string }) => id),
        [name],
      );
      assert.ok(memory.bytes <= memory.bytesMax, `${memory.bytes} bytes`);
    }
  }

  assert.ok(process.host.openNamespaces < 200, `${process.host.openNamespaces} are open`);
  const lines = Object.values(memory.lines);
  assert.equal(
    lines.reduce((sum, bytes) => sum + bytes, 0),
    memory.bytes,
  );
  assert.ok(lines.every((bytes) => bytes >= 0));
  process.kill();
});

/** Set to a number to run more seeds than the suite does. */
const moreSeeds = Number(process.env.TIDEBASE_TEST_SEEDS ?? 0);
const seeds = Array.from({ length: 2 + moreSeeds }, (_, i) => 1 + i);

for (const seed of seeds) {
  test(`requests between evictions find what a model finds (seed ${seed})`, async () => {
    const random = seededRandom(seed);
    const { clock, start } = world(seed);
    let process = await start(512 * 1024);
    await clock.run(process.createTenant());
    const model = new Map<string, Map<string, string>>();
    const names = Array.from({ length: 30 }, (_, i) => `n${i}`);
    const pick = () => names[Math.floor(random() * names.length)] ?? 'n0';
    const step = async (name: string, kind: number): Promise<void> => {
      const known = model.get(name);
      const id = `d${Math.floor(random() * 5)}`;
      if (kind < 0.45) {
        const content = text(`${name} ${random()}`, random() < 0.1 ? 300_000 : 5_000);
        await putTaken(clock, () => process.put(name, [{ id, text: content }]));
        model.set(name, (model.get(name) ?? new Map()).set(id, content));
      } else if (kind < 0.55 && known !== undefined) {
        await putTaken(clock, () => process.remove(name, [id]));
        known.delete(id);
      } else if (kind < 0.8) {
        const { status, body } = await process.get(name, id);
        const expected = known?.get(id);
        assert.equal(status, expected === undefined ? 404 : 200);
        if (expected !== undefined) assert.equal(body.text, expected);
      } else if (known !== undefined) {
        const { body } = await process.count(name, { q: 'tide' });
        assert.equal(body.count, known.size);
      }
    };
    for (let round = 0; round < 120; round++) {
      // One request a namespace at a time, many namespaces at once: a model can say what each must answer.
      const busy = new Set(Array.from({ length: 8 }, pick));
      await clock.run(Promise.all([...busy].map((name) => step(name, random()))), 600_000);
      if (random() < 0.1) await clock.advance(random() * 2_000);
      if (random() < 0.02) {
        if (random() < 0.5) process.kill();
        else await clock.run(process.drain());
        process = await start(512 * 1024);
      }
    }
    for (const [name, documents] of model) {
      const found = documents.size === 0 ? [] : await clock.run(process.list(name));
      assert.deepEqual(found.sort(), [...documents.keys()].sort(), name);
    }
    process.kill();
  });
}

test('writers hear write_busy while memory is taken up by what cannot be stored, and nothing was written', async () => {
  const { clock, start } = world(7);
  const process = await start(2 * MiB);
  await clock.run(process.createTenant());
  for (const name of ['a', 'b', 'c', 'd'])
    await clock.run(putTaken(clock, () => process.put(name, [{ id: '1', text: text(name, 100) }])));
  // Manifests cannot be stored, the log can.
  process.store.plan = ({ key, operation }) =>
    key.endsWith('manifest') && operation !== 'get' ? 'drop-before-apply' : undefined;
  let refused: Answer | null = null;
  let taken = 1;
  while (refused === null) {
    const answer = await clock.run(process.put('a', [{ id: `d${taken}`, text: text('a', 200_000) }]));
    if (answer.status === 200) taken++;
    else refused = answer;
    assert.ok(taken < 30);
  }

  assert.deepEqual([refused.status, refused.code, refused.body.retry_after], [429, 'write_busy', 1]);
  assert.equal((await clock.run(process.count('a'))).body.count, taken);
  process.store.plan = () => undefined;
  await clock.advance(20_000);
  await clock.run(putTaken(clock, () => process.put('a', [{ id: 'last', text: 'last' }])));
  assert.equal((await clock.run(process.count('a'))).body.count, taken + 1);
  process.kill();
});

test('where memory is used up, decoded blocks go first, then what was built a moment ago; an open actor goes last', async () => {
  const clock = new FakeClock();
  const memory = new MemoryBudget(MiB);
  const blocks = new BlockCache(MiB / 2, memory);
  const fresh = new FreshObjects(memory, clock);
  const parts = { clock, logger: quiet, memory, blocks, fresh, shares: new KnownShares(clock) };
  const actors = new OpenActors<Evictable>(clock);
  const idle = { closed: false, isIdle: true, isFlushed: true, residentBytes: 1_000, flushableBytes: 0 };
  await actors.openOnce('7/notes', async () => ({ ...idle, flush: async () => {}, close() {} })).opening;
  const eviction = new Eviction(parts, [actors]);
  const siblings = new Map<number, Block>();
  for (let n = 0; n < 8; n++) blocks.add(new Block(Buffer.alloc(10_000), n, { owner: 1, siblings }));
  fresh.add('a', 1, Buffer.alloc(10_000));
  fresh.add('b', 2, Buffer.alloc(10_000));
  const heldAfter = (bytes: number) => {
    memory.add('queries', bytes);
    eviction.makeRoom();
    return [siblings.size, fresh.has('a'), fresh.has('b'), actors.size];
  };

  assert.deepEqual(heldAfter(MiB - memory.bytes), [8, true, true, 1]);
  assert.deepEqual(heldAfter(10_000), [6, true, true, 1], 'the least share of blocks is 65,536 bytes');
  assert.deepEqual(heldAfter(12_000), [6, false, true, 1]);
  assert.deepEqual(heldAfter(10_000), [6, false, false, 1]);
  assert.deepEqual(heldAfter(20_000), [6, false, false, 0]);
});

test('memtables that rest are flushed from a quarter of the memory on, the largest first, two at a time, and nobody is put away', async () => {
  const { clock, memory, actors, flushed, eviction, hold, ends } = largeMemtables();
  const end = async () => {
    ends.shift()?.();
    await clock.advance(20);
    eviction.makeRoom();
  };

  await hold('large', 2 * MiB);
  await hold('small', MiB / 2);
  assert.deepEqual(flushed, [], 'they take less than a quarter');
  await hold('larger', 3 * MiB);
  assert.deepEqual(flushed, ['larger'], 'which is enough');
  await hold('largest', 4 * MiB);
  assert.deepEqual(flushed, ['larger', 'largest']);
  await hold('late', 3.5 * MiB);
  assert.deepEqual(flushed, ['larger', 'largest'], 'two at a time');
  await end();
  assert.deepEqual(flushed, ['larger', 'largest', 'late']);
  await end();
  await end();
  assert.deepEqual(flushed, ['larger', 'largest', 'late'], 'less than a quarter is left');
  assert.deepEqual([actors.size, memory.line('memtables')], [5, 2.5 * MiB]);
});

test('what no flush gives back, or is being written, is not flushed before memory is used up', async () => {
  const { memory, flushed, hold } = largeMemtables();
  memory.add('memtables', 6 * MiB);
  await hold('rests', 2 * MiB);
  await hold('is written', 5 * MiB, false);
  assert.deepEqual(flushed, []);
  await hold('rests too', 3 * MiB);
  assert.deepEqual(flushed, ['rests too']);
});

test('a flush that failed is not asked for again at once', async () => {
  const { clock, flushed, eviction, hold, fail } = largeMemtables();
  fail();
  await hold('large', 5 * MiB);
  for (let call = 0; call < 100; call++) {
    await clock.advance(5);
    eviction.makeRoom();
  }
  assert.deepEqual(flushed, ['large'], 'within half a second');
  await clock.advance(30_000);
  eviction.makeRoom();
  assert.deepEqual(flushed, ['large', 'large']);
});

/** An eviction over actors that hold memtables, whose flushes end when they are told to. */
function largeMemtables() {
  const clock = new FakeClock();
  const memory = new MemoryBudget(16 * MiB);
  const blocks = new BlockCache(MiB, memory);
  const actors = new OpenActors<Evictable>(clock);
  const parts = { clock, logger: quiet, memory, blocks, fresh: null, shares: new KnownShares(clock) };
  const eviction = new Eviction(parts, [actors]);
  const flushed: string[] = [];
  const ends: (() => void)[] = [];
  let fails = false;
  const hold = async (name: string, bytes: number, isIdle = true) => {
    memory.add('memtables', bytes);
    const actor = {
      closed: false,
      isIdle,
      isFlushed: false,
      residentBytes: bytes,
      flushableBytes: bytes,
      flush: async () => {
        flushed.push(name);
        if (fails) throw new Error('the store is away');
        await new Promise<void>((resolve) => ends.push(resolve));
        memory.add('memtables', -bytes);
        actor.residentBytes = 0;
        actor.flushableBytes = 0;
      },
      close() {},
    };
    await actors.openOnce(`7/${name}`, async () => actor).opening;
    await clock.advance(1_000);
    eviction.makeRoom();
  };
  const fail = () => {
    fails = true;
  };
  return { clock, memory, actors, flushed, ends, eviction, hold, fail };
}

test('records that wait for their actors are bounded, and those that were not kept are read again', async () => {
  const { clock, start } = world(9);
  const first = await start(64 * MiB);
  await clock.run(first.createTenant());
  const names = Array.from({ length: 12 }, (_, i) => `n${i}`);
  for (const name of names)
    for (const id of ['a', 'b', 'c'])
      await clock.run(first.put(name, [{ id, text: text(`${name}-${id}`, 100_000) }]));
  first.kill();

  // Replays may take a half of it: a third of what the log holds.
  const second = await start(2 * MiB);
  const { memory } = second.components;
  assert.ok(memory.line('replays') <= MiB, `${memory.line('replays')} bytes wait`);

  for (const name of names)
    assert.deepEqual((await clock.run(second.list(name))).sort(), ['a', 'b', 'c'], name);
  await clock.advance(60_000);
  assert.equal(memory.line('replays'), 0);
  second.kill();
});

test('nothing is kept of a target that is forgotten until it is read again', async () => {
  const replays = new WaitingReplays(new MemoryBudget(20_000));
  const head = (namespaceId: string) => ({
    tenantId,
    namespace: namespaceId,
    namespaceId,
    version: 1,
    blob: null,
    detail: null,
  });
  const record = (namespaceId: string, slot: number, bytes: number) => ({
    head: head(namespaceId),
    position: { logId: 'log', slot, index: 0 },
    payload: new Uint8Array(bytes),
  });
  replays.accept(record('small', 1, 100));
  replays.accept(record('large', 2, 8_000));
  replays.accept(record('large', 3, 8_000));
  replays.accept(record('large', 4, 100));

  const large = { tenantId, namespaceId: 'large' };
  assert.deepEqual(replays.of(large), []);
  assert.equal(replays.of({ tenantId, namespaceId: 'small' }).length, 1);
  assert.equal(replays.targets().length, 2);

  const again = [record('large', 2, 8_000), record('large', 3, 8_000), record('large', 4, 100)];
  const log = {
    replayTarget: async () => {
      for (const each of again) replays.accept(each);
    },
  };
  const asked = await Promise.all([replays.readAgain(large, log), replays.readAgain(large, log)]);
  assert.deepEqual(asked, [true, true]);
  assert.deepEqual(
    replays.of(large).map(({ position }) => position.slot),
    [2, 3, 4],
  );
  assert.equal(await replays.readAgain(large, log), false);
});
