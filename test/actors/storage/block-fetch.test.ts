import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  BlockCache,
  BlockFetcher,
  coalesceGapBytesMax,
  emptyReadTally,
  MissingObjectError,
  planRanges,
  rangeBytesMax,
} from '../../../actors/storage/block-fetch.ts';
import { FreshObjects } from '../../../actors/storage/fresh-objects.ts';
import { BlockOwner, type BlockPlace, encodeBlock } from '../../../actors/storage/segment-format.ts';
import { MemoryBudget } from '../../../actors/thread/memory-budget.ts';
import { DataError } from '../../../src/base/assert.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { CountingStore } from '../../support/segments.ts';

const key = 'ns/ab/n/segment/s';
const bounds = { gapBytesMax: 100, bytesMax: 1000 };
const place = (offset: number, length: number): BlockPlace => ({ offset, length, kind: 9 });
const spans = (places: BlockPlace[]) =>
  planRanges(places, bounds).map(({ offset, length }) => [offset, length]);

/** A map of names, as the local disk. */
class MapCache {
  readonly entries = new Map<string, Uint8Array>();
  get(name: string) {
    return this.entries.get(name);
  }
  has(name: string) {
    return this.entries.has(name);
  }
  put(name: string, bytes: Uint8Array) {
    this.entries.set(name, Buffer.from(bytes));
  }
  remove(name: string) {
    this.entries.delete(name);
  }
}

/** An object of blocks of these raw sizes, each filled with its number, with `gap` bytes between. */
async function objectOf(sizes: readonly number[], options: { gap?: number; cacheBytes?: number } = {}) {
  const store = new CountingStore();
  const places: BlockPlace[] = [];
  const parts: Buffer[] = [];
  const owner = new BlockOwner(key);
  let offset = 0;
  sizes.forEach((size, at) => {
    const block = encodeBlock(9, Buffer.alloc(size, at + 1), { compress: false, owner, offset });
    places.push(place(offset, block.length));
    parts.push(block, Buffer.alloc(options.gap ?? 0));
    offset += block.length + (options.gap ?? 0);
  });
  await store.putIfAbsent(key, parts);
  const warmCache = new MapCache();
  const cache = new BlockCache(options.cacheBytes ?? 1e9);
  const fetcher = new BlockFetcher({ store, warmCache, cache });
  return { store, places, warmCache, cache, fetcher, blocks: fetcher.open(key) };
}

test('neighbouring blocks share a range, distant ones do not', () => {
  assert.deepEqual(spans([place(0, 50), place(50, 50), place(200, 10), place(311, 10)]), [
    [0, 210],
    [311, 10],
  ]);
});

test('ranges are planned in order of offset and cut at their bound', () => {
  assert.deepEqual(spans([place(900, 200), place(0, 450), place(450, 450)]), [
    [0, 900],
    [900, 200],
  ]);
  assert.deepEqual(spans([place(0, 5000)]), [[0, 5000]]);
  assert.deepEqual(spans([]), []);
});

test('one request of neighbours is one GET, counted in the tally', async () => {
  const { blocks, places, store } = await objectOf([1000, 2000, 3000], { gap: 50 });
  const tally = emptyReadTally();

  const found = await blocks.fetch([places[2], places[0], places[1]] as BlockPlace[], tally);

  assert.deepEqual(
    found.map((block) => [block.raw.length, block.raw[0]]),
    [
      [3000, 3],
      [1000, 1],
      [2000, 2],
    ],
  );
  assert.equal(store.gets, 1);
  assert.deepEqual(tally, { storeGets: 1, storeBytes: 6000 + 3 * 24 + 2 * 50, diskReads: 0 });
});

test('what somebody near has is not asked of the store, and kept on the disk; what is missing or damaged there comes from the store', async () => {
  const { fetcher, places, store, warmCache } = await objectOf([100, 200, 300, 400]);
  const whole = (await store.get(key))?.bytes ?? Buffer.alloc(0);
  const before = store.gets;
  const bytesOf = (at: number) => {
    const { offset, length } = places[at] as BlockPlace;
    return Uint8Array.from(whole.subarray(offset, offset + length));
  };
  const damaged = bytesOf(2);
  damaged.fill(7, 50, 51);
  const asked: number[][] = [];
  const near = {
    async read(objectKey: string, wanted: readonly BlockPlace[]) {
      assert.equal(objectKey, key);
      asked.push(wanted.map(({ offset }) => places.findIndex((one) => one.offset === offset)));
      return [bytesOf(0), null, damaged, bytesOf(3)];
    },
  };
  const tally = emptyReadTally();
  const blocks = fetcher.open(key, 0, near);

  const [found, joined] = await Promise.all([blocks.fetch(places, tally), blocks.fetch(places, tally)]);

  assert.deepEqual(
    found.map(({ raw }) => [raw.length, raw[0]]),
    [100, 200, 300, 400].map((length, at) => [length, at + 1]),
  );
  assert.deepEqual(joined, found);
  assert.deepEqual(asked, [[0, 1, 2, 3]]);
  assert.equal(store.gets - before, 2);
  assert.deepEqual([tally.storeGets, tally.diskReads], [2, 2]);
  assert.deepEqual(
    places.map(({ offset }, at) => warmCache.get(`${key}@${offset}`)?.length === bytesOf(at).length),
    [true, true, true, true],
  );
  await blocks.fetch(places, tally);
  assert.equal(asked.length, 1, 'memory has them now');
});

test('blocks of an object that was built a moment ago need neither store nor disk, and are on the disk afterwards', async () => {
  const { store, places, warmCache, cache } = await objectOf([100, 200, 300]);
  const whole = Buffer.from((await store.get(key))?.bytes ?? []);
  const before = store.gets;
  const fresh = new FreshObjects(new MemoryBudget(1e9), new FakeClock());
  const fetcher = new BlockFetcher({ store, warmCache, cache, fresh });
  const blocks = fetcher.open(key);
  blocks.keepFresh(whole);
  const tally = emptyReadTally();
  const [first, second, third] = places as [BlockPlace, BlockPlace, BlockPlace];

  assert.equal(blocks.isAtHand(first), true);
  assert.deepEqual(
    [blocks.cachedOrLocal(first, tally)?.raw.length, blocks.cached(first.offset)?.raw[0]],
    [100, 1],
  );
  assert.deepEqual(
    (await blocks.fetch([second, first], tally)).map(({ raw }) => raw.length),
    [200, 100],
  );
  assert.deepEqual([store.gets - before, tally], [0, emptyReadTally()]);
  assert.deepEqual(
    [...warmCache.entries.keys()],
    [first, second].map(({ offset }) => `${key}@${offset}`),
  );

  whole.fill(7, third.offset + 30, third.offset + 31);
  const [found] = await blocks.fetch([third], tally);
  assert.deepEqual([found?.raw.length, tally.storeGets], [300, 1], 'damage is read from the store');
  assert.equal(fresh.has(key), false);

  blocks.keepFresh(whole);
  fetcher.open(key).close();
  assert.equal(fresh.has(key), true, 'another reader, of a branch or a copy, leaves it to whoever kept it');
  blocks.close();
  assert.deepEqual([fresh.has(key), fresh.bytes], [false, 0]);
  blocks.keepFresh(whole);
  assert.equal(fresh.has(key), false, 'nobody would remove it any more');
});

test('a block of a fresh object goes to the disk once, though memory does not keep it', async () => {
  const { store, places, warmCache } = await objectOf([100]);
  const fresh = new FreshObjects(new MemoryBudget(1e9), new FakeClock());
  let puts = 0;
  const counting = {
    get: (name: string) => warmCache.get(name),
    has: (name: string) => warmCache.has(name),
    remove: (name: string) => warmCache.remove(name),
    put(name: string, bytes: Uint8Array) {
      puts++;
      warmCache.put(name, bytes);
    },
  };
  const blocks = new BlockFetcher({ store, warmCache: counting, cache: new BlockCache(0), fresh }).open(key);
  blocks.keepFresh(Buffer.from((await store.get(key))?.bytes ?? []));

  const tally = emptyReadTally();

  for (let n = 0; n < 3; n++) await blocks.fetch(places, tally);

  assert.deepEqual([puts, tally], [1, emptyReadTally()]);
});

test('a query that has read more from the store than is kept of one leaves the local disk as it is, until the next query', async () => {
  const { store, places, warmCache } = await objectOf([100, 100, 100, 100]);
  const bytesOf = (count: number) => places.slice(0, count).reduce((sum, { length }) => sum + length, 0);
  const keptBytesOfQueryMax = bytesOf(2);
  const blocks = new BlockFetcher({ store, warmCache, cache: new BlockCache(0), keptBytesOfQueryMax }).open(
    key,
  );
  const isKept = () => places.map(({ offset }) => warmCache.has(`${key}@${offset}`));
  const scan = emptyReadTally();

  for (const one of places) await blocks.fetchOne(one, scan);

  assert.equal(scan.storeBytes, bytesOf(4));
  assert.deepEqual(isKept(), [true, true, false, false]);
  await blocks.fetchOne(places[3] as BlockPlace, emptyReadTally());
  assert.deepEqual(isKept(), [true, true, false, true]);
  await blocks.fetchOne(places[2] as BlockPlace, { ...scan, keepsAll: true });
  assert.deepEqual(isKept(), [true, true, true, true]);
});

test('blocks further apart than the gap are separate GETs', async () => {
  const { blocks, places, store } = await objectOf([100, 100], { gap: coalesceGapBytesMax + 1 });

  await blocks.fetch(places, emptyReadTally());

  assert.equal(store.gets, 2);
});

test('more than one range bound of blocks takes several GETs', async () => {
  const size = 1024 * 1024;
  const { blocks, places, store } = await objectOf(Array.from({ length: 20 }, () => size));

  const found = await blocks.fetch(places, emptyReadTally());

  assert.equal(
    store.gets,
    Math.ceil((20 * (size + 24)) / (Math.floor(rangeBytesMax / (size + 24)) * (size + 24))),
  );
  assert.deepEqual(
    found.map((block) => block.raw[size - 1]),
    Array.from({ length: 20 }, (_, at) => at + 1),
  );
});

test('a block in memory costs no read and no promise', async () => {
  const { blocks, places, store } = await objectOf([1000]);
  const first = await blocks.fetchOne(places[0] as BlockPlace, emptyReadTally());
  const tally = emptyReadTally();

  const again = await blocks.fetchOne(places[0] as BlockPlace, tally);

  assert.equal(again, first);
  assert.equal(blocks.cached(0), first);
  assert.equal(store.gets, 1);
  assert.deepEqual(tally, emptyReadTally());
});

test('a block on local disk costs no read of the store', async () => {
  const { blocks, places, fetcher, store } = await objectOf([1000]);
  await blocks.fetchOne(places[0] as BlockPlace, emptyReadTally());
  blocks.close();
  const reopened = fetcher.open(key);

  assert.equal(reopened.cached(0), undefined);
  assert.equal(reopened.cachedOrLocal(places[0] as BlockPlace, emptyReadTally())?.raw[0], 1);
  assert.equal(store.gets, 1);
});

test('callers at the same time share one GET, which counts for the first', async () => {
  const { blocks, places, store } = await objectOf([1000, 1000]);
  const [first, second] = [emptyReadTally(), emptyReadTally()];

  const [a, b] = await Promise.all([blocks.fetch(places, first), blocks.fetch(places.slice(1), second)]);

  assert.equal(a[1], b[0]);
  assert.equal(store.gets, 1);
  assert.equal(first.storeGets + second.storeGets, 1);
});

test('a block asked for twice in one request is read once', async () => {
  const { blocks, places, store } = await objectOf([1000]);

  const found = await blocks.fetch([...places, ...places], emptyReadTally());

  assert.equal(found[0], found[1]);
  assert.equal(store.gets, 1);
});

test('damage on local disk is dropped and fetched again', async () => {
  const { blocks, places, fetcher, warmCache, store } = await objectOf([1000]);
  await blocks.fetchOne(places[0] as BlockPlace, emptyReadTally());
  const stored = warmCache.get(`${key}@0`) as Uint8Array;
  stored[500] = (stored[500] as number) ^ 1;

  const block = await fetcher.open(key).fetchOne(places[0] as BlockPlace, emptyReadTally());

  assert.deepEqual(block.raw, Buffer.alloc(1000, 1));
  assert.equal(store.gets, 2);
  assert.equal(warmCache.get(`${key}@0`)?.[500], 1);
});

test('damage on the way from the store is fetched once more', async () => {
  const { blocks, places, store } = await objectOf([1000, 1000]);
  store.spoil = (bytes) => {
    if (store.gets === 1) bytes[30] = 99;
    return bytes;
  };

  const found = await blocks.fetch(places, emptyReadTally());

  assert.deepEqual(
    found.map((block) => block.raw[999]),
    [1, 2],
  );
  assert.deepEqual(store.ranges.at(-1), places[0] && { offset: 0, length: places[0].length });
});

test('damage in the store is an error that names object and offset, and nothing is kept of it', async () => {
  const { blocks, places, store, warmCache } = await objectOf([1000, 1000]);
  store.spoil = (bytes) => Buffer.alloc(bytes.length, 7);

  await assert.rejects(blocks.fetch(places.slice(1), emptyReadTally()), (error: DataError) => {
    return error instanceof DataError && error.place === key && error.offset === places[1]?.offset;
  });

  assert.equal(store.gets, 2);
  assert.equal(warmCache.entries.size, 0);
});

test('an answer that is too short is damage', async () => {
  const { blocks, places, store } = await objectOf([1000]);
  store.spoil = (bytes) => bytes.subarray(0, 100);

  await assert.rejects(blocks.fetch(places, emptyReadTally()), DataError);
});

test('one damaged block does not fail the other readers of its range', async () => {
  const { blocks, places, store } = await objectOf([1000, 1000]);
  store.spoil = (bytes, range) => {
    const offset = range !== undefined && 'offset' in range ? range.offset : 0;
    const at = (places[1] as BlockPlace).offset + 100 - offset;
    if (at >= 0 && at < bytes.length) bytes[at] = 99;
    return bytes;
  };
  const both = blocks.fetch(places, emptyReadTally());
  const intact = blocks.fetch(places.slice(0, 1), emptyReadTally());

  await assert.rejects(both, DataError);
  assert.equal((await intact)[0]?.raw[0], 1);
});

test('an object that is gone is named, and asked for again by the next caller', async () => {
  const { blocks, places, store } = await objectOf([1000]);
  await store.delete(key);

  await assert.rejects(blocks.fetch(places, emptyReadTally()), MissingObjectError);
  await assert.rejects(blocks.fetch(places, emptyReadTally()), MissingObjectError);

  assert.equal(store.gets, 2);
});

test('memory stays within its bound and keeps what is used', async () => {
  const sizes = Array.from({ length: 50 }, () => 1000);
  const { blocks, places, cache } = await objectOf(sizes, { cacheBytes: 10 * 1400 });
  await blocks.fetchOne(places[0] as BlockPlace, emptyReadTally());

  for (const each of places.slice(1)) {
    assert.notEqual(blocks.cached(0), undefined);
    await blocks.fetchOne(each, emptyReadTally());
    assert.ok(cache.bytes <= 10 * 1400);
  }

  assert.equal(places.filter((each) => blocks.cached(each.offset) !== undefined).length, 10);
});

test('closing an object frees the memory of its blocks alone', async () => {
  const { blocks, places, cache, fetcher } = await objectOf([1000, 1000]);
  const other = fetcher.open(key);
  await blocks.fetch(places, emptyReadTally());
  await other.fetchOne(places[0] as BlockPlace, emptyReadTally());

  blocks.close();

  assert.equal(cache.bytes, 1400);
  assert.notEqual(other.cached(0), undefined);
});

test('a block larger than all memory is still read', async () => {
  const { blocks, places, cache } = await objectOf([1000], { cacheBytes: 500 });

  assert.equal((await blocks.fetchOne(places[0] as BlockPlace, emptyReadTally())).raw.length, 1000);
  assert.equal(cache.bytes, 0);
});

test('who reads much puts out its own blocks, and those that a neighbour uses now and then stay', async () => {
  const { places, fetcher, cache } = await objectOf(Array(400).fill(1_000), { cacheBytes: 100_000 });
  const [attacker, neighbour] = [fetcher.open(key, 1), fetcher.open(key, 2)];
  const tally = emptyReadTally();
  const own = places.slice(0, 20);
  await neighbour.fetch(own, tally);

  for (let read = 20; read < 400; read++) {
    await attacker.fetchOne(places[read] as BlockPlace, tally);
    // One of its blocks a hundred reads: it is there, and asks seldom.
    if (read % 50 === 0) neighbour.cached((own[0] as BlockPlace).offset);
  }

  assert.equal(own.filter(({ offset }) => neighbour.cached(offset) !== undefined).length, 20);
  assert.ok(cache.bytes <= 100_000);
});

test('what an owner does not use any more goes like everybody’s', async () => {
  const { places, fetcher } = await objectOf(Array(600).fill(1_000), { cacheBytes: 100_000 });
  const [busy, gone] = [fetcher.open(key, 1), fetcher.open(key, 2)];
  const tally = emptyReadTally();
  await gone.fetch(places.slice(0, 20), tally);

  for (let read = 20; read < 600; read++) await busy.fetchOne(places[read] as BlockPlace, tally);

  assert.equal(places.slice(0, 20).filter(({ offset }) => gone.cached(offset) !== undefined).length, 0);
});

test('what was derived from a block counts with it, goes with it, and is kept only where there is room', async () => {
  const { places, cache, blocks } = await objectOf([1_000, 1_000, 1_000], { cacheBytes: 6_000 });
  const [first, second, third] = places as [BlockPlace, BlockPlace, BlockPlace];
  const block = await blocks.fetchOne(first, emptyReadTally());
  const before = cache.bytes;

  blocks.addDerived(block, { bytes: 10_000 });
  assert.deepEqual([block.derived, cache.bytes], [null, before]);
  blocks.addDerived(block, { bytes: 3_000 });
  blocks.addDerived(block, { bytes: 100 });
  assert.deepEqual([block.derived, cache.bytes], [{ bytes: 3_000 }, before + 3_000]);

  const other = await blocks.fetchOne(second, emptyReadTally());
  await blocks.fetchOne(third, emptyReadTally());
  assert.ok(cache.bytes <= 6_000, `${cache.bytes} bytes`);
  assert.equal(blocks.cached(first.offset), undefined);
  assert.equal(block.derived, null);
  blocks.addDerived(block, { bytes: 10 });
  assert.equal(block.derived, null);

  blocks.addDerived(other, { bytes: 500 });
  blocks.close();
  assert.equal(cache.bytes, 0);
});
