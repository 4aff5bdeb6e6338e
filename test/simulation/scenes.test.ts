/**
 * Orders of events that worlds hardly ever meet, each played with production code: what a mutation of cluster-mutations.ts breaks that no
 * seed notices. `npm run prove -- mutations` plays a mutation's scene with the protocol broken, where it has to fail.
 */
import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { test } from 'node:test';
import { internalCalls } from '../../protocol/internal-calls.ts';
import { paths } from '../../src/object-store/paths.ts';
import type { SimulatedProcess } from './process.ts';
import { isActive, Scene, viewOf } from './scene.ts';
import type { Met, StoreCall } from './simulated-store.ts';

const both = ['a', 'b'];
/** Longer than a second, for which evidence holds, and than what a take-over waits. */
const longMs = 5_000;
const readEveryMs = 20;
/** By then a second try of an append has been answered. */
const secondTryMs = 100;
/** By then what was written is in manifests. */
const flushedMs = 60_000;

const isLease = ({ key }: StoreCall) => key.startsWith(paths.lease(''));
const isViewRead = ({ operation, key }: StoreCall) => operation === 'get' && key === paths.view;

/** Byte 6 of a log object is its kind, 1 a seal. */
const holdsSeal = (scene: Scene, key: string) => scene.objects.find(key)?.bytes[6] === 1;

/** The server renews its lease no more, and hears nothing of the view: others evict it, and it does not know. */
function forgotten(scene: Scene, id: string, also: (call: StoreCall) => Met | null = () => null): void {
  scene.isolate(id);
  scene.meets(id, (call) => (isLease(call) || isViewRead(call) ? 'lost' : also(call)));
}

async function evicted(scene: Scene, id: string): Promise<void> {
  const others = scene.serving.filter(({ serverId }) => serverId !== id);
  await scene.until(`the others know that ${id} is evicted`, () =>
    others.every((process) => !viewOf(process).members.some(({ serverId }) => serverId === id)),
  );
}

/** Writes until it is acknowledged. */
async function written(
  scene: Scene,
  process: SimulatedProcess,
  place: string,
  id: string,
  text: string,
): Promise<void> {
  for (let tries = 0; tries < 20; tries++) {
    const answer = await scene.write(process, place, id, text);
    if (answer?.status === 200) return;
    await scene.scheduler.sleep(100);
  }
  throw new Error(`"${text}" was not acknowledged`);
}

test('who was evicted and does not know answers no read from before', () =>
  Scene.run(both, async (scene) => {
    scene.useTenantOf({ owner: 'b', among: both });
    const name = scene.nameOf({ owner: 'b', among: both });
    await scene.start('a', 'b');
    const [a, b] = [scene.process('a'), scene.process('b')];
    await written(scene, b, name, 'd', 'before');
    forgotten(scene, 'b', ({ key }) => (holdsSeal(scene, key) ? 'lost' : null));
    // Reads keep its evidence fresh until its log is sealed.
    const stale: string[] = [];
    let [isWritten, isOver] = [false, false];
    let answeredBefore = 0;
    const reading = async () => {
      for (; !isOver; await scene.scheduler.sleep(readEveryMs)) {
        const begunAfter = isWritten;
        void scene.read(b, name, 'd').then((text) => {
          if (text !== 'before') return;
          if (begunAfter) stale.push(`at ${scene.scheduler.nowMs} ms`);
          else answeredBefore++;
        });
      }
    };
    void reading();

    await evicted(scene, 'b');
    await written(scene, a, name, 'd', 'after');
    isWritten = true;
    await scene.scheduler.sleep(longMs);
    isOver = true;

    ok(answeredBefore > 10, 'it answers until it is evicted');
    equal(b.dead, false, 'it does not know');
    deepEqual(stale, []);
  }));

test('the second try of an append that was stored is no evidence of its own moment', () =>
  Scene.run(both, async (scene) => {
    scene.useTenantOf({ owner: 'b', among: both });
    const name = scene.nameOf({ owner: 'b', among: both });
    await scene.start('a', 'b');
    const [a, b] = [scene.process('a'), scene.process('b')];
    await written(scene, b, name, 'd', 'before');
    const ownLog = paths.logFolder(b.logId);
    let lostAnswers = 0;
    forgotten(scene, 'b', ({ operation, key }) => {
      if (holdsSeal(scene, key)) return 'lost';
      if (operation !== 'create' || !key.startsWith(ownLog) || lostAnswers > 0) return null;
      lostAnswers++;
      return 'answer lost';
    });
    // Its lease stands still for six of ten seconds when the append begins, which is tried again after ten.
    await scene.scheduler.sleep(6_000);
    const appended = scene.write(b, name, 'other', 'of the append');
    const commitEndMs = scene.scheduler.nowMs + 10_000;

    await evicted(scene, 'b');
    await written(scene, a, name, 'd', 'after');
    ok(scene.scheduler.nowMs < commitEndMs, 'the append is tried again after others have taken over');
    const answered: (string | null | undefined)[] = [];
    await scene.scheduler.sleep(commitEndMs + secondTryMs - scene.scheduler.nowMs);
    for (let reads = 0; reads < 100; reads++) {
      void scene.read(b, name, 'd').then((text) => answered.push(text));
      await scene.scheduler.sleep(readEveryMs);
    }

    await appended;
    equal(lostAnswers, 1);
    equal(b.dead, false, 'it does not know');
    deepEqual(
      answered.filter((text) => text === 'before'),
      [],
    );
    equal(await scene.read(a, name, 'other'), 'of the append');
  }));

test('a slot that is empty while an append to it is on its way is no evidence', () =>
  Scene.run(both, async (scene) => {
    scene.useTenantOf({ owner: 'b', among: both });
    const name = scene.nameOf({ owner: 'b', among: both });
    await scene.start('a', 'b');
    const [a, b] = [scene.process('a'), scene.process('b')];
    await written(scene, b, name, 'd', 'before');
    const ownLog = paths.logFolder(b.logId);
    let slot = '';
    forgotten(scene, 'b', ({ operation, key }) => {
      if (operation !== 'create' || !key.startsWith(ownLog)) return null;
      if (slot !== '') return 'lost';
      slot = key;
      return 'answer lost';
    });
    void scene.write(b, name, 'other', 'of the append');
    await evicted(scene, 'b');
    await written(scene, a, name, 'd', 'after');
    await scene.until('the slot is stored', () => scene.objects.find(slot) !== undefined);
    for (let hours = 0; scene.objects.find(slot) !== undefined && hours < 48; hours++) {
      await scene.scheduler.sleep(25_000);
      scene.scheduler.leap(3_600_000);
    }

    equal(scene.objects.find(slot), undefined, 'the log of who was evicted is collected');
    equal(b.dead, false, 'it does not know');
    const answered: (string | null | undefined)[] = [];
    for (let reads = 0; reads < 50; reads++) {
      answered.push(await scene.read(b, name, 'd'));
      await scene.scheduler.sleep(readEveryMs);
    }
    deepEqual(
      answered.filter((text) => text === 'before'),
      [],
    );
  }));

test('who waits for a barrier that was collected learns of it from the floor', () =>
  Scene.run(both, async (scene) => {
    scene.useTenantOf({ owner: 'a', among: both });
    const name = scene.nameOf({ owner: 'b', among: both });
    await scene.start('a');
    const a = scene.process('a');
    await written(scene, a, name, 'd', 'stored');
    await scene.scheduler.sleep(flushedMs);
    const log = paths.logFolder(a.logId);
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    scene.meets('b', ({ operation, key }) => (operation === 'get' && key.startsWith(log) ? held : null));
    await scene.server('b').startNext();
    const b = scene.process('b');
    await scene.until('b is active', () => isActive(viewOf(a), 'b'));
    const slots = () =>
      scene.objects.keys.filter((key) => key.startsWith(log) && key !== paths.logFloor(a.logId));
    const barriers = slots();
    ok(barriers.length > 0);
    await scene.until(
      'the barrier is collected',
      () => slots().every((key) => !barriers.includes(key)),
      3_600_000,
    );

    release();
    await scene.scheduler.sleep(longMs);

    equal(await scene.read(b, name, 'd'), 'stored');
  }));

test('an eviction that is late does not take the next process of the server', () =>
  Scene.run(both, async (scene) => {
    scene.useTenantOf({ owner: 'a', among: both });
    const name = scene.nameOf({ owner: 'b', among: both });
    await scene.start('a', 'b');
    const [a, first] = [scene.process('a'), scene.process('b')];
    await written(scene, first, name, 'd', 'first');
    const log = paths.logFolder(first.logId);
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    let isSealing = false;
    const end = scene.meets('a', ({ operation, key }) => {
      if (operation !== 'create' || !key.startsWith(log)) return null;
      isSealing = true;
      return held;
    });
    scene.server('b').supervised = false;
    first.kill();
    await scene.until('a seals its log', () => isSealing);
    await scene.server('b').startNext();
    const next = scene.process('b');
    await scene.until(
      'its next process is active',
      () => isActive(viewOf(a), 'b') && isActive(viewOf(next), 'b'),
    );
    await written(scene, next, name, 'd', 'next');
    // What it writes while it does not know what others do with it.
    scene.isolate('b');
    scene.meets('b', (call) => (isViewRead(call) ? 'lost' : null));
    end();
    release();
    await scene.scheduler.sleep(longMs);
    const acknowledged: string[] = [];
    for (let writes = 0; writes < 20; writes++) {
      const answer = await scene.write(next, name, `late${writes}`, 'late');
      if (answer?.status === 200) acknowledged.push(`late${writes}`);
    }

    next.kill();
    await evicted(scene, 'b');
    await scene.scheduler.sleep(longMs);

    ok(acknowledged.length > 0, 'it writes');
    for (const id of acknowledged) equal(await scene.read(a, name, id), 'late', id);
  }));

const three = ['a', 'b', 'c'];

test('a namespace whose owner has not given it away yet is not dropped by the next one', () =>
  Scene.run(three, async (scene) => {
    scene.useTenantOf({ owner: 'a', among: both }, { owner: 'a', among: three });
    const name = scene.nameOf({ owner: 'b', among: both }, { owner: 'c', among: three });
    await scene.start('a', 'b');
    const [a, b] = [scene.process('a'), scene.process('b')];
    await written(scene, b, name, 'd', 'before');
    const end = scene.meets('b', (call) => (isViewRead(call) ? 'lost' : null));
    const join = scene.isolate('b');
    await scene.server('c').startNext();
    const c = scene.process('c');
    await scene.until('c is active', () => isActive(viewOf(a), 'c') && isActive(viewOf(c), 'c'));

    const deleting = scene.ask(a, 'deleteNamespace', '', { argument: name });
    const deleted = await Promise.race([deleting, scene.scheduler.sleep(1_000).then(() => null)]);
    ok(!isActive(viewOf(b), 'c'), 'its owner does not know yet');
    await written(scene, b, name, 'd', 'after');
    end();
    join();
    await deleting;
    await scene.scheduler.sleep(longMs);

    // What was acknowledged after the deletion was is there; while it was under way either may be.
    if (deleted !== null && deleted.status < 300) equal(await scene.read(c, name, 'd'), 'after');
    else ok([null, 'after'].includes((await scene.read(c, name, 'd')) ?? null));
  }));

test('who meets the barrier of a later view takes nothing over by an earlier one', () =>
  Scene.run(both, async (scene) => {
    scene.useTenantOf({ owner: 'b', among: both });
    const name = scene.nameOf({ owner: 'b', among: both });
    await scene.start('a');
    const a = scene.process('a');
    await written(scene, a, name, 'd', 'before');
    await scene.scheduler.sleep(flushedMs);
    const join = scene.isolate('b');
    const end = scene.meets('a', (call) => (isViewRead(call) ? 'lost' : null));
    await scene.server('b').startNext();
    const b = scene.process('b');
    await scene.until('b is active', () => isActive(viewOf(b), 'b'));
    // It leaves, and does not hear that it has.
    let hasLeft = false;
    scene.meets('b', ({ operation, key }) => {
      if (key !== paths.view || (operation === 'get' && !hasLeft)) return null;
      hasLeft = true;
      return operation === 'update' ? 'answer lost' : 'lost';
    });
    void b.drain().catch(() => {});
    await scene.until('b has left', () => !isActive(scene.view, 'b'));
    end();
    await scene.until('a knows', () => viewOf(a).version === scene.view.version);
    ok(isActive(viewOf(b), 'b'), 'b does not');
    await scene.scheduler.sleep(1_000);
    const answer = await scene.write(b, name, 'd', 'after');
    join();

    equal(await scene.read(a, name, 'd'), answer?.status === 200 ? 'after' : 'before');
  }));

test('a tenant’s process that was evicted does not say of a name that it is not there', () =>
  Scene.run(both, async (scene) => {
    scene.useTenantOf({ owner: 'b', among: both });
    const name = scene.nameOf({ owner: 'a', among: both });
    await scene.start('a', 'b');
    const [a, b] = [scene.process('a'), scene.process('b')];
    forgotten(scene, 'b', ({ key }) => (holdsSeal(scene, key) ? 'lost' : null));
    await evicted(scene, 'b');
    await written(scene, a, name, 'd', 'there');
    await scene.scheduler.sleep(longMs);

    const [deleted, resolved] = await Promise.all([
      scene.ask(b, 'deleteNamespace', '', { argument: name }),
      scene.ask(b, internalCalls.resolveNamespace, '', { argument: name }),
    ]);

    equal(b.dead, false, 'it does not know');
    for (const answer of [deleted, resolved])
      ok(answer === null || answer.status >= 500, `it says ${answer?.status}`);
    equal(await scene.read(a, name, 'd'), 'there');
  }));

test('a link that was asked for at a version does not show what came while it was made', () =>
  Scene.run(['a'], async (scene) => {
    await scene.start('a');
    const a = scene.process('a');
    // More than a manifest takes along: it is flushed before.
    for (let n = 0; n < 4; n++) await written(scene, a, 'source', `d${n}`, 'tide '.repeat(60));
    const count = async (name: string) => (await scene.ask(a, 'count', name, { body: {} }))?.body;
    const { version } = await count('source');
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    let isFlushing = false;
    scene.meets('a', ({ operation, key }) => {
      if (operation !== 'create' || !key.includes('/segment/') || !key.startsWith(paths.namespaces))
        return null;
      isFlushing = true;
      return held;
    });
    const linking = scene.ask(a, 'linkNamespace', '', {
      argument: 'link',
      body: { source: 'source', version },
    });
    await scene.until('it is flushed', () => isFlushing);
    await written(scene, a, 'source', 'later', 'later');
    release();
    const linked = await linking;

    equal((await count('source')).count, 5);
    if (linked !== null && linked.status < 300) equal((await count('link')).count, 4);
    else match(linked?.body.fields.version, /neither the present version/);
  }));
