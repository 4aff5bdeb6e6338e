/** What becomes of vectors that were written, in a whole process. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { beforeEach, test } from 'node:test';
import type { BuiltGraph, ComputeLanes } from '../../../actors/compute/lanes.ts';
import { manifestCodec } from '../../../actors/namespace/commit-manifest.ts';
import type { Manifest } from '../../../actors/storage/manifest.ts';
import { loadCommitted } from '../../../actors/storage/manifest-store.ts';
import { systemClock } from '../../../src/base/clock.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { paths } from '../../../src/object-store/paths.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { filesIn, vectorsLike } from '../../support/graphs.ts';
import { graphScratchFolder, InProcess, seededBytes } from '../../support/in-process.ts';
import { seededRandom } from '../../support/segments.ts';

const hourMs = 3_600_000;
/** Half of them are still enough for a graph. */
const count = 2_100;
const dims = 1_024;
const vectors = vectorsLike(seededRandom(65), count, dims).map((vector) =>
  Array.from(vector, (value) => Math.round(value * 100) / 100),
);

let clock: FakeClock;
let truth: MemoryObjectStore;
let seed = 0;
let graphGets = 0;

beforeEach(() => {
  clock = new FakeClock();
  truth = new MemoryObjectStore(clock);
  seed = 0;
});

async function start(): Promise<InProcess> {
  const server = await clock.run(InProcess.start({ store: truth, clock, random: seededBytes(++seed) }));
  graphGets = 0;
  server.store.plan = ({ operation, key }) => {
    if (operation === 'get' && key.includes('/graph/')) graphGets++;
    return undefined;
  };
  return server;
}

async function keys(part = ''): Promise<string[]> {
  const { objects } = await truth.list('ns/', { limit: 1_000 });
  return objects.map(({ key }) => key).filter((key) => key.includes(part));
}

async function manifestNow(): Promise<Manifest | null> {
  const [key] = await keys('manifest');
  return key === undefined ? null : ((await loadCommitted(truth, key, manifestCodec))?.value ?? null);
}

const graphsOf = (manifest: Manifest | null) => manifest?.segments[0]?.graphs ?? null;

/** Files are read in time that no clock of a test moves. */
async function until(what: string, isSo: () => Promise<boolean> | boolean, stepMs = 1_000): Promise<void> {
  for (let tries = 0; tries < 2_000; tries++) {
    if (await isSo()) return;
    await clock.advance(stepMs);
    await systemClock.sleep(1);
  }
  assert.fail(`it never came that ${what}`);
}

/** As `clock.run`, for what waits for files. */
async function withFiles<T>(work: Promise<T>): Promise<T> {
  let isOver = false;
  const end = () => {
    isOver = true;
  };
  work.then(end, end);
  await until('the work ends', () => isOver, 2);
  return work;
}

async function putVectors(server: InProcess, count = vectors.length): Promise<void> {
  await clock.run(server.createTenant());
  const body = { name: 'n', vector: { dims, metric: 'cosine' } };
  assert.equal((await clock.run(server.ask('createNamespace', '', { body }))).status, 201);
  const docs = vectors.slice(0, count).map((vector, at) => ({ id: `d${at}`, vector }));
  for (let from = 0; from < count; from += 300) {
    const { status, body: answer } = await clock.run(server.put('n', docs.slice(from, from + 300)));
    assert.equal(status, 200, JSON.stringify(answer));
  }
}

const deleteHalf = async (server: InProcess) => {
  const ids = vectors.flatMap((_, at) => (at < count / 2 + 10 ? [`d${at}`] : []));
  for (let from = 0; from < ids.length; from += 500)
    assert.equal((await clock.run(server.remove('n', ids.slice(from, from + 500)))).status, 200);
};

async function assertFinds(server: InProcess, from = 0): Promise<void> {
  for (const at of [from, 1_500, count - 1]) {
    const { status, body } = await withFiles(server.search('n', { vector: vectors[at], limit: 10 }));
    assert.equal(status, 200);
    assert.equal(body.hits.length, 10);
    assert.equal(body.hits[0].id, `d${at}`);
    assert.ok(body.hits.every(({ id }: { id: string }) => Number(id.slice(1)) >= from));
  }
}

const noScratch = () => !existsSync(graphScratchFolder) || filesIn(graphScratchFolder).length === 0;

function replaceLane(server: InProcess, buildGraphs: ComputeLanes['buildGraphs']): void {
  Object.assign(server.components.lanes, { buildGraphs });
}

test('vectors get graphs, which live, are searched, merged, swept and deleted with their segment', async () => {
  const first = await start();
  await putVectors(first);
  await until('the manifest names graphs', async () => graphsOf(await manifestNow()) !== null);
  const manifest = await manifestNow();
  const [graph] = graphsOf(manifest) ?? [];
  assert.ok(manifest !== null && graph !== undefined);
  assert.equal(graph.count, count);
  const graphKey = paths.namespaceGraph(manifest.namespaceId, graph.id);
  assert.deepEqual(await keys('/graph/'), [graphKey]);
  await until('the built file is gone or kept', noScratch);
  await until('the graph is counted', async () => {
    const { body } = await clock.run(first.ask('getNamespace', 'n'));
    return body.stored_bytes >= (manifest.segments[0]?.size ?? 0) + graph.size;
  });
  await assertFinds(first);
  assert.equal(graphGets, 1);

  first.kill();
  const second = await start();
  await assertFinds(second);
  assert.equal(graphGets, 1, 'the second process searches with the graph');

  const orphan = paths.namespaceGraph(manifest.namespaceId, 'f'.repeat(32));
  await truth.putIfAbsent(orphan, [Buffer.from('never committed')]);
  clock.jump(23 * hourMs);
  await clock.advance(120_000);
  assert.ok((await keys('/graph/')).includes(orphan));
  clock.jump(8 * hourMs);
  await until('the orphan is swept', async () => !(await keys()).includes(orphan));
  assert.deepEqual(await keys('/graph/'), [graphKey]);

  await deleteHalf(second);
  await until('the merged segment has its graphs', async () => {
    const now = await manifestNow();
    return now?.segments[0]?.id !== manifest.segments[0]?.id;
  });
  const merged = await manifestNow();
  const [newGraph] = graphsOf(merged) ?? [];
  assert.ok(merged !== null && newGraph !== undefined, 'committed together');
  assert.equal(newGraph.count, merged.segments[0]?.toc.rowCount);
  assert.ok(merged.retired.some(({ kind, id }) => kind === 'graph' && id === graph.id));
  await assertFinds(second, count / 2 + 10);
  assert.equal(graphGets, 2);
  await until('the old graph is deleted', async () => !(await keys()).includes(graphKey), 30_000);
  await assertFinds(second, count / 2 + 10);

  assert.equal((await clock.run(second.ask('deleteNamespace', '', { argument: 'n' }))).status, 204);
  await until('nothing is left', async () => (await keys()).length === 0);
  assert.ok(noScratch());
});

test('a merge whose graphs cannot be built takes place without them, and a later search asks for them again', async () => {
  const server = await start();
  await putVectors(server);
  await until('the manifest names graphs', async () => graphsOf(await manifestNow()) !== null);
  const before = await manifestNow();
  const { buildGraphs } = server.components.lanes;
  let failures = 0;
  replaceLane(server, async () => {
    failures++;
    throw new Error('no memory for a graph');
  });

  await deleteHalf(server);
  await until('the segment is merged', async () => {
    return (await manifestNow())?.segments[0]?.id !== before?.segments[0]?.id;
  });

  assert.equal(graphsOf(await manifestNow()), null);
  for (let n = 0; n < 3; n++) await assertFinds(server, count / 2 + 10);
  assert.ok(failures > 0 && failures <= 2, `${failures} failures: searches do not try again at once`);
  replaceLane(server, buildGraphs);
  await clock.advance(60_000);
  await assertFinds(server, count / 2 + 10);
  await until('the manifest names graphs again', async () => graphsOf(await manifestNow()) !== null);
  await assertFinds(server, count / 2 + 10);
  await until('no file is left', noScratch);
});

test('a namespace that is deleted while its graphs are built leaves neither objects nor files', async () => {
  const server = await start();
  const { buildGraphs } = server.components.lanes;
  let release = () => {};
  let built: readonly BuiltGraph[] = [];
  replaceLane(server, async (task) => {
    const graphs = await buildGraphs(task, server.components.shares.claim(7));
    built = graphs;
    await new Promise<void>((resolve) => {
      release = resolve;
    });
    return graphs;
  });
  await putVectors(server, 1_000);
  await until('a graph is built', () => built.length === 1);
  assert.equal(existsSync(built[0]?.path ?? ''), true);

  assert.equal((await clock.run(server.ask('deleteNamespace', '', { argument: 'n' }))).status, 204);
  release();

  await until('no file is left', noScratch);
  assert.deepEqual(await keys(), []);
});

test('segments of vectors are gathered into one where it is quiet', async () => {
  const server = await start();
  const half = count / 2;
  await putVectors(server, half);
  const isIndexed = async (segments: number, indexed: number) => {
    const all = (await manifestNow())?.segments ?? [];
    const graphs = all.flatMap((segment) => segment.graphs ?? []);
    return all.length === segments && graphs.reduce((sum, graph) => sum + graph.count, 0) === indexed;
  };
  await until('the first half is indexed', () => isIndexed(1, half));
  for (let from = half; from < count; from += 300) {
    const some = vectors.slice(from, Math.min(from + 300, count));
    const docs = some.map((vector, at) => ({ id: `d${from + at}`, vector }));
    assert.equal((await clock.run(server.put('n', docs))).status, 200);
  }
  await until('all of them are in one graph', () => isIndexed(1, count));
  await assertFinds(server);
});
