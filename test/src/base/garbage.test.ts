import assert from 'node:assert/strict';
import { constants, PerformanceObserver } from 'node:perf_hooks';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { collectBetweenTasks, letGo, sawShared, sharedBuffer, toShared } from '../../../src/base/garbage.ts';

const bytes = 8 * 1024 * 1024;

/** What Node's observer tells of one; its types have it of other entries only. */
interface GarbageCollection {
  readonly kind: number;
  readonly flags: number;
}

/** Calls `onGone` once the buffer's memory is let go by this thread. */
function see(registry: FinalizationRegistry<string>, buffer: Buffer, name: string): void {
  registry.register(buffer.buffer, name);
}

test('what was held for long is let go without a halt of the thread', async () => {
  const gone = new Set<string>();
  const registry = new FinalizationRegistry<string>((name) => gone.add(name));
  const pauses: number[] = [];
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      const { kind, flags } = (entry as unknown as { readonly detail: GarbageCollection }).detail;
      if (kind === constants.NODE_PERFORMANCE_GC_MAJOR) pauses.push(flags);
    }
  });
  observer.observe({ entryTypes: ['gc'] });
  const young = new Map(Array.from({ length: 200_000 }, (_, i) => [`key ${i}`, { i }]));
  see(registry, sharedBuffer(bytes), 'old');

  letGo(1024 * 1024 * 1024);

  for (let tries = 0; gone.size < 1 && tries < 400; tries++) {
    // Steps are done between turns that allocate.
    for (let i = 0; i < 10_000; i++) young.set(`key ${i}`, { i });
    await sleep(5);
  }
  observer.disconnect();
  assert.deepEqual([...gone], ['old']);
  assert.ok(pauses.length > 0);
  for (const flags of pauses)
    assert.equal(flags & constants.NODE_PERFORMANCE_GC_FLAGS_FORCED, 0, 'nobody has forced it');
});

test('a thread that has nothing to do lets go the bytes that its last task saw, shared and moved', async () => {
  const gone = new Set<string>();
  const registry = new FinalizationRegistry<string>((name) => gone.add(name));
  see(registry, toShared(Buffer.alloc(bytes)), 'shared');
  see(registry, Buffer.from(new ArrayBuffer(bytes)), 'moved');

  collectBetweenTasks();

  for (let tries = 0; gone.size < 2 && tries < 100; tries++) await sleep(50);
  assert.deepEqual([...gone].sort(), ['moved', 'shared']);
});

/** The names of what a thread of tasks has let go soon after `act`, where it had seen a buffer before that nobody needs. */
async function goneAfter(name: string, act: () => void): Promise<string[]> {
  const gone = new Set<string>();
  const registry = new FinalizationRegistry<string>((each) => gone.add(each));
  collectBetweenTasks();
  see(registry, sharedBuffer(bytes), name);
  act();
  for (let tries = 0; gone.size < 1 && tries < 4; tries++) await sleep(20);
  return [...gone];
}

test('a thread of tasks collects all that it saw whenever it has seen a few megabytes, old or young', async () => {
  const gone = await goneAfter('seen', () => {
    for (let i = 0; i < 2; i++) sawShared(bytes);
  });
  assert.deepEqual(gone, ['seen']);
});

test('shared memory counts when it is made, also where nobody gives it on', async () => {
  const gone = await goneAfter('refused', () => {
    for (let i = 0; i < 2; i++) sharedBuffer(bytes);
  });
  assert.deepEqual(gone, ['refused']);
});
