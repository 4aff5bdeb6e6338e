import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { mergeSegments } from '../../../actors/compute/merge-segments.ts';
import {
  noTombstones,
  type Tombstones,
  tombstonesToWire,
  withDeleted,
} from '../../../actors/storage/tombstones.ts';
import { limits } from '../../../protocol/limits.ts';
import { DataError } from '../../../src/base/assert.ts';
import { systemClock } from '../../../src/base/clock.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { type Fault, FaultyObjectStore } from '../../support/faulty-object-store.ts';
import {
  buildSegment,
  CountingStore,
  entryOf,
  randomRows,
  seededRandom,
  type TestRow,
} from '../../support/segments.ts';

const clock = { ...systemClock, sleep: () => Promise.resolve() };
const outKey = 'ns/ab/n/segment/out';

/** Random rows cut into neighbouring segments, each with random tombstones. */
async function segmentsOf(
  seed: number,
  options: { count: number; deleted: number; documentBlockBytes?: number },
) {
  const random = seededRandom(seed);
  const rows = randomRows(seed, options.count);
  const store = new CountingStore();
  const inputs: { key: string; toc: Awaited<ReturnType<typeof buildSegment>>['toc']; tombstones: unknown }[] =
    [];
  const living: TestRow[] = [];
  for (let from = 0; from < rows.length; ) {
    const piece = rows.slice(from, from + 1 + Math.floor(random() * (options.count / 2)));
    from += piece.length;
    const key = `ns/ab/n/segment/in${inputs.length}`;
    const { documentBlockBytes } = options;
    const { toc, bytes } = await buildSegment(
      piece,
      documentBlockBytes === undefined ? {} : { documentBlockBytes },
      key,
    );
    await store.putIfAbsent(key, [bytes]);
    const deleted = piece.flatMap((_, row) => (random() < options.deleted ? [row] : []));
    const tombstones: Tombstones = withDeleted(noTombstones, deleted);
    living.push(...piece.filter((_, row) => !deleted.includes(row)));
    inputs.push({ key, toc, tombstones: tombstonesToWire(tombstones) });
  }
  return { store, inputs, living };
}

test('a merge is what a segment built from the living rows is, byte for byte', async (t) => {
  const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 1e9));
  t.diagnostic(`seed ${seed}`);
  for (const [count, deleted] of [
    [1, 0],
    [2, 0.5],
    [50, 0],
    [700, 0.3],
    [3000, 0.9],
    [4000, 0.01],
  ] as const) {
    const { store, inputs, living } = await segmentsOf(seed + count, {
      count,
      deleted,
      documentBlockBytes: 3000,
    });

    const merged = await mergeSegments({ store, clock }, { task: 'merge-segments', key: outKey, inputs });

    const stored = await store.get(outKey);
    if (living.length === 0) {
      assert.deepEqual([merged, stored], [null, null]);
      continue;
    }
    const rebuilt = await buildSegment(living, {}, outKey);
    assert.ok(merged?.stored && Buffer.compare(merged.stored, rebuilt.bytes) === 0);
    const expected = { toc: rebuilt.toc, size: rebuilt.bytes.length, stored: null };
    assert.deepEqual({ ...merged, stored: null }, expected);
    assert.equal(Buffer.compare(stored?.bytes ?? Buffer.alloc(0), rebuilt.bytes), 0);
  }
});

test('a merge reads each input front to back, in few GETs and no byte of a document twice', async () => {
  const { store, inputs } = await segmentsOf(1, { count: 8000, deleted: 0.1 });
  const docsBytes = inputs.reduce((sum, { toc }) => sum + (toc.sections[0]?.length ?? 0), 0);
  // The index of the blocks, and the filter beside it.
  const indexBytes = inputs.reduce(
    (sum, { toc }) => sum + (toc.sections[1]?.length ?? 0) + (toc.sections[2]?.length ?? 0),
    0,
  );
  store.gets = 0;
  store.getBytes = 0;

  await mergeSegments({ store, clock }, { task: 'merge-segments', key: outKey, inputs });

  // Blocks of vectors, which lie among those of documents, are not read.
  assert.ok(store.getBytes <= docsBytes + indexBytes, `${store.getBytes} bytes`);
  assert.ok(store.getBytes > docsBytes * 0.8, `${store.getBytes} bytes`);
  assert.ok(store.gets <= 2 * inputs.length + docsBytes / 1e6, `${store.gets} GETs`);
});

test('a merge reads damaged bytes once more, and stores nothing where they stay damaged', async () => {
  const { store, inputs } = await segmentsOf(2, { count: 2000, deleted: 0, documentBlockBytes: 5000 });
  let spoiled = 0;
  store.spoil = (bytes) => {
    if (spoiled++ % 2 === 0 && bytes.length > 100) bytes[60] = (bytes[60] as number) ^ 1;
    return bytes;
  };
  assert.notEqual(
    await mergeSegments({ store, clock }, { task: 'merge-segments', key: outKey, inputs }),
    null,
  );

  store.spoil = (bytes) => bytes.fill(0);
  const damaged = mergeSegments({ store, clock }, { task: 'merge-segments', key: `${outKey}2`, inputs });
  await assert.rejects(damaged, DataError);
  store.spoil = (bytes) => bytes;
  assert.equal(await store.get(`${outKey}2`), null);
});

test('a merge takes far less memory than the segment that it makes', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'tidebase-merge-'));
  t.after(() => rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 }));
  const child = fileURLToPath(new URL('../../support/merge-child.js', import.meta.url));

  const { stdout } = await promisify(execFile)(process.execPath, [child, folder, '6', '20']);

  t.diagnostic(stdout);
  const result = JSON.parse(stdout) as Record<'rows' | 'rowsExpected' | 'storedMB' | 'aboveIdleMB', number>;
  assert.equal(result.rows, result.rowsExpected);
  assert.ok(result.storedMB > 70, `${result.storedMB} MB stored`);
  assert.ok(result.aboveIdleMB < 70, `${result.aboveIdleMB} MB`);
});

test('a small segment comes with its bytes, as they are in the store; a larger one without', async () => {
  const merged = async (bytesOfText: number, faults: Fault[] = []) => {
    const store = new FaultyObjectStore(new MemoryObjectStore(), clock, ({ operation }) =>
      operation === 'stream' ? faults.shift() : undefined,
    );
    const random = seededRandom(5);
    const text = Buffer.from(Array.from({ length: bytesOfText }, () => Math.floor(random() * 94) + 33));
    const entry = entryOf({ id: 'a', text, meta: null, vector: null });
    const key = 'ns/ab/n/segment/in';
    const { toc, bytes } = await buildSegment([{ id: 'a', sequence: 1, writtenAt: 0, entry }], {}, key);
    await store.putIfAbsent(key, [bytes]);
    const inputs = [{ key, toc, tombstones: tombstonesToWire(noTombstones) }];
    const built = await mergeSegments({ store, clock }, { task: 'merge-segments', key: outKey, inputs });
    return { stored: built?.stored, object: (await store.get(outKey))?.bytes };
  };

  const small = await merged(1_000);
  assert.ok(small.stored && small.object && Buffer.compare(small.stored, small.object) === 0);
  assert.ok(small.stored.buffer instanceof SharedArrayBuffer);
  for (const fault of ['drop-before-apply', 'error-after-apply', 'refuse-after-apply'] as const) {
    const faults: Fault[] = [fault];
    const again = await merged(1_000, faults);
    assert.equal(faults.length, 0);
    assert.ok(again.stored && Buffer.compare(again.stored, small.object) === 0, `after ${fault}`);
  }
  const large = await merged(1_900_000);
  assert.equal(large.stored, null);
  assert.ok((large.object?.length ?? 0) > limits.freshObjectBytesMax);
});
