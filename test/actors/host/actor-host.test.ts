import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import type { NamespaceDirectory } from '../../../actors/actor/components.ts';
import { MovedAway } from '../../../actors/actor/ownership.ts';
import { internalCalls } from '../../../protocol/internal-calls.ts';
import { limits } from '../../../protocol/limits.ts';
import { placementKey } from '../../../protocol/placement.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { paths } from '../../../src/object-store/paths.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { FaultyObjectStore, gate } from '../../support/faulty-object-store.ts';
import { call, InProcess, type InProcessOptions, seededBytes, tenantId } from '../../support/in-process.ts';

let clock: FakeClock;
let truth: MemoryObjectStore;
let starts: number;

beforeEach(() => {
  clock = new FakeClock();
  truth = new MemoryObjectStore();
  starts = 0;
});

async function start(options: Partial<InProcessOptions> = {}): Promise<InProcess> {
  const random = seededBytes(1_000 + starts++);
  return clock.run(InProcess.start({ store: truth, clock, random, ...options }));
}

async function firstStart(options: Partial<InProcessOptions> = {}): Promise<InProcess> {
  const process = await start(options);
  await clock.run(process.createTenant());
  return process;
}

async function keysOf(kind: RegExp): Promise<string[]> {
  const { objects } = await truth.list('', { limit: 1_000 });
  return objects.map(({ key }) => key).filter((key) => kind.test(key));
}

const doc = (id: string, text = id) => ({ id, text });
/** Too much for a manifest's tail: its flush makes a segment. */
const bulky = (id: string) => ({ id, text: `${id} ${'tide '.repeat(60_000)}` });

async function flush(process: InProcess, namespace: string): Promise<void> {
  const { body } = await clock.run(process.ask('getNamespace', namespace));
  assert.equal(body.name, namespace);
  const resolved = await clock.run(process.components.directory.resolve(tenantId, namespace, null));
  await clock.run(process.host.flush(tenantId, namespace, resolved?.namespaceId ?? ''));
}

test('what was acknowledged is there after a kill, and after an orderly end', async () => {
  const first = await firstStart();
  const made = await clock.run(first.put('notes', [doc('a'), doc('b')]));
  await clock.run(first.patch('notes', [{ id: 'a', meta: { n: 1 } }]));
  first.kill();

  const second = await start();
  assert.deepEqual(await clock.run(second.list('notes')), ['a', 'b']);
  await clock.run(second.remove('notes', ['b']));
  await clock.run(second.drain());

  const third = await start();
  assert.equal(made.body.created, true);
  assert.deepEqual(await clock.run(third.list('notes')), ['a']);
  assert.deepEqual((await clock.run(third.get('notes', 'a'))).body.meta, { n: 1 });
  assert.equal((await clock.run(third.count('notes'))).body.version, 3);
  third.kill();
});

test('what is about to move is flushed while it is served, and what stays is not', async () => {
  const process = await firstStart();
  await clock.run(process.put('notes', [doc('a')]));
  await clock.run(process.put('others', [doc('b')]));
  const owners = { placement: 9, servers: ['server-a'], self: 'server-a' };

  await clock.run(process.host.flushMoving(owners, limits.leaveFlushMs));
  assert.deepEqual(await keysOf(/^(ns|tenant)\/.*manifest$/), []);

  const flushing = process.host.flushMoving({ ...owners, servers: ['server-b'] }, limits.leaveFlushMs);
  const written = await clock.run(process.put('notes', [doc('c')]));
  await clock.run(flushing);

  assert.equal(written.status, 200);
  assert.equal((await keysOf(/^ns\/.*manifest$/)).length, 2);
  assert.equal((await keysOf(/^tenant\/.*manifest$/)).length, 1);
  assert.deepEqual(await clock.run(process.list('notes')), ['c', 'a']);
  process.kill();
});

test('a flush before a move ends when its time is over, whatever it waits for', async () => {
  const process = await firstStart({ beforeBuild: () => new Promise(() => {}) });
  await clock.run(process.put('notes', [bulky('a')]));
  const beganMs = clock.monotonic();

  await clock.run(
    process.host.flushMoving({ placement: 9, servers: ['server-b'], self: 'server-a' }, limits.leaveFlushMs),
  );

  assert.equal(clock.monotonic() - beganMs, limits.leaveFlushMs);
  assert.equal((await clock.run(process.get('notes', 'a'))).status, 200);
  process.kill();
});

test('a segment whose commit ends after its namespace moved away leaves nothing in memory', async () => {
  const store = new FaultyObjectStore(truth, clock);
  const process = await firstStart({ store });
  const { memory } = process.components;
  await clock.run(process.put('notes', [bulky('a')]));
  const landing = gate();
  store.plan = ({ key }) => (/^ns\/.*manifest$/.test(key) ? { until: landing.opened } : undefined);
  const owners = { placement: 9, servers: ['server-b'], self: 'server-a' };
  const moving = process.host.flushMoving(owners, limits.leaveFlushMs);
  await clock.settle();
  assert.equal((await keysOf(/\/segment\//)).length, 1);
  const { standing } = process.joined;
  process.host.adopt({ ...standing, version: standing.version + 1, owners });
  const before = memory.line('blocks');

  landing.open();
  await clock.run(moving);
  await clock.settle();

  assert.equal((await keysOf(/^ns\/.*manifest$/)).length, 1);
  assert.deepEqual([before, memory.line('blocks'), memory.line('actors')], [0, 0, 0]);
  process.kill();
});

test('every log that was taken over is soon marked as done and leaves the view', async () => {
  const first = await firstStart();
  await clock.run(first.put('notes', [doc('a')]));
  await clock.run(first.put('other', [bulky('b')]));
  first.kill();

  const second = await start();
  await clock.advance(30_000);
  assert.ok(await truth.get(paths.logDone(first.joined.identity.logId)));
  second.kill();

  const third = await start();
  assert.deepEqual(
    third.joined.standing.removed.map(({ logId }) => logId),
    [second.joined.identity.logId],
  );
  assert.deepEqual(await clock.run(third.list('other')), ['b']);
  third.kill();
});

test('a crash between the seal and the view does not keep the next process from starting', async () => {
  const first = await firstStart();
  await clock.run(first.put('notes', [doc('a')]));
  first.kill();
  const random = seededBytes(77);
  const { sealLog } = await import('../../../actors/log/seal.ts');
  await sealLog(truth, random, { logId: first.joined.identity.logId, placement: 2 });

  const second = await start();

  assert.deepEqual(await clock.run(second.list('notes')), ['a']);
  second.kill();
});

test('a process that was taken over writes nothing more and says so', async () => {
  const first = await firstStart();
  await clock.run(first.put('notes', [doc('a')]));

  const second = await start();
  const late = await clock.run(first.put('notes', [doc('late')]));
  const later = await clock.run(first.put('fresh', [doc('late')]));
  await clock.run(second.put('notes', [doc('b')]));

  assert.deepEqual([late.status, late.code], [503, 'unavailable']);
  assert.equal(later.status, 503);
  assert.equal(first.sealed, true);
  assert.deepEqual(await clock.run(second.list('notes')), ['b', 'a']);
  assert.equal((await clock.run(second.search('fresh', {}))).status, 404);
  first.kill();
  second.kill();
});

test('a write in flight while another process takes over is in exactly one world', async () => {
  for (const arrivesFirst of [true, false]) {
    clock = new FakeClock();
    truth = new MemoryObjectStore();
    const first = await firstStart();
    await clock.run(first.put('notes', [doc('a')]));
    const landing = gate();
    first.store.plan = ({ key }) => (/\/\d{20}$/.test(key) ? { until: landing.opened } : undefined);
    const writing = first.put('notes', [doc('b')]);
    await clock.advance(300);
    if (arrivesFirst) landing.open();
    await clock.settle();

    const second = await start();
    landing.open();
    const { status } = await clock.run(writing);

    const ids = await clock.run(second.list('notes'));
    assert.deepEqual(ids, status === 200 ? ['b', 'a'] : ['a']);
    assert.equal(status, arrivesFirst ? 200 : 503);
    first.kill();
    second.kill();
  }
});

test('an owner that was overtaken by a late flush of its predecessor opens again and goes on', async () => {
  const first = await firstStart();
  await clock.run(first.put('notes', [doc('a')]));
  const landing = gate();
  first.store.plan = ({ key }) => (key.endsWith('manifest') ? { until: landing.opened } : undefined);
  const resolved = await clock.run(first.components.directory.resolve(tenantId, 'notes', null));
  const lateFlush = first.host.flush(tenantId, 'notes', resolved?.namespaceId ?? '').catch(() => {});
  const lateTenantFlush = first.host.flush(tenantId, '', '').catch(() => {});
  await clock.advance(10);

  const second = await start({ recover: false });
  await clock.run(second.put('notes', [doc('b')]));
  landing.open();
  await clock.run(Promise.all([lateFlush, lateTenantFlush]));
  first.kill();
  await assert.rejects(flush(second, 'notes'));
  await assert.rejects(clock.run(second.host.flush(tenantId, '', '')));

  await clock.run(second.put('notes', [doc('c')]));
  await clock.run(second.put('more', [doc('d')]));
  await flush(second, 'notes');
  await clock.run(second.host.flush(tenantId, '', ''));
  assert.deepEqual(await clock.run(second.list('notes')), ['c', 'b', 'a']);
  await clock.run(second.drain());

  const third = await start();
  assert.deepEqual(await clock.run(third.list('notes')), ['c', 'b', 'a']);
  assert.deepEqual(await clock.run(third.list('more')), ['d']);
  third.kill();
});

test('a write whose owner finds itself overtaken is not called unwritten, because it may be durable', async () => {
  const first = await firstStart();
  await clock.run(first.put('notes', [doc('a')]));
  await flush(first, 'notes');
  await clock.run(first.put('notes', [doc('b')]));
  const landing = gate();
  first.store.plan = ({ key }) => (key.endsWith('manifest') ? { until: landing.opened } : undefined);
  const resolved = await clock.run(first.components.directory.resolve(tenantId, 'notes', null));
  const lateFlush = first.host.flush(tenantId, 'notes', resolved?.namespaceId ?? '').catch(() => {});
  await clock.advance(10);

  const second = await start({ recover: false });
  second.store.plan = ({ operation, key }) => {
    if (operation === 'update' && key.endsWith('manifest')) landing.open();
    return operation === 'update' ? { delayMs: 50 } : undefined;
  };
  const { code } = await clock.run(second.put('notes', [doc('c')]));
  await clock.run(lateFlush);
  first.kill();

  assert.equal(code, 'write_unknown');
  assert.deepEqual(await clock.run(second.list('notes')), ['c', 'b', 'a']);
  second.kill();
});

test('deleting a name deletes its objects, and a restart does not bring it back', async () => {
  const first = await firstStart();
  await clock.run(first.put('notes', [bulky('a')]));
  await flush(first, 'notes');
  await clock.run(first.put('notes', [doc('b')]));
  const gone = await clock.run(first.ask('deleteNamespace', '', { argument: 'notes' }));
  first.kill();

  assert.equal(gone.status, 204);
  assert.deepEqual(await keysOf(/^ns\//), []);
  const second = await start();
  assert.equal((await clock.run(second.search('notes', {}))).status, 404);
  await clock.advance(30_000);
  assert.ok(
    await truth.get(paths.logDone(first.joined.identity.logId)),
    'the log of the deleted namespace is done',
  );
  await clock.run(second.put('notes', [doc('new')]));
  assert.deepEqual(await clock.run(second.list('notes')), ['new']);
  second.kill();
});

test('deleting a name does not touch the namespace that was made under it meanwhile', async () => {
  const first = await firstStart();
  await clock.run(first.put('notes', [doc('old')]));
  await clock.run(first.drain());
  const second = await start({ recover: false });
  const old = await clock.run(second.components.directory.resolve(tenantId, 'notes', null));
  const drop = second.host.handle.bind(second.host);
  const held = gate();
  second.host.handle = async (asked, body) => {
    if (asked.operation === internalCalls.dropNamespace) await held.opened;
    return drop(asked, body);
  };

  const deleting = second.ask('deleteNamespace', '', { argument: 'notes' });
  await clock.advance(1_000);
  const made = await clock.run(second.put('notes', [doc('new')]));
  held.open();
  await clock.run(deleting);

  assert.equal(made.body.created, true);
  assert.deepEqual(await clock.run(second.list('notes')), ['new']);
  assert.equal(await truth.get(paths.namespaceManifest(old?.namespaceId ?? '')), null);
  second.kill();
});

test('a put that meets the end of its namespace makes the next one', async () => {
  const first = await firstStart();
  await clock.run(first.put('notes', [doc('old')]));

  const [gone, made] = await clock.run(
    Promise.all([first.ask('deleteNamespace', '', { argument: 'notes' }), first.put('notes', [doc('new')])]),
  );

  assert.equal(gone.status, 204);
  assert.equal(made.status, 200);
  const after = await clock.run(first.put('notes', [doc('newer')]));
  assert.equal(after.status, 200);
  assert.equal((await clock.run(first.list('notes')))[0], 'newer');
  first.kill();
});

test('a name that could not be made leaves nothing behind, and can be made later', async () => {
  const process = await firstStart();
  const hold = gate();
  process.store.plan = ({ key }) => (/\/\d{20}$/.test(key) ? { until: hold.opened } : undefined);
  // Fills the log's queue, so that the tenant's record and all that follow it are refused.
  const filling = Array.from({ length: limits.logQueueBytesMax / (4 * 1024 * 1024) }, (_, i) =>
    process.components.log
      .append(
        // Each has what the others have left.
        { tenantId: 1_000 + i, namespace: 'x', namespaceId: `f${i}`, version: 1, blob: null, detail: null },
        new Uint8Array(new SharedArrayBuffer(4 * 1024 * 1024 - 256)),
        1,
      )
      .catch(() => {}),
  );
  await clock.settle();
  const refused = await clock.run(process.put('notes', [doc('a')]));
  hold.open();
  await clock.run(Promise.all(filling));

  assert.ok(['write_busy', 'unavailable'].includes(refused.code), refused.code);
  assert.equal((await clock.run(process.search('notes', {}))).status, 404);
  const made = await clock.run(process.put('notes', [doc('b')]));
  assert.equal(made.status, 200);
  assert.deepEqual(await clock.run(process.list('notes')), ['b']);
  assert.deepEqual(await clock.run(process.put('notes', [doc('c')])).then(({ status }) => status), 200);
  process.kill();
});

test('a name that was refused while its first record got through does not serve that record', async () => {
  const process = await firstStart();
  const { log } = process.components;
  const append = log.append.bind(log);
  const refusing: { mine: boolean } = { mine: true };
  Object.assign(log, {
    append: async (...[head, payload, epoch]: Parameters<typeof log.append>) => {
      const { AppendRefused } = await import('../../../actors/log/group-commit.ts');
      if (head.namespace === '' && refusing.mine) throw new AppendRefused('busy');
      return append(head, payload, epoch);
    },
  });
  const refused = await clock.run(process.put('notes', [doc('a')]));
  refusing.mine = false;

  assert.ok(['write_busy', 'unavailable'].includes(refused.code), refused.code);
  assert.equal((await clock.run(process.search('notes', {}))).status, 404);
  const made = await clock.run(process.put('notes', [doc('b')]));
  assert.equal(made.status, 200);
  assert.deepEqual(await clock.run(process.list('notes')), ['b']);
  // The record without a name does not hold up the log for ever.
  await clock.advance(limits.flushAfterMs + 60_000);
  const { readFloor } = await import('../../../src/stored/log-floor.ts');
  assert.ok((await readFloor(truth, process.joined.identity.logId)) >= 2);
  process.kill();
});

test('racing first writes make one namespace', async () => {
  const process = await firstStart();

  const answers = await clock.run(
    Promise.all('abcdef'.split('').map((id) => process.put('notes', [doc(id)]))),
  );

  assert.ok(answers.every(({ status }) => status === 200));
  assert.equal(answers.filter(({ body }) => body.created).length, 1);
  assert.deepEqual((await clock.run(process.list('notes'))).sort(), [...'abcdef']);
  process.kill();
});

test('an actor that fails opens again with everything that was acknowledged', async () => {
  const process = await firstStart();
  await clock.run(process.put('notes', [doc('a')]));
  await flush(process, 'notes');
  await clock.run(process.put('notes', [doc('b')]));
  const resolved = await clock.run(process.components.directory.resolve(tenantId, 'notes', null));
  // Another hand changes the manifest: the flush finds out, and the actor is closed.
  const key = paths.namespaceManifest(resolved?.namespaceId ?? '');
  const manifest = await truth.get(key);
  assert.ok(manifest);
  await truth.putIfMatch(key, [manifest.bytes], manifest.etag);
  await assert.rejects(flush(process, 'notes'));

  assert.deepEqual(await clock.run(process.list('notes')), ['b', 'a']);
  const { body } = await clock.run(process.put('notes', [doc('c')]));
  assert.equal(body.version, 3);
  await flush(process, 'notes');
  process.kill();
  const after = await start();
  assert.deepEqual(await clock.run(after.list('notes')), ['c', 'b', 'a']);
  after.kill();
});

test('a failed actor that nobody calls is flushed when it holds up the log', async () => {
  const process = await firstStart();
  await clock.run(process.put('notes', [doc('a')]));
  await flush(process, 'notes');
  await clock.run(process.put('notes', [doc('b')]));
  const [key = ''] = await keysOf(/^ns\/.*manifest$/);
  const manifest = await truth.get(key);
  assert.ok(manifest);
  await truth.putIfMatch(key, [manifest.bytes], manifest.etag);
  await assert.rejects(flush(process, 'notes'));

  await clock.advance(limits.flushAfterMs + 60_000);

  const { readFloor } = await import('../../../src/stored/log-floor.ts');
  assert.ok((await readFloor(truth, process.joined.identity.logId)) >= 3);
  assert.deepEqual(await clock.run(process.list('notes')), ['b', 'a']);
  process.kill();
});

test('a failed actor opens again while other namespaces go on writing', async () => {
  const process = await firstStart();
  await clock.run(process.put('notes', [doc('a')]));
  await flush(process, 'notes');
  await clock.run(process.put('notes', [doc('b')]));
  const [key = ''] = await keysOf(/^ns\/.*manifest$/);
  const manifest = await truth.get(key);
  assert.ok(manifest);
  await truth.putIfMatch(key, [manifest.bytes], manifest.etag);
  await assert.rejects(flush(process, 'notes'));
  let busy = true;
  const writer = async (name: string) => {
    for (let n = 0; busy && n < 400; n++) await process.put(name, [doc(`d${n}`)]);
  };
  const writers = [writer('busy-1'), writer('busy-2'), writer('busy-3')];

  const found = await clock.run(process.list('notes'), 5_000);
  busy = false;
  await clock.run(Promise.all(writers));

  assert.deepEqual(found, ['b', 'a']);
  process.kill();
});

test('a log that cannot be read for a moment delays a failed actor and nothing else', async () => {
  const process = await firstStart();
  await clock.run(process.put('notes', [doc('a')]));
  await flush(process, 'notes');
  await clock.run(process.put('notes', [doc('b')]));
  const [key = ''] = await keysOf(/^ns\/.*manifest$/);
  const manifest = await truth.get(key);
  assert.ok(manifest);
  await truth.putIfMatch(key, [manifest.bytes], manifest.etag);
  await assert.rejects(flush(process, 'notes'));
  process.store.plan = ({ operation, key: asked }) =>
    operation === 'get' && asked.startsWith('log/') ? 'drop-before-apply' : undefined;

  const while_ = await clock.run(process.search('notes', {}));
  const other = await clock.run(process.put('other', [doc('o')]));
  process.store.plan = () => undefined;

  assert.deepEqual([while_.status, while_.code], [503, 'unavailable']);
  assert.equal(other.status, 200);
  assert.deepEqual(await clock.run(process.list('notes')), ['b', 'a']);
  process.kill();
});

test('a store that does not answer a read is 503, also where the namespace was only being opened', async () => {
  const first = await firstStart();
  await clock.run(first.put('notes', [doc('a')]));
  await clock.run(first.drain());
  const second = await start({ recover: false });
  second.store.plan = ({ operation }) => (operation === 'get' ? 'drop-before-apply' : undefined);

  const failed = await clock.run(second.search('notes', {}));
  second.store.plan = () => undefined;

  assert.deepEqual([failed.status, failed.code], [503, 'unavailable']);
  assert.deepEqual(await clock.run(second.list('notes')), ['a']);
  second.kill();
});

test('recovery that fails is tried again until the old log is done', async () => {
  const first = await firstStart();
  await clock.run(first.put('notes', [bulky('a')]));
  first.kill();
  let failures = 3;
  const second = await start({
    beforeBuild: async () => {
      if (failures-- > 0) throw new Error('the build lane is not there');
    },
  });

  await clock.advance(60_000);

  assert.ok(failures <= 0);
  assert.ok(await truth.get(paths.logDone(first.joined.identity.logId)));
  second.kill();
});

test('with as many open as may be, the least recently used idle one is put away and opens again', async () => {
  const { ActorHost } = await import('../../../actors/host/actor-host.ts');
  const process = await firstStart();
  for (const name of ['a', 'b', 'c', 'd']) {
    await clock.run(process.put(name, [doc(`in-${name}`)]));
    await flush(process, name);
  }
  // A second host of the same thread would be a second writer; this one only reads.
  const small = new ActorHost(process.components, { openActorsMax: 2 });
  const read = async (name: string) => {
    await clock.advance(10);
    return JSON.parse(
      (await clock.run(small.handle(call('count', name, { query: '' }), Buffer.from('{}')))).json,
    );
  };
  assert.equal((await read('a')).temperature, 'cold');
  await read('b');
  await clock.advance(10);
  assert.ok(small.getWarm(call('getDocument', 'a', { argument: 'in-a' })), 'a warm read counts as use');

  await read('c');

  assert.equal(small.openNamespaces, 2);
  assert.equal((await read('a')).temperature, 'warm');
  assert.equal((await read('b')).temperature, 'cold');
  process.kill();
});

test('a drain flushes everything it can, whatever else fails', async () => {
  const first = await firstStart();
  for (const name of ['a', 'b', 'c']) await clock.run(first.put(name, [doc(name)]));
  const b = await clock.run(first.components.directory.resolve(tenantId, 'b', null));
  await truth.putIfAbsent(paths.namespaceManifest(b?.namespaceId ?? ''), [Buffer.from('not ours')]);

  await assert.rejects(clock.run(first.drain()));

  const a = await clock.run(truth.list('ns/', { limit: 10 }));
  assert.equal(a.objects.length, 3);
  assert.equal((await keysOf(/^tenant\//)).length, 1);
  first.kill();
});

test('a drain waits for the answer of a write whose namespace has moved away meanwhile', async () => {
  const process = await firstStart();
  await clock.run(process.put('notes', [doc('a')]));
  const { standing } = process.joined;
  const owners = { ...standing.owners, placement: standing.owners.placement + 1, servers: ['another'] };
  const ended: string[] = [];
  const writing = process.put('notes', [doc('b')]);
  void writing.then(() => ended.push('write'));
  await clock.advance(1);

  process.host.adopt({ ...standing, version: standing.version + 1, owners });
  await clock.run(process.host.drain().then(() => void ended.push('drain')));

  assert.deepEqual(ended, ['write', 'drain']);
  assert.equal((await writing).status, 200);
  process.kill();
});

test('a host that drains refuses new calls and ends those it has taken', async () => {
  const process = await firstStart();
  const writing = process.put('notes', [doc('a')]);
  await clock.advance(1);
  const draining = process.host.drain();

  const refused = await clock.run(process.put('notes', [doc('b')]));
  const { status } = await clock.run(writing);
  await clock.run(draining);

  assert.deepEqual([refused.status, refused.code], [503, 'unavailable']);
  assert.equal(status, 200);
  process.kill();
});

test('a host that drains sends calls on whose data has moved away, and refuses the others', async () => {
  const process = await firstStart();
  await clock.run(process.put('notes', [doc('a')]));
  const { standing } = process.joined;
  const placement = standing.owners.placement + 1;
  const read = call('getDocument', 'notes', { argument: 'a' });
  await clock.run(process.host.drain());
  await assert.rejects(process.host.handle(read, null), (error) => !(error instanceof MovedAway));

  process.host.adopt({
    ...standing,
    version: standing.version + 1,
    owners: { ...standing.owners, placement, servers: ['another'] },
  });

  await assert.rejects(
    process.host.handle(read, null),
    (error) => error instanceof MovedAway && error.placement === placement,
  );
  await assert.rejects(
    process.host.handle({ ...read, fromCopy: true }, null),
    /this server is shutting down/u,
  );
  process.kill();
});

test('an id that no document can have is refused, warm or not', async () => {
  const process = await firstStart();
  await clock.run(process.put('notes', [doc('a')]));

  for (const id of ['x'.repeat(600), 'a\nb']) {
    const { status, code } = await clock.run(process.get('notes', id));
    assert.deepEqual([status, code], [422, 'invalid']);
  }
  assert.equal((await clock.run(process.get('notes', 'b'))).status, 404);
  process.kill();
});

for (const where of ['here', 'on another server']) {
  test(`a write makes its namespace again where the name was lost before its tenant, ${where}, stored it`, async () => {
    const process = await firstStart();
    const { components } = process;
    const directory = components.directory as { lookUp: NamespaceDirectory['lookUp'] };
    const ownership = components.ownership as { isOwn: (key: string) => boolean };
    const { lookUp } = directory;
    const isOwn = ownership.isOwn.bind(ownership);
    const ids: (string | undefined)[] = [];
    directory.lookUp = async (tenant, name, create) => {
      const made = await lookUp(tenant, `${ids.length < 1 ? 'other-' : ''}${name}`, create);
      ids.push(made?.namespaceId);
      if (where !== 'here') ownership.isOwn = (key) => key !== placementKey(tenant, '') && isOwn(key);
      return made;
    };

    const written = await clock.run(process.put('notes', [doc('a')]));

    assert.deepEqual([written.status, written.body.written, written.body.created], [200, 1, true]);
    assert.equal(new Set(ids).size, 2, 'it has another id now');
    ownership.isOwn = isOwn;
    assert.deepEqual(await clock.run(process.list('notes')), ['a']);
    process.kill();
    const next = await start();
    assert.deepEqual(await clock.run(next.list('notes')), ['a']);
  });
}
