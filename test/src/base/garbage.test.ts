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

/** Runs `act`, and answers the flags of all whole collections meanwhile. */
async function flagsOfWhole(act: () => Promise<void>): Promise<readonly number[]> {
  const flagsSeen: number[] = [];
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      const { kind, flags } = (entry as unknown as { readonly detail: GarbageCollection }).detail;
      if (kind === constants.NODE_PERFORMANCE_GC_MAJOR) flagsSeen.push(flags);
    }
  });
  observer.observe({ entryTypes: ['gc'] });
  await act();
  observer.disconnect();
  return flagsSeen;
}

const isForced = (flags: number) => (flags & constants.NODE_PERFORMANCE_GC_FLAGS_FORCED) !== 0;
const gibibyte = 1024 * 1024 * 1024;

test('what was held for long is let go without a halt of the thread', async () => {
  const gone = new Set<string>();
  const registry = new FinalizationRegistry<string>((name) => gone.add(name));
  const young = new Map(Array.from({ length: 200_000 }, (_, i) => [`key ${i}`, { i }]));
  see(registry, sharedBuffer(bytes), 'old');

  const seen = await flagsOfWhole(async () => {
    letGo(gibibyte);
    for (let tries = 0; gone.size < 1 && tries < 400; tries++) {
      // Steps are done between turns that allocate.
      for (let i = 0; i < 10_000; i++) young.set(`key ${i}`, { i });
      await sleep(5);
    }
  });

  assert.deepEqual([...gone], ['old']);
  assert.ok(seen.length > 0);
  assert.deepEqual(seen.filter(isForced), []);
});

test('where garbage comes faster than the steps go, they are told to hurry once, and then the thread halts', async () => {
  const old = new Map(Array.from({ length: 400_000 }, (_, i) => [`key ${i}`, { i }]));
  const forcedAfter = async (times: number) => {
    const seen = await flagsOfWhole(async () => {
      for (let i = 0; i < times; i++) {
        letGo(gibibyte);
        await new Promise(setImmediate);
      }
      for (let tries = 0; tries < 40; tries++) await sleep(5);
    });
    return seen.filter(isForced).length;
  };

  assert.deepEqual([await forcedAfter(2), (await forcedAfter(5)) > 0, old.size], [0, true, 400_000]);
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
