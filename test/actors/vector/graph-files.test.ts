import assert from 'node:assert/strict';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { emptyReadTally, MissingObjectError } from '../../../actors/storage/block-fetch.ts';
import { checksumText, type SegmentGraph } from '../../../actors/storage/segment-graph.ts';
import { openWarmCache, type WarmCache } from '../../../actors/storage/warm-cache.ts';
import { GraphFiles } from '../../../actors/vector/graph-files.ts';
import { type GraphShape, inShape } from '../../../actors/vector/graph-shape.ts';
import { type Graph, graphBuilder } from '../../../actors/vector/hnsw.ts';
import { DataError } from '../../../src/base/assert.ts';
import { systemClock } from '../../../src/base/clock.ts';
import { runningXxh64 } from '../../../src/base/hash.ts';
import { silentLogger } from '../../../src/base/log.ts';
import { systemRandom } from '../../../src/base/random.ts';
import { eventually } from '../../support/eventually.ts';
import { filesIn, vectorsLike } from '../../support/graphs.ts';
import { CountingStore, seededRandom } from '../../support/segments.ts';

const MiB = 1024 * 1024;
const key = 'ns/ab/n/graph/g';
const shape: GraphShape = { dims: 16, metric: 'cosine', precision: 'i8', scale: 200 };
const vectors = vectorsLike(seededRandom(64), 300, shape.dims);

function newFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'graph-files-'));
  t.after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 }));
  return folder;
}

function openCache(t: TestContext, folder: string, bytesMax = 64 * MiB): WarmCache {
  const freeSpace = () => ({ freeBytes: 1e12, totalBytes: 1e12 });
  const cache = openWarmCache({ folder: join(folder, 'cache'), bytesMax, log: silentLogger, freeSpace });
  t.after(() => cache.close());
  return cache;
}

/** A graph in a store, and beside it the folder in which files of it come to lie. */
async function setUp(
  t: TestContext,
  options: { readonly bytesMax?: number; readonly cached?: boolean } = {},
) {
  const folder = newFolder(t);
  const scratchFolder = join(folder, 'scratch');
  mkdirSync(scratchFolder);
  const builder = graphBuilder(shape);
  for (const [row, vector] of vectors.entries()) builder.add([row], inShape(vector, shape));
  const path = join(scratchFolder, 'built');
  builder.save(path);
  const bytes = readFileSync(path);
  const hash = runningXxh64();
  hash.update(bytes);
  const graph: SegmentGraph = {
    id: 'g',
    size: bytes.length,
    checksum: checksumText(hash.digest()),
    firstRow: 0,
    endRow: 300,
    count: 300,
    leftOut: 0,
    precision: 'i8',
    scale: 1,
    expansion: 64,
  };
  const store = new CountingStore();
  await store.putIfAbsent(key, [bytes]);
  const warmCache = options.cached === false ? null : openCache(t, folder, options.bytesMax);
  const filesOver = (cache: WarmCache | null) =>
    new GraphFiles({ store, clock: systemClock, random: systemRandom, warmCache: cache, scratchFolder });
  const open = (files: GraphFiles) => files.open(key, graph, shape, emptyReadTally());
  return {
    folder,
    scratchFolder,
    path,
    bytes,
    graph,
    store,
    warmCache,
    files: filesOver(warmCache),
    filesOver,
    open,
  };
}

function assertFinds(graph: Graph): void {
  for (const row of [0, 17, 299]) assert.equal(graph.nearest(vectors[row] as Float32Array, 5).rows[0], row);
}

test('a file that was just built is taken over, opened without a read of the store, and found after a restart', async (t) => {
  const { folder, scratchFolder, path, bytes, graph, store, warmCache, files, filesOver, open } =
    await setUp(t);
  await files.keep(key, graph, path);
  assert.deepEqual(filesIn(scratchFolder), []);
  const local = warmCache?.pathOf(key) ?? '';
  assert.deepEqual(readFileSync(local), bytes);

  assertFinds(await open(files));
  await warmCache?.close();
  const again = openCache(t, folder);
  assert.equal(again.pathOf(key), local);
  assert.ok(again.stats().bytes >= bytes.length);
  assertFinds(await open(filesOver(again)));

  assert.equal(store.gets, 0);
});

test('a graph that is not here is fetched once and kept', async (t) => {
  const { scratchFolder, path, store, files, open } = await setUp(t);
  rmSync(path);
  assertFinds(await open(files));
  assert.equal(store.gets, 1);
  assertFinds(await open(files));
  assert.equal(store.gets, 1);
  assert.deepEqual(filesIn(scratchFolder), []);
});

test('a file that is damaged on the disk is never opened: the graph is fetched again, and kept again', async (t) => {
  const { scratchFolder, path, bytes, graph, store, warmCache, files, open } = await setUp(t);
  await files.keep(key, graph, path);
  const flipped = (at: number) => {
    const damaged = Buffer.from(bytes);
    damaged[at] = (damaged[at] as number) ^ 0x10;
    return damaged;
  };
  const places = [0, 8, 40, 64, 200, bytes.length >> 1, bytes.length - 1];
  const damages: ((local: string) => void)[] = [
    ...places.map((at) => (local: string) => writeFileSync(local, flipped(at))),
    (local) => truncateSync(local, bytes.length - 1),
    (local) => truncateSync(local, 0),
    (local) => writeFileSync(local, Buffer.concat([bytes, Buffer.alloc(1)])),
    (local) => rmSync(local),
    (local) => {
      rmSync(local);
      mkdirSync(local);
    },
  ];
  for (const [at, damage] of damages.entries()) {
    const local = warmCache?.pathOf(key) ?? '';
    damage(local);
    assertFinds(await open(files));
    assert.equal(store.gets, at + 1, `damage ${at} was noticed`);
    const kept = warmCache?.pathOf(key) ?? '';
    assert.notEqual(kept, local);
    assert.deepEqual(readFileSync(kept), bytes);
    assert.deepEqual(filesIn(scratchFolder), []);
  }
});

test('an object that came damaged is fetched once more; one that stays so is a DataError, a missing one says so', async (t) => {
  const { scratchFolder, path, store, warmCache, files, open } = await setUp(t);
  rmSync(path);
  let spoilt = 0;
  const spoilTimes = (times: number) => {
    spoilt = 0;
    store.gets = 0;
    store.spoil = (bytes) =>
      spoilt++ < times ? bytes.map((byte, at) => (at === 100 ? byte ^ 1 : byte)) : bytes;
  };
  spoilTimes(Number.POSITIVE_INFINITY);
  await assert.rejects(open(files), DataError);
  assert.equal(store.gets, 2);
  store.spoil = (bytes) => bytes.subarray(0, bytes.length - 1);
  await assert.rejects(open(files), DataError);
  assert.equal(warmCache?.pathOf(key), null);
  store.spoil = () => {
    throw new Error('the store does not answer');
  };
  await assert.rejects(open(files), /does not answer/);
  assert.deepEqual(filesIn(scratchFolder), []);

  spoilTimes(1);
  assertFinds(await open(files));
  assert.equal(store.gets, 2);
  files.forget(key);
  await store.delete(key);
  await assert.rejects(open(files), MissingObjectError);
  assert.deepEqual(filesIn(scratchFolder), []);
});

test('an open graph goes on when its file is forgotten or evicted, and its disk space is given back', async (t) => {
  const { scratchFolder, path, graph, warmCache, files, open } = await setUp(t, { bytesMax: 8 * MiB });
  assert.ok(warmCache !== null);
  await files.keep(key, graph, path);
  const opened = await open(files);
  const local = warmCache.pathOf(key) ?? '';
  for (let at = 0; at < 60; at++) {
    warmCache.put(`other@${at}`, Buffer.alloc(MiB, at));
    await warmCache.drained();
  }
  assert.equal(warmCache.pathOf(key), null);
  await eventually(() => !existsSync(local), 'its file is gone');
  assertFinds(opened);

  const second = await open(files);
  files.forget(key);
  assert.equal(warmCache.pathOf(key), null);
  assertFinds(second);
  assertFinds(opened);
  assert.deepEqual(filesIn(scratchFolder), []);
});

test('where there is no room, or no cache, a graph is opened and not kept', async (t) => {
  for (const options of [{ bytesMax: 10_000 }, { cached: false }]) {
    const { scratchFolder, path, graph, store, warmCache, files, open } = await setUp(t, options);
    await files.keep(key, graph, path);
    assert.deepEqual(filesIn(scratchFolder), []);
    assert.equal(warmCache?.pathOf(key) ?? null, null);
    const opened = await open(files);
    assert.equal(store.gets, 1);
    assertFinds(opened);
    assert.deepEqual(filesIn(scratchFolder), []);
  }
});
