/** Sets of deleted rows that are too large for the manifest. */
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { decodeManifest, type Manifest } from '../../../actors/storage/manifest.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
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
const idOf = (i: number) => `doc-${i}`;
const every = (step: number, from = 0) =>
  Array.from({ length: Math.ceil((10_000 - from) / step) }, (_, i) => idOf(from + i * step));

async function keys(part: string): Promise<string[]> {
  const { objects } = await truth.list('ns/', { limit: 1_000 });
  return objects.map(({ key }) => key).filter((key) => key.includes(part));
}

async function manifest(): Promise<{ value: Manifest; bytes: number }> {
  const [key = ''] = await keys('/manifest');
  const object = await truth.get(key);
  assert.ok(object !== null);
  return { value: decodeManifest(object.bytes, key), bytes: object.size };
}

/** A namespace with one segment of 10,000 documents, of which these are deleted in the manifest too. */
async function deleted(ids: readonly string[]): Promise<InProcess> {
  const server = await start();
  await clock.run(server.createTenant());
  const docs = Array.from({ length: 10_000 }, (_, i) => ({ id: idOf(i), text: `tide ${i} `.repeat(4) }));
  await clock.run(server.put('n', docs));
  await clock.advance(330_000);
  await remove(server, ids);
  return server;
}

async function remove(server: InProcess, ids: readonly string[]): Promise<void> {
  const { status, body } = await clock.run(server.remove('n', ids));
  assert.equal(status, 200, JSON.stringify(body));
  await clock.advance(330_000);
}

test('a few deleted rows lie in the manifest, many in an object of their own', async () => {
  const server = await deleted(every(10));
  assert.deepEqual(await keys('/deletes/'), []);
  assert.equal((await manifest()).value.segments[0]?.tombstones.count, 1_000);

  await remove(server, every(3, 1));

  const { value, bytes } = await manifest();
  const [segment] = value.segments;
  assert.equal((await keys('/deletes/')).length, 1);
  assert.ok((await keys('/deletes/'))[0]?.endsWith(`/${segment?.tombstonesObject?.id}`));
  assert.ok(bytes < 3_000, `a manifest of ${bytes} bytes`);
});

test('documents stay deleted after a restart, an orderly one and one after a crash', async () => {
  const gone = new Set(every(3));
  const server = await deleted([...gone]);
  for (const end of ['kill', 'drain'] as const) {
    if (end === 'kill') server.kill();
    const next = await start();
    assert.equal((await clock.run(next.count('n'))).body.count, 10_000 - gone.size);
    assert.deepEqual(
      (await clock.run(next.list('n'))).toSorted(),
      every(1)
        .filter((id) => !gone.has(id))
        .toSorted(),
    );
    assert.equal((await clock.run(next.get('n', idOf(3)))).status, 404);
    assert.equal((await clock.run(next.get('n', idOf(4)))).status, 200);
    await clock.run(next.drain());
  }
});

test('an older set is retired and goes when its grace is over; one that did not change stays', async () => {
  const server = await deleted(every(3));
  const [first = ''] = await keys('/deletes/');
  await clock.run(server.put('n', [{ id: 'new', text: 'tide' }]));
  await clock.advance(330_000);
  assert.deepEqual(await keys('/deletes/'), [first]);

  await remove(server, [idOf(1)]);
  const both = await keys('/deletes/');
  assert.equal(both.length, 2);
  assert.deepEqual(
    (await manifest()).value.retired.map(({ kind }) => kind),
    ['deletes'],
  );

  await clock.advance(16 * 60_000);
  const left = await keys('/deletes/');
  assert.deepEqual(
    left,
    both.filter((key) => key !== first),
  );
  assert.deepEqual((await manifest()).value.retired, []);
  assert.equal((await clock.run(server.count('n'))).body.count, 10_000 - 3_334 - 1 + 1);
});

test('a set goes with the segment that is rewritten, and with the namespace', async () => {
  const server = await deleted(every(3));
  const { namespaceId } = (await manifest()).value;
  // Most rows are deleted then: the segment is rewritten without them at the next flush of a memtable that is full.
  await remove(server, every(3, 1));
  const filler = Array.from({ length: 20 }, (_, i) => ({ id: `f${i}`, text: 'tide '.repeat(350_000) }));
  for (let i = 0; i < filler.length; i += 10) await clock.run(server.put('n', filler.slice(i, i + 10)));
  await clock.advance(30 * 60_000);
  assert.deepEqual(await keys('/deletes/'), []);
  assert.equal((await clock.run(server.count('n'))).body.count, 3_333 + 20);

  await remove(server, every(1).slice(0, 5));
  const { status } = await clock.run(server.ask('deleteNamespace', '', { argument: 'n' }));
  assert.equal(status, 204);
  assert.deepEqual(await keys(namespaceId), []);
});
