import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { systemClock } from '../../../src/base/clock.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { InProcess, seededBytes } from '../../support/in-process.ts';

/** The clock's timers do not keep a process alive, a test does. */
const awake = setInterval(() => {}, 1_000);
after(() => clearInterval(awake));

async function started(): Promise<InProcess> {
  const clock = systemClock;
  const server = await InProcess.start({
    store: new MemoryObjectStore(clock),
    clock,
    random: seededBytes(1),
    commitMs: 1,
  });
  await server.createTenant();
  return server;
}

const longText = 'tide '.repeat(400_000 - 1);

test('ten thousand small patches of one large document are refused before they are merged, and a neighbour is answered meanwhile', async () => {
  const server = await started();
  await server.put('large', [{ id: 'x', text: longText }]);
  await server.put('neighbour', [{ id: 'n', text: 'low water' }]);
  const patches = Array.from({ length: 10_000 }, (_, i) => ({ id: 'x', meta: { a: i } }));
  const before = process.memoryUsage.rss();

  const attack = server.patch('large', patches);
  const neighbour = await server.search('neighbour', { q: 'water' });
  const refused = await attack;

  assert.equal(neighbour.body.hits.length, 1);
  assert.equal(refused.status, 413);
  assert.equal(refused.code, 'too_large');
  assert.match(refused.body.error, /docs\[0\] to docs\[33\] make.*nothing was written/);
  assert.deepEqual((await server.get('large', 'x')).body.meta, {});
  const grownBytes = process.memoryUsage.rss() - before;
  assert.ok(grownBytes < 500e6, `${Math.round(grownBytes / 1e6)} MB more are resident`);
  await server.drain();
});

test('patches whose documents fit a write body are all merged, the second of one document onto the first', async () => {
  const server = await started();
  await server.put('large', [{ id: 'x', text: longText }]);

  const patched = await server.patch(
    'large',
    Array.from({ length: 33 }, (_, i) => ({ id: 'x', meta: { [`key${i}`]: i } })),
  );

  assert.equal(patched.status, 200, JSON.stringify(patched.body));
  assert.equal(Object.keys((await server.get('large', 'x')).body.meta).length, 33);
  await server.drain();
});
