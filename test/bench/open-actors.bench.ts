/**
 * What open actors cost on the heap, beside what the memory budget counts for them in all; texts lie outside the heap.
 * The constants of actors/namespace/resident.ts come from here. Node 20: 5,000 bytes an actor, 146 a row.
 * Run: node --expose-gc dist/test/bench/open-actors.bench.js
 */
import { memoryUsage, stdout } from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '../../src/base/clock.ts';
import { MemoryObjectStore } from '../../src/object-store/memory-object-store.ts';
import { InProcess, seededBytes } from '../support/in-process.ts';

const namespaces = Number(process.env.NAMESPACES ?? 3_000);
const collect = (globalThis as { gc?: () => void }).gc ?? (() => {});

async function settled(): Promise<NodeJS.MemoryUsage> {
  for (let round = 0; round < 3; round++) {
    collect();
    await sleep(50);
  }
  return memoryUsage();
}

const names = Array.from({ length: namespaces }, (_, i) => `n${i}`);
const options = { clock: systemClock, commitMs: 0, memoryBytes: 8e9, recover: false };

/** In a scope of its own, so that nothing of the first process is held afterwards. */
async function write(store: MemoryObjectStore, docs: readonly object[]): Promise<void> {
  const server = await InProcess.start({ ...options, store, random: seededBytes(1) });
  await server.createTenant();
  const own = docs.map((doc, i) => ({ ...doc, id: `document-${i}` }));
  await Promise.all(names.map((name) => server.put(name, own)));
  await server.drain();
}

async function measure(label: string, docs: readonly object[]): Promise<void> {
  const store = new MemoryObjectStore();
  await write(store, docs);
  await sleep(1_000);
  const server = await InProcess.start({ ...options, store, random: seededBytes(2) });
  await server.ask('listNamespaces', '');
  const before = await settled();
  for (const name of names) {
    const { status } = await server.count(name, { q: 'zzz' });
    if (status !== 200) throw new Error(`count ${status}`);
  }
  await sleep(1_000);
  const after = await settled();
  const { actors, memtables, manifests, readers } = server.components.memory.lines;
  const counted = (actors + memtables + manifests + readers) / namespaces;
  const heap = (after.heapUsed - before.heapUsed) / namespaces;
  const figures = `${heap.toFixed(0)} bytes of heap a namespace, counted ${counted.toFixed(0)} in all`;
  stdout.write(`${label}: ${figures}\n`);
  server.kill();
}

// The ports of the processes do not keep this one alive.
const alive = setInterval(() => {}, 1_000);
await measure('one document of 10 bytes', [{ text: 'x'.repeat(10) }]);
await measure('one document of 10 KB', [{ text: 'tide '.repeat(2_000) }]);
const short = { text: 'tide '.repeat(20) };
await measure(
  'a hundred documents of 100 bytes',
  Array.from({ length: 100 }, () => short),
);
clearInterval(alive);
