/**
 * A program for worker-pool.test.ts, since what it tries may take a process down: begins a long task of native code in a pool as the
 * server has them, ends the pool in the middle of it, again and again, and says how often that went well.
 *
 *   node end-in-a-task.js embed|graphs
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { noTombstones, tombstonesToWire } from '../../actors/storage/tombstones.ts';
import type { ComputeThreadData } from '../../protocol/worker-tasks.ts';
import { systemClock } from '../../src/base/clock.ts';
import { systemRandom } from '../../src/base/random.ts';
import { FsObjectStore } from '../../src/object-store/fs-object-store.ts';
import { TaskPool, workerEntries } from '../../src/router/worker-pool.ts';
import { vectorRow, vectorsLike } from './graphs.ts';
import { buildSegment, seededRandom } from './segments.ts';

const times = 5;
const segmentKey = 'ns/ab/n/segment/s';
const folder = mkdtempSync(join(tmpdir(), 'tidebase-end-in-a-task-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

async function graphsTask(): Promise<object> {
  const vectors = vectorsLike(seededRandom(5), 8_000, 256);
  const rows = vectors.map((vector, at) => vectorRow(at + 1, vector));
  const { toc, bytes } = await buildSegment(rows, {}, segmentKey);
  const store = await FsObjectStore.open(folder, systemClock, systemRandom);
  await store.putIfAbsent(segmentKey, [bytes]);
  await store.close();
  return {
    task: 'build-graphs',
    segmentKey,
    toc,
    tombstones: tombstonesToWire(noTombstones),
    metric: 'cosine',
    id: 'g',
    keyPrefix: 'ns/ab/n/graph/',
  };
}

const texts = Array.from({ length: 60 }, (_, at) => `Low water in the harbour, ${at}. `.repeat(30));
const task = process.argv[2] === 'graphs' ? await graphsTask() : { task: 'embed-here', texts };
const data: Omit<ComputeThreadData, 'ending'> = {
  store: { kind: 'fs', folder },
  backgroundSteps: 0,
  scratchFolder: join(folder, 'scratch'),
  embeddingBaseUrls: { openai: '', cohere: '', google: '', mistral: '' },
  processMemoryBytes: 2 ** 30,
};
for (let time = 1; time <= times; time++) {
  const pool = new TaskPool({
    entry: workerEntries.compute,
    threads: 1,
    data,
    tasksPerThread: 1,
    endsBetweenTasks: true,
  });
  const running = pool.run(task, []).then(
    () => 'was done',
    (error: unknown) => String(error),
  );
  await systemClock.sleep(250 + 150 * time);
  const beganMs = performance.now();
  await pool.end();
  const endedMs = Math.round(performance.now() - beganMs);
  process.stdout.write(`${time}: ended within ${endedMs} ms; the task: ${await running}\n`);
}
process.stdout.write('all ended\n');
