/**
 * A process with warm caches, one after the other, for the tests that damage their folders: LMDB may take the process
 * down with it. Arguments: how to end ('close' or 'kill'), the folders. Prints what it found in each, a line of JSON.
 */
import { createHash } from 'node:crypto';
import { BlockCache, BlockFetcher, emptyReadTally } from '../../actors/storage/block-fetch.ts';
import { SegmentReader } from '../../actors/storage/segment-reader.ts';
import { openWarmCache, type WarmCache } from '../../actors/storage/warm-cache.ts';
import { silentLogger } from '../../src/base/log.ts';
import { buildSegment, CountingStore, findById, randomRows, seededRandom } from './segments.ts';

const [end = 'close', ...folders] = process.argv.slice(2);
const key = 'ns/ab/n/segment/s';
const names = 200;

/** What must be under the name, if anything is; every seventh is large enough for a file. */
function expectedAt(at: number): Buffer {
  const length = at % 7 === 0 ? 70_000 + at : 1 + Math.floor(seededRandom(at)() * 9_000);
  return Buffer.alloc(length, createHash('sha256').update(String(at)).digest());
}

const rows = randomRows(5, 800, { wordsMax: 300 });
const { toc, bytes } = await buildSegment(rows, { documentBlockBytes: 16 * 1024 });

/** How many names the cache has, and how many of them with other bytes than were put. */
function readNames(cache: WarmCache): { readonly hits: number; readonly wrong: number } {
  let hits = 0;
  let wrong = 0;
  for (let at = 0; at < names; at++) {
    const found = cache.get(`name-${at}`);
    if (found === undefined) continue;
    hits++;
    if (!expectedAt(at).equals(found)) wrong++;
  }
  return { hits, wrong };
}

/** Documents of a segment, through the cache: how many came wrong, and what the store was asked for. */
async function readRows(cache: WarmCache): Promise<{ readonly wrong: number; readonly storeGets: number }> {
  let wrong = 0;
  const store = new CountingStore();
  await store.putIfAbsent(key, [bytes]);
  const fetcher = new BlockFetcher({ store, warmCache: cache, cache: new BlockCache(100_000) });
  const reader = new SegmentReader(key, toc, fetcher);
  for (let row = 0; row < rows.length; row += 7) {
    const expected = rows[row];
    const place = await findById(reader, expected?.id ?? '', emptyReadTally());
    if (place === null || expected === undefined) {
      wrong++;
      continue;
    }
    const start = place.block.entryOffset(place.index);
    const entry = place.block.buffer.subarray(start, start + expected.entry.length);
    if (place.row !== row || !entry.equals(expected.entry)) wrong++;
  }
  return { wrong, storeGets: store.gets };
}

for (const folder of folders) {
  const cache = openWarmCache({ folder, bytesMax: 64 * 1024 * 1024, log: silentLogger });
  const byName = readNames(cache);
  const byRow = await readRows(cache);
  for (let at = 0; at < names; at++) cache.put(`name-${at}`, expectedAt(at));
  await cache.drained();
  const found = { hits: byName.hits, wrong: byName.wrong + byRow.wrong, storeGets: byRow.storeGets };
  process.stdout.write(`${JSON.stringify(found)}\n`);
  if (end === 'kill') process.kill(process.pid, 'SIGKILL');
  await cache.close();
}
