/** Building, reading and scanning one segment. Run: node dist/test/bench/segment.bench.js [rows] */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BlockCache, BlockFetcher, emptyReadTally } from '../../actors/storage/block-fetch.ts';
import { documentTextLength } from '../../actors/storage/document-batch.ts';
import { orderByHash, wantIds } from '../../actors/storage/hash-order.ts';
import { idDigestWords } from '../../actors/storage/id-digest.ts';
import { SegmentReader } from '../../actors/storage/segment-reader.ts';
import { SegmentWriter } from '../../actors/storage/segment-writer.ts';
import { openWarmCache } from '../../actors/storage/warm-cache.ts';
import { silentLogger } from '../../src/base/log.ts';
import {
  blocksNewestFirst,
  CountingStore,
  entryOf,
  findById,
  findCachedById,
  randomText,
  seededRandom,
  type TestRow,
} from '../support/segments.ts';

const rowCount = Number(process.argv[2] ?? 100_000);
const MB = 1e6;

const print = (line: string) => process.stdout.write(`${line}\n`);
const key = 'ns/ab/x/segment/s';

function perSecond(count: number, startedAt: number): number {
  return Math.round((count / (performance.now() - startedAt)) * 1000);
}

function makeRows(): TestRow[] {
  const random = seededRandom(1);
  return Array.from({ length: rowCount }, (_, at) => {
    const id = `document-${at}-${Math.floor(random() * 1e9)}`;
    const text = Buffer.from(randomText(random, 150));
    return {
      id,
      sequence: at + 1,
      writtenAt: 1.7e15 + at,
      entry: entryOf({ id, text, meta: null, vector: null }),
    };
  });
}

function sorting(count: number): void {
  const random = seededRandom(2);
  const digests = Uint32Array.from({ length: count * idDigestWords }, () => random() * 2 ** 32);
  const startedAt = performance.now();
  orderByHash(digests, count);
  print(`sort ${count} hashes: ${(performance.now() - startedAt).toFixed(1)} ms`);
}

async function build(rows: readonly TestRow[]) {
  const chunks: Uint8Array[] = [];
  const startedAt = performance.now();
  const writer = new SegmentWriter(key, (chunk) => void chunks.push(chunk));
  for (const row of rows) writer.add(row.sequence, row.writtenAt, row.entry, 0);
  const addedAt = performance.now();
  const { toc, size } = await writer.finish();
  const finishedAt = performance.now();
  const rawMB = toc.docsRawBytes / MB;
  print(
    `build: ${rowCount} rows, ${rawMB.toFixed(0)} MB raw, ${(size / MB).toFixed(0)} MB stored: ` +
      `${(rawMB / ((finishedAt - startedAt) / 1000)).toFixed(0)} MB/s (finish ${(finishedAt - addedAt).toFixed(0)} ms)`,
  );
  return { toc, bytes: Buffer.concat(chunks) };
}

async function pointReads(reader: SegmentReader, rows: readonly TestRow[], label: string, count: number) {
  const random = seededRandom(3);
  let misses = 0;
  const startedAt = performance.now();
  for (let i = 0; i < count; i++) {
    const row = rows[Math.floor(random() * rows.length)] as TestRow;
    const place = findCachedById(reader, row.id);
    if (place === 'miss') {
      misses++;
      await findById(reader, row.id, emptyReadTally());
    }
  }
  print(`${label}: ${perSecond(count, startedAt)} point reads/s, ${misses} needed the store`);
}

async function scan(reader: SegmentReader, label: string) {
  const startedAt = performance.now();
  let textBytes = 0;
  for await (const block of blocksNewestFirst(reader, emptyReadTally())) {
    for (let i = 0; i < block.rowCount; i++)
      textBytes += documentTextLength(block.buffer, block.entryOffset(i));
  }
  print(`${label}: ${(textBytes / MB / ((performance.now() - startedAt) / 1000)).toFixed(0)} MB/s of text`);
}

sorting(100_000);
sorting(1_000_000);
const rows = makeRows();
const { toc, bytes } = await build(rows);
const store = new CountingStore();
await store.putIfAbsent(key, [bytes]);
const folder = mkdtempSync(join(tmpdir(), 'segment-bench-'));
const warmCache = openWarmCache({ folder, bytesMax: 2 ** 30, log: silentLogger });
const open = (cacheBytes: number) =>
  new SegmentReader(key, toc, new BlockFetcher({ store, warmCache, cache: new BlockCache(cacheBytes) }));

const reader = open(2 ** 30);
await scan(reader, 'scan from the store');
await scan(reader, 'scan from memory');
await pointReads(reader, rows, 'first', 10_000);
await pointReads(reader, rows, 'memory', 300_000);
const ids = rows.filter((_, at) => at % Math.ceil(rowCount / 10_000) === 0).map((row) => row.id);
const bulkAt = performance.now();
await reader.findRows(wantIds(ids), emptyReadTally());
print(`bulk, memory: ${ids.length} ids in ${(performance.now() - bulkAt).toFixed(1)} ms`);
await warmCache.drained();
const local = open(2 ** 20);
await pointReads(local, rows, 'local disk', 10_000);
await scan(open(2 ** 20), 'scan from local disk');
print(`store: ${store.gets} GETs; warm cache: ${JSON.stringify(warmCache.stats())}`);
await warmCache.close();
rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
