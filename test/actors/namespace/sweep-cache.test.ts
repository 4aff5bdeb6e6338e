import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { sweepCache } from '../../../actors/namespace/sweep-cache.ts';
import { encodeManifest, type Manifest, type ManifestSegment } from '../../../actors/storage/manifest.ts';
import { cachedManifest, cacheManifest } from '../../../actors/storage/manifest-cache.ts';
import { noTombstones } from '../../../actors/storage/tombstones.ts';
import { openWarmCache } from '../../../actors/storage/warm-cache.ts';
import { systemClock } from '../../../src/base/clock.ts';
import { silentLogger } from '../../../src/base/log.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { paths } from '../../../src/object-store/paths.ts';

const idOf = (at: number) => `${at}`.padStart(32, '0');

function segmentOf(id: string): ManifestSegment {
  const toc = {
    formatVersion: 9,
    rowCount: 1,
    minSequence: 1,
    maxSequence: 1,
    docsRawBytes: 1,
    sections: [],
  };
  return {
    id,
    size: 1,
    toc,
    tombstones: noTombstones,
    tombstonesObject: null,
    graphs: null,
    deletedAtMs: null,
  };
}

function manifestOf(namespaceId: string, version: number, segments: readonly string[]): Manifest {
  return {
    tenantId: 7,
    name: 'n',
    namespaceId,
    createdAt: '2026-01-02T03:04:05Z',
    version,
    nonce: '1'.repeat(32),
    state: 'live',
    owner: { logId: 'log', view: 1 },
    applied: new Map(),
    segments: segments.map(segmentOf),
    tail: null,
    retired: [{ kind: 'segment', id: 'merged', atMs: 1 }],
    counters: { version: 1, lastSequence: 1, lastWrittenAt: 1, docsWritten: 1, bytesWritten: 1 },
    temporalKeys: [],
  };
}

test('the sweep forgets what is gone from the store, and nothing else', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'sweep-cache-'));
  t.after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  const store = new MemoryObjectStore(systemClock);
  const warmCache = openWarmCache({ folder, bytesMax: 2 ** 26, log: silentLogger });
  t.after(() => warmCache.close());
  const [deleted, current, older, damaged] = [1, 2, 3, 4].map(idOf) as [string, string, string, string];
  const store1 = (id: string, bytes: Uint8Array) => store.putIfAbsent(paths.namespaceManifest(id), [bytes]);
  for (const id of [current, older]) await store1(id, encodeManifest(manifestOf(id, 5, ['named'])));
  await store1(damaged, Buffer.from('no manifest'));
  const cached = { etag: 'e', size: 1 };
  for (const id of [deleted, current, damaged])
    cacheManifest({ warmCache, threadLife: 't' }, { ...cached, value: manifestOf(id, 5, ['named']) });
  cacheManifest({ warmCache, threadLife: 't' }, { ...cached, value: manifestOf(older, 4, ['merged']) });
  const blocks = (id: string, segment: string) =>
    [0, 1, 2].map((at) => `${paths.namespaceSegment(id, segment)}@${at}`);
  for (const id of [deleted, current, older, damaged])
    for (const segment of ['named', 'merged'])
      for (const name of blocks(id, segment)) warmCache.put(name, Buffer.from(name));
  warmCache.put('meta/orderly-end', Buffer.from('x'));
  await warmCache.drained();

  await sweepCache({ store, warmCache, clock: systemClock, logger: silentLogger });

  const left = (id: string) => ({
    manifest: cachedManifest(warmCache, id) !== null,
    named: blocks(id, 'named').filter((name) => warmCache.get(name)).length,
    merged: blocks(id, 'merged').filter((name) => warmCache.get(name)).length,
  });
  assert.deepEqual(left(deleted), { manifest: false, named: 0, merged: 0 });
  assert.deepEqual(left(current), { manifest: true, named: 3, merged: 0 });
  assert.deepEqual(left(older), { manifest: false, named: 3, merged: 0 });
  assert.deepEqual(left(damaged), { manifest: true, named: 3, merged: 3 });
  assert.notEqual(warmCache.get('meta/orderly-end'), undefined);
});
