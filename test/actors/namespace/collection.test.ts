/** What a whole process deletes of namespaces, and what it must not. */
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { needsLook, planOrphans } from '../../../actors/namespace/sweep-orphans.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { paths } from '../../../src/object-store/paths.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { gate } from '../../support/faulty-object-store.ts';
import { hasText } from '../../support/find-text.ts';
import { InProcess, seededBytes } from '../../support/in-process.ts';

const hourMs = 3_600_000;
let clock: FakeClock;
let truth: MemoryObjectStore;
let seed = 0;

beforeEach(() => {
  clock = new FakeClock();
  truth = new MemoryObjectStore(clock);
  seed = 0;
});

const start = (options: { beforeBuild?: () => Promise<void> } = {}) =>
  clock.run(InProcess.start({ store: truth, clock, random: seededBytes(++seed), ...options }));

async function keys(prefix = 'ns/'): Promise<string[]> {
  return (await truth.list(prefix, { limit: 1_000 })).objects.map(({ key }) => key);
}

/** Larger than the manifest's tail, so that a flush makes a segment of it. */
const large = (id: string) => ({ id, text: `${id} ${'tide '.repeat(60_000)}` });

async function flushAll(): Promise<void> {
  await clock.advance(330_000);
}

/** Time passes without every heartbeat in it: what is due happens once. */
async function hours(count: number): Promise<void> {
  clock.jump(count * hourMs);
  await clock.advance(120_000);
}

test('a deleted namespace leaves no object', async () => {
  const server = await start();
  await clock.run(server.createTenant());
  await clock.run(server.put('n', [large('a')]));
  await flushAll();
  assert.equal((await keys()).length, 2);

  const { status } = await clock.run(server.ask('deleteNamespace', '', { argument: 'n' }));

  assert.equal(status, 204);
  assert.deepEqual(await keys(), []);
});

test('a deletion whose objects cannot be deleted is answered, and they are deleted when that works again', async () => {
  const server = await start();
  await clock.run(server.createTenant());
  await clock.run(server.put('n', [large('a')]));
  await flushAll();
  server.store.plan = ({ operation, key }) =>
    operation === 'delete' && key.startsWith('ns/') ? 'drop-before-apply' : undefined;

  const { status } = await clock.run(server.ask('deleteNamespace', '', { argument: 'n' }));

  assert.equal(status, 204);
  assert.equal((await clock.run(server.get('n', 'a'))).status, 404);
  assert.equal((await keys()).length, 2);
  await flushAll();
  assert.equal((await keys()).length, 2);
  server.store.plan = () => undefined;
  await flushAll();
  assert.deepEqual(await keys(), []);
});

test('a process that is killed between a deletion and its objects leaves them to its successor', async () => {
  const server = await start();
  await clock.run(server.createTenant());
  await clock.run(server.put('n', [large('a')]));
  await flushAll();
  server.store.plan = ({ operation, key }) =>
    operation === 'delete' && key.startsWith('ns/') ? { until: new Promise(() => {}) } : undefined;
  void server.ask('deleteNamespace', '', { argument: 'n' });
  await clock.advance(2_000);
  assert.equal((await keys()).length, 2);
  server.kill();

  const next = await start();
  await flushAll();

  assert.equal((await clock.run(next.get('n', 'a'))).status, 404);
  assert.deepEqual(await keys(), []);
});

test('a segment whose commit never came is deleted when it is a day old, and not before', async () => {
  const server = await start();
  await clock.run(server.createTenant());
  await clock.run(server.put('n', [large('a')]));
  await flushAll();
  const [manifest = ''] = await keys();
  const namespaceId = manifest.split('/')[2] ?? '';
  const orphan = paths.namespaceSegment(namespaceId, 'f'.repeat(32));
  await truth.putIfAbsent(orphan, [Buffer.from('never committed')]);

  await hours(23);
  assert.ok((await keys()).includes(orphan));
  await hours(8);

  assert.ok(!(await keys()).includes(orphan));
  assert.equal((await keys()).length, 2);
  assert.equal((await clock.run(server.get('n', 'a'))).status, 200);
});

test('a manifest that comes back after its namespace was deleted is deleted again', async () => {
  const server = await start();
  await clock.run(server.createTenant());
  await clock.run(server.put('n', [large('a')]));
  await flushAll();
  const [manifest = '', segment = ''] = await keys();
  const ghosts = [manifest, segment].map(async (key) => ({ key, found: await truth.get(key) }));
  const copies = await Promise.all(ghosts);
  await clock.run(server.ask('deleteNamespace', '', { argument: 'n' }));
  await clock.run(server.put('n', [large('again')]));
  await flushAll();
  for (const { key, found } of copies) await truth.putIfAbsent(key, [found?.bytes ?? new Uint8Array()]);

  await hours(31);

  assert.ok(!(await keys()).includes(manifest));
  assert.ok(!(await keys()).includes(segment));
  assert.equal((await clock.run(server.get('n', 'again'))).status, 200);
});

test('an overtaken process deletes no namespace that its successor made', async () => {
  const old = await start();
  await clock.run(old.createTenant());
  const paused = gate();
  old.store.plan = () => ({ until: paused.opened });
  const next = await start();
  await clock.run(next.put('made-later', [large('a')]));
  await clock.advance(330_000);
  const before = await keys();
  assert.equal(before.length, 2);
  next.kill();
  await truth.delete(paths.swept);

  old.store.plan = () => undefined;
  paused.open();
  await hours(40);

  assert.deepEqual(await keys(), before);
});

test('a merge that ends after its namespace was deleted leaves nothing', async () => {
  const building = gate();
  let hold = false;
  const server = await start({ beforeBuild: () => (hold ? building.opened : Promise.resolve()) });
  await clock.run(server.createTenant());
  const full = Array.from({ length: 20 }, (_, i) => large(`a${i}`));
  for (let round = 0; round < 8 && !hold; round++) {
    for (let i = 0; i < 6; i++) await clock.run(server.put('n', full));
    hold = round === 6;
  }
  await clock.advance(1_000);
  void server.ask('deleteNamespace', '', { argument: 'n' });
  await clock.advance(1_000);
  building.open();
  await clock.advance(60_000);

  assert.deepEqual(await keys(), []);
});

test('a retired segment goes when its grace is over, though nobody writes any more', async () => {
  const server = await start();
  await clock.run(server.createTenant());
  for (let i = 0; i < 12; i++) {
    await clock.run(server.put('n', [large(`a${i}`), large(`b${i}`)]));
    await flushAll();
  }
  const merged = await keys();

  await hours(1);

  const left = await keys();
  assert.ok(left.length < merged.length, `${merged.length} objects became ${left.length}`);
  assert.equal((await clock.run(server.get('n', 'a0'))).status, 200);
});

test('an upload that never ended is aborted after a day', async () => {
  await start();
  const forever = gate();
  const chunks = async function* () {
    yield Buffer.from('begun');
    await forever.opened;
  };
  const upload = truth.putStream(paths.namespaceSegment('x', 'y'), chunks()).then(
    () => 'stored',
    () => 'failed',
  );
  await clock.settle();
  assert.equal((await truth.listUploads('ns/', { limit: 10 })).uploads.length, 1);

  await hours(23);
  assert.equal((await truth.listUploads('ns/', { limit: 10 })).uploads.length, 1);
  await hours(8);

  assert.equal((await truth.listUploads('ns/', { limit: 10 })).uploads.length, 0);
  forever.open();
  assert.equal(await upload, 'failed');
});

/** Everything of namespaces and logs that the text can be read from. */
async function objectsWith(text: string): Promise<string[]> {
  const found: string[] = [];
  for (const key of [...(await keys()), ...(await keys('log/'))]) {
    const object = await truth.get(key);
    if (object !== null && hasText(object.bytes, text)) found.push(key);
  }
  return found;
}

/** Five documents in a segment, and in its manifest that one of them is deleted and one replaced. */
async function withDeletions(): Promise<InProcess> {
  const server = await start();
  await clock.run(server.createTenant());
  const texts = ['first kept', 'second kept', 'third kept', 'deleted words', 'replaced words'];
  const docs = texts.map((text, at) => ({ id: `d${at}`, text: `${text} ${large(String(at)).text}` }));
  await clock.run(server.put('n', docs));
  await flushAll();
  await clock.run(server.remove('n', ['d3']));
  await clock.run(server.put('n', [{ id: 'd4', text: 'new words' }]));
  await flushAll();
  return server;
}

test('deleted and replaced documents are in no object a day later, where the namespace is open', async () => {
  const server = await withDeletions();
  const before = await keys();
  await hours(11);
  assert.deepEqual(await keys(), before, 'not rewritten before it is time');
  assert.equal((await objectsWith('deleted words')).length, 1);
  assert.equal((await objectsWith('replaced words')).length, 1);

  await hours(1);
  await clock.advance(1_000_000);

  for (const text of ['deleted words', 'replaced words']) assert.deepEqual(await objectsWith(text), [], text);
  assert.equal((await objectsWith('first kept')).length, 1);
  assert.deepEqual(await clock.run(server.list('n')), ['d4', 'd2', 'd1', 'd0']);
  const after = await keys();
  await hours(30);
  assert.deepEqual(await keys(), after, 'and not again and again');
});

test('deleted and replaced documents are in no object a day later, where nobody opens the namespace', async () => {
  (await withDeletions()).kill();
  const next = await start();
  const began = clock.now();
  for (let hour = 0; hour < 22; hour++) await hours(1);
  assert.ok(clock.now() - began < 24 * hourMs);

  for (const text of ['deleted words', 'replaced words']) assert.deepEqual(await objectsWith(text), [], text);
  assert.deepEqual(await clock.run(next.list('n')), ['d4', 'd2', 'd1', 'd0']);
});

test('a namespace that cannot be rewritten does not keep the others, and is asked again', async () => {
  const server = await withDeletions();
  const broken = (await keys()).find((key) => key.includes('/segment/')) ?? '';
  server.kill();
  const other = await start();
  const texts = ['kept', 'also kept', 'again kept', 'erased words'];
  const docs = texts.map((text, at) => ({ id: `e${at}`, text: `${text} ${large(String(at)).text}` }));
  await clock.run(other.put('other', docs));
  await flushAll();
  await clock.run(other.remove('other', ['e3']));
  await flushAll();
  other.kill();
  const next = await start();
  next.store.plan = ({ operation, key }) =>
    operation === 'get' && key === broken ? 'drop-before-apply' : undefined;
  for (let hour = 0; hour < 22; hour++) await hours(1);
  assert.deepEqual(await objectsWith('erased words'), []);
  assert.deepEqual(await objectsWith('deleted words'), [broken]);
  next.store.plan = () => undefined;
  await hours(2);
  await hours(5);
  assert.deepEqual(await objectsWith('deleted words'), []);
});

test('nothing of a deleted namespace is in the log a quarter of an hour later, whoever else writes', async () => {
  const server = await start();
  await clock.run(server.createTenant());
  await clock.run(
    Promise.all([server.put('n', [{ id: 'a', text: 'erased words' }]), server.put('quiet', [{ id: 'q' }])]),
  );
  assert.equal((await objectsWith('erased words')).length, 1);
  await clock.run(server.ask('deleteNamespace', '', { argument: 'n' }));
  for (let minute = 0; minute < 14; minute++) {
    await clock.run(server.put('busy', [{ id: `b${minute}`, text: 'tide' }]));
    await clock.advance(60_000);
  }
  assert.deepEqual(await objectsWith('erased words'), []);
});

test('only what became a day old since the last sweep is looked at', () => {
  const at = (modifiedAtMs: number) => ({
    namespaceId: 'x',
    objects: [{ key: 'ns/00/x/manifest', size: 1, modifiedAtMs }],
  });
  const sweep = { afterMs: 10, untilMs: 20, changedAfterMs: 0 };

  assert.deepEqual(
    [10, 11, 20, 21].map((ms) => needsLook(at(ms), sweep)),
    [false, true, true, false],
  );
});

test('what a manifest names or has retired, and what is young, is no orphan', () => {
  const segment = (id: string) => paths.namespaceSegment('x', id);
  const listed = {
    namespaceId: 'x',
    objects: [
      { key: paths.namespaceManifest('x'), size: 1, modifiedAtMs: 1 },
      ...['named', 'retired', 'lost', 'young'].map((id) => ({
        key: segment(id),
        size: 1,
        modifiedAtMs: id === 'young' ? 21 : 1,
      })),
    ],
  };
  const manifest = {
    namespaceId: 'x',
    segments: [{ id: 'named', tombstonesObject: null }],
    retired: [{ kind: 'segment', id: 'retired', atMs: 0 }],
  };

  const plan = planOrphans(listed, manifest as unknown as Parameters<typeof planOrphans>[1], {
    afterMs: 0,
    untilMs: 20,
    changedAfterMs: 0,
  });

  assert.deepEqual(plan, [segment('lost')]);
});
