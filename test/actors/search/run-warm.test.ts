import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { runSearch } from '../../../actors/search/run-search.ts';
import { runWarm } from '../../../actors/search/run-warm.ts';
import { BlockCache, BlockFetcher } from '../../../actors/storage/block-fetch.ts';
import { SegmentReader } from '../../../actors/storage/segment-reader.ts';
import { noTombstones } from '../../../actors/storage/tombstones.ts';
import { openWarmCache, type WarmCache } from '../../../actors/storage/warm-cache.ts';
import { parseSearchBody, parseWarmBody } from '../../../protocol/search.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { quiet } from '../../support/in-process.ts';
import { contextOf } from '../../support/query-context.ts';
import { buildSegment, CountingStore, randomRows } from '../../support/segments.ts';

const segmentKey = 'ns/ab/n/segment/s';
const clock = new FakeClock();
/** The index can't narrow it. */
const everything = '^\\b';

/** A segment of some 60 blocks of 2 KB before compression, whose blocks in memory may take `memoryBytes`. */
async function worldOf(memoryBytes: number, warmCache: WarmCache | null) {
  const store = new CountingStore();
  const { toc, bytes } = await buildSegment(randomRows(7, 600), { documentBlockBytes: 2_000 });
  await store.putIfAbsent(segmentKey, [bytes]);
  // As over a folder: a query that is not asked to bring data near keeps less on the local disk than the segment has.
  const keptBytesOfQueryMax = 1_000;
  const cache = new BlockCache(memoryBytes);
  const fetcher = new BlockFetcher({ store, warmCache, cache, keptBytesOfQueryMax });
  const reader = new SegmentReader(segmentKey, toc, fetcher);
  const segments = [{ id: 's', size: bytes.length, reader, tombstones: noTombstones, graphs: null }];
  const snapshot = { version: 1, sequence: 1e9, documents: 600, memtables: [], segments };
  const context = () => contextOf(snapshot, clock, 10_000);
  const docsBytes = reader.section('docs').length;
  return {
    store,
    docsBytes,
    warm: async () =>
      JSON.parse(await runWarm(context(), parseWarmBody({ queries: [everything], regex: true }))),
    search: async () =>
      JSON.parse(String(await runSearch(context(), parseSearchBody({ q: everything, regex: true })))),
  };
}

test('what fits memory is ready, and the search after it reads nothing', async () => {
  const { warm, search, docsBytes } = await worldOf(10_000_000, null);

  const answer = await warm();

  assert.deepEqual(answer.queries, [{ q: everything, ready: true }]);
  assert.equal(answer.bytes_cached, docsBytes);
  assert.equal((await search()).store_gets, 0);
});

test('what fits the local disk alone is ready too', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tidebase-warm-'));
  const cache = openWarmCache({ folder, bytesMax: 64 * 1024 * 1024, log: quiet });
  try {
    const { warm, search, docsBytes } = await worldOf(10_000, cache);

    const answer = await warm();

    assert.deepEqual(answer.queries, [{ q: everything, ready: true }]);
    assert.equal(answer.bytes_cached, docsBytes);
    assert.equal((await search()).store_gets, 0);
  } finally {
    await cache.close();
    rmSync(folder, { recursive: true });
  }
});

test('more than the caches hold is not ready, and warming ends when they are full', async () => {
  const { warm, store, docsBytes } = await worldOf(20_000, null);

  const answer = await warm();

  assert.deepEqual(answer.queries, [{ q: everything, ready: false }]);
  assert.equal(answer.timed_out, false);
  assert.ok(answer.bytes_cached < 20_000, `${answer.bytes_cached} bytes`);
  // What was on its way when the first block went counts as well.
  assert.ok(store.getBytes < docsBytes, `${store.getBytes} of ${docsBytes} bytes were read`);
});
