import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readColumn } from '../../../actors/columns/column-block.ts';
import { openColumns } from '../../../actors/columns/columns-section.ts';
import { rowIndexes } from '../../../actors/compute/row-indexes.ts';
import { blocksPerReadMax } from '../../../actors/search/read-ahead.ts';
import {
  BlockCache,
  BlockFetcher,
  emptyReadTally,
  MissingObjectError,
} from '../../../actors/storage/block-fetch.ts';
import { documentId, documentIdBytes, documentText } from '../../../actors/storage/document-batch.ts';
import type { DocumentBlock } from '../../../actors/storage/document-block.ts';
import { groupByHash, orderByHash, wantIds } from '../../../actors/storage/hash-order.ts';
import { digestId, type IdDigestFunction, idDigestWords } from '../../../actors/storage/id-digest.ts';
import { type SegmentToc, sectionOf, segmentTocSchema } from '../../../actors/storage/segment-format.ts';
import { type DocumentPlace, readToc, SegmentReader } from '../../../actors/storage/segment-reader.ts';
import { SegmentWriter, type SegmentWriterOptions } from '../../../actors/storage/segment-writer.ts';
import { openTextIndex } from '../../../actors/text/text-index.ts';
import { openVectors } from '../../../actors/vector/vector-index-reader.ts';
import { storedCheck } from '../../../protocol/stored-schema.ts';
import { AssertionError, DataError } from '../../../src/base/assert.ts';
import { packMessage, unpackMessage } from '../../../src/base/msgpack.ts';
import {
  blocksNewestFirst,
  buildSegment,
  CountingStore,
  entryOf,
  findById,
  findCachedById,
  randomRows,
  seededRandom,
  type TestRow,
} from '../../support/segments.ts';

const key = 'ns/ab/n/segment/s';
const tally = () => emptyReadTally();

interface Opened {
  readonly store: CountingStore;
  readonly toc: SegmentToc;
  readonly reader: SegmentReader;
}

async function opened(
  rows: readonly TestRow[],
  options: SegmentWriterOptions & { cacheBytes?: number } = {},
): Promise<Opened> {
  const { toc, bytes } = await buildSegment(rows, options);
  const store = new CountingStore();
  await store.putIfAbsent(key, [bytes]);
  return { store, toc, reader: readerOf(store, toc, options) };
}

function readerOf(
  store: CountingStore,
  toc: SegmentToc,
  options: SegmentWriterOptions & { cacheBytes?: number } = {},
): SegmentReader {
  const cache = new BlockCache(options.cacheBytes ?? 1e9);
  const fetcher = new BlockFetcher({ store, warmCache: null, cache });
  return new SegmentReader(key, toc, fetcher);
}

function entryIn(block: DocumentBlock, index: number): Buffer {
  const offset = block.entryOffset(index);
  const end = index + 1 < block.rowCount ? block.entryOffset(index + 1) : block.buffer.length;
  return block.buffer.subarray(offset, end);
}

function assertIsRow(place: DocumentPlace | null | 'miss', row: number, rows: readonly TestRow[]): void {
  assert.ok(place !== null && place !== 'miss');
  const expected = rows[row] as TestRow;
  assert.equal(place.row, row);
  assert.equal(place.block.sequences[place.index], expected.sequence);
  assert.equal(place.block.writtenAt[place.index], expected.writtenAt);
  assert.deepEqual(entryIn(place.block, place.index), expected.entry);
}

async function allRows(reader: SegmentReader, below?: number): Promise<Buffer[]> {
  const entries: Buffer[] = [];
  for await (const block of blocksNewestFirst(reader, tally(), below === undefined ? {} : { below })) {
    for (let index = block.rowCount - 1; index >= 0; index--) entries.push(entryIn(block, index));
  }
  return entries;
}

test('random documents are found by id and by row, and scanned newest first', async (t) => {
  const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 1e9));
  t.diagnostic(`seed ${seed}`);
  for (const [count, documentBlockBytes] of [
    [1, 131072],
    [2, 64],
    [181, 2000],
    [183, 131072],
    [3000, 3000],
  ] as const) {
    const rows = randomRows(seed + count, count);
    const { reader, toc } = await opened(rows, { documentBlockBytes });

    assert.equal(toc.rowCount, count);
    assert.equal(toc.minSequence, rows[0]?.sequence);
    assert.equal(toc.maxSequence, rows.at(-1)?.sequence);
    for (let row = 0; row < count; row++) {
      assertIsRow(await findById(reader, (rows[row] as TestRow).id, tally()), row, rows);
      assertIsRow(await reader.readRow(row, tally()), row, rows);
      assertIsRow(findCachedById(reader, (rows[row] as TestRow).id), row, rows);
      assertIsRow(reader.rowCached(row, emptyReadTally()), row, rows);
      assert.equal(await findById(reader, `absent-${row}`, tally()), null);
    }
    assert.deepEqual(await allRows(reader), rows.map((row) => row.entry).reverse());
  }
});

test('a bulk look-up answers as single ones do, for present, absent and repeated ids', async (t) => {
  const seed = Math.floor(Math.random() * 1e9);
  t.diagnostic(`seed ${seed}`);
  const rows = randomRows(seed, 5000, { wordsMax: 10 });
  const random = seededRandom(seed);
  const rowOfId = new Map(rows.map((row, at) => [row.id, at]));
  const { reader, store } = await opened(rows, { documentBlockBytes: 4000 });
  const ids = Array.from({ length: 4000 }, () =>
    random() < 0.3 ? `absent-${random()}` : (rows[Math.floor(random() * rows.length)] as TestRow).id,
  );

  const found = await reader.findRows(wantIds(ids), tally());

  assert.deepEqual(
    [...found],
    ids.map((id) => rowOfId.get(id) ?? -1),
  );
  assert.ok(store.gets < 20, `${store.gets} GETs`);
  assert.deepEqual([...(await reader.findRows(wantIds([]), tally()))], []);
});

test('a cold point read is two GETs: a range of the ids index, and the document block', async () => {
  const rows = randomRows(7, 20_000, { wordsMax: 20 });
  const { store, toc } = await opened(rows);
  const ids = sectionOf(toc, 'ids');
  let moreThanTwo = 0;
  for (let row = 0; row < rows.length; row += 40) {
    const reader = readerOf(store, toc);
    const counted = emptyReadTally();
    store.gets = 0;

    assertIsRow(await findById(reader, (rows[row] as TestRow).id, counted), row, rows);

    assert.equal(counted.storeGets, store.gets);
    assert.ok(counted.storeBytes < 350_000, `${counted.storeBytes} bytes of ${ids?.length}`);
    if (store.gets !== 2) moreThanTwo++;
  }
  assert.ok(moreThanTwo <= 1, `${moreThanTwo} of 500 reads took more than two GETs`);
});

test('an absent id costs one cold GET', async () => {
  const rows = randomRows(8, 5000, { wordsMax: 5 });
  const { store, toc } = await opened(rows);
  const counted = emptyReadTally();

  assert.equal(await findById(readerOf(store, toc), 'nobody', counted), null);

  assert.equal(counted.storeGets, 1);
});

test('a warm point read needs no promise, and says so when it cannot know', async () => {
  const rows = randomRows(9, 500);
  const { reader } = await opened(rows);
  const { id } = rows[123] as TestRow;
  assert.equal(findCachedById(reader, id), 'miss');
  assert.equal(reader.rowCached(123, emptyReadTally()), 'miss');
  assert.equal(reader.blockCached(0, emptyReadTally()), 'miss');

  await findById(reader, id, tally());

  assertIsRow(findCachedById(reader, id), 123, rows);
});

/** Digests whose first 64 bits are `hash` of the id, and the rest what it always is. */
function digestBy(hash: (even: bigint) => bigint): IdDigestFunction {
  return (id, words, at) => {
    digestId(id, words, at);
    const first = hash((BigInt(words[at] as number) << 32n) | BigInt(words[at + 1] as number));
    words[at] = Number(first >> 32n);
    words[at + 1] = Number(first & 0xffff_ffffn);
  };
}

test('ids that share the first half of their digests are told apart, also across pages', async () => {
  const rows = randomRows(10, 1500, { wordsMax: 5 });
  const hashes: Record<string, (even: bigint) => bigint> = {
    'all the same': () => 0x1234_5678_9abc_def0n,
    'all the lowest': () => 0n,
    'all the highest': () => 0xffff_ffff_ffff_ffffn,
    'seven values': (even) => (even % 7n) << 60n,
    'crowded low down': (even) => even >> 50n,
    'crowded high up': (even) => 0xffff_ffff_ffff_ffffn - (even >> 45n),
  };
  for (const hash of Object.values(hashes)) {
    const digest = digestBy(hash);
    const { toc, store, reader } = await opened(rows, { digest, documentBlockBytes: 8000 });

    for (let row = 0; row < rows.length; row += 97) {
      assertIsRow(await findById(reader, (rows[row] as TestRow).id, tally(), digest), row, rows);
    }
    assert.equal(await findById(reader, 'absent', tally(), digest), null);
    const cold = readerOf(store, toc);
    const wanted = [...rows.slice(700, 720).map((row) => row.id), 'absent'];
    assert.deepEqual(
      [...(await cold.findRows(wantIds(wanted, digest), tally()))],
      [...Array.from({ length: 20 }, (_, at) => 700 + at), -1],
    );
  }
});

test('hashes that somebody chose cost more reads, never a wrong answer', async () => {
  const rows = randomRows(11, 40_000, { wordsMax: 1 });
  const digest = digestBy((even) => even >> (even & 31n));
  const { store, toc } = await opened(rows, { digest });
  for (let row = 0; row < rows.length; row += 1999) {
    const reader = readerOf(store, toc);
    const counted = emptyReadTally();

    assertIsRow(await findById(reader, (rows[row] as TestRow).id, counted, digest), row, rows);

    assert.ok(counted.storeGets <= 20, `${counted.storeGets} GETs`);
  }
});

test('the filter knows of all ids that are there, and of at least 99 in 100 that are not', async (t) => {
  const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 1e9));
  t.diagnostic(`seed ${seed}`);
  for (const count of [1, 40, 5000, 60_000]) {
    const rows = randomRows(seed, count, { wordsMax: 1 });
    const { reader, toc } = await opened(rows);
    const present = rows.map((row) => row.id);
    assert.deepEqual([...(await reader.findRows(wantIds(present), tally()))], [...rows.keys()]);
    const filterBytes = sectionOf(toc, 'filter')?.length ?? 0;
    assert.ok(filterBytes <= count * 1.6 + 100, `${filterBytes} bytes for ${count} ids`);

    const { store, toc: sameToc } = await opened(rows);
    const cold = readerOf(store, sameToc);
    await cold.blockIndex(tally());
    let passed = 0;
    for (let i = 0; i < 10_000; i++) {
      if (cold.findCached(wantIds([`absent-${seed}-${i}`]), 0, emptyReadTally()) === 'miss') passed++;
    }
    assert.ok(passed <= 100, `${passed} of 10,000 absent ids pass among ${count}`);
    assert.equal(cold.findCached(wantIds(present), 0, emptyReadTally()), 'miss');
  }
});

test('ids that are not there cost one read of the filter, and none after it', async () => {
  const rows = randomRows(31, 20_000, { wordsMax: 5 });
  const { store, toc } = await opened(rows);
  const reader = readerOf(store, toc);
  const absent = Array.from({ length: 50 }, (_, i) => `absent-${i}`);
  const first = emptyReadTally();
  await reader.findRows(wantIds(absent.slice(0, 1)), first);
  assert.equal(first.storeGets, 1);
  store.gets = 0;
  assert.deepEqual(
    [...(await reader.findRows(wantIds(absent), tally()))],
    absent.map(() => -1),
  );
  // One in 150 passes the filter and is looked for.
  assert.ok(store.gets <= 3, `${store.gets} GETs`);
});

test('scattered ids that are there are found without a document being read', async () => {
  const rows = randomRows(32, 30_000, { wordsMax: 100 });
  const { store, toc } = await opened(rows);
  const reader = readerOf(store, toc);
  const wanted = rows.filter((_, row) => row % 30 === 0);
  const counted = emptyReadTally();

  const found = await reader.findRows(wantIds(wanted.map((row) => row.id)), counted);

  assert.deepEqual(
    [...found],
    wanted.map((_, at) => at * 30),
  );
  const indexes = ['filter', 'ids'].map((name) => sectionOf(toc, name)?.length ?? 0);
  assert.ok(counted.storeBytes <= (indexes[0] ?? 0) + (indexes[1] ?? 0), `${counted.storeBytes} bytes`);
});

test('where two rows have one id the newest is found', async () => {
  const rows = [...randomRows(12, 10)];
  const twice = { ...(rows[3] as TestRow), sequence: 1000 };
  rows.push(twice);
  const { reader } = await opened(rows);

  assertIsRow(await findById(reader, twice.id, tally()), 10, rows);
  assert.deepEqual([...(await reader.findRows(wantIds([twice.id]), tally()))], [10]);
});

test('a memory too small for anything changes nothing but the number of reads', async () => {
  const rows = randomRows(13, 800);
  const { reader } = await opened(rows, { cacheBytes: 0, documentBlockBytes: 2000 });

  for (let row = 0; row < rows.length; row += 37) {
    assertIsRow(await findById(reader, (rows[row] as TestRow).id, tally()), row, rows);
  }
  assert.equal((await allRows(reader)).length, 800);
});

test('a scan that begins in the middle goes down from the block of its sequence', async () => {
  const rows = randomRows(14, 1000);
  const { reader } = await opened(rows, { documentBlockBytes: 2000 });
  const index = await reader.blockIndex(tally());

  const below = rows[500]?.sequence ?? 0;

  const entries = await allRows(reader, below);

  const block = index.blockOfSequence(below);
  assert.equal(entries.length, index.firstRow(block) + index.rowCount(block));
  assert.deepEqual(entries.at(-1), rows[0]?.entry);
  assert.equal(index.blockOfSequence(index.firstSequence(block)), block);
  assert.equal(index.blockOfSequence(index.firstSequence(block) - 1), block - 1);
  assert.equal(index.blockOfSequence(-1), 0);
  assert.equal((await reader.readBlock(block, tally())).firstRow, index.firstRow(block));
});

test('a scan reads ahead in few GETs, and one that knows it needs little reads little', async () => {
  const rows = randomRows(15, 20_000, { wordsMax: 100 });
  const { reader, store, toc } = await opened(rows, { documentBlockBytes: 20_000 });
  const blockCount = (await reader.blockIndex(tally())).count;
  store.gets = 0;
  await allRows(reader);
  assert.ok(store.gets <= 6 + blockCount / blocksPerReadMax, `${store.gets} GETs for ${blockCount} blocks`);

  const cold = readerOf(store, toc);
  const counted = emptyReadTally();
  for await (const block of blocksNewestFirst(cold, counted, { rows: 1 })) {
    assert.equal(block.firstRow + block.rowCount, rows.length);
    break;
  }
  assert.ok(counted.storeGets <= 3);
});

test('a scan whose read-ahead fails after the consumer stopped harms nobody', async () => {
  const { reader, store } = await opened(randomRows(16, 1000), { documentBlockBytes: 1000 });
  await reader.blockIndex(tally());
  let gets = 0;
  store.spoil = (bytes) => (++gets > 1 ? new Uint8Array(1) : bytes);

  for await (const block of blocksNewestFirst(reader, tally())) {
    assert.ok(block.rowCount > 0);
    break;
  }
  await new Promise((resolve) => setImmediate(resolve));
});

test('a document larger than a block has one of its own', async () => {
  const [small, other] = randomRows(17, 2);
  const id = 'large';
  const entry = entryOf({ id, text: Buffer.alloc(2_000_000, 'large '), meta: null, vector: null });
  const rows = [
    small as TestRow,
    { id, sequence: 50, writtenAt: 5, entry },
    { ...(other as TestRow), sequence: 60 },
  ];
  const { reader } = await opened(rows);

  const place = await findById(reader, id, tally());

  assertIsRow(place, 1, rows);
  assert.equal(place?.block.rowCount, 1);
  assert.equal(documentText(place.block.buffer, place.block.entryOffset(0))?.length, 2_000_000);
});

/** Roots as text: a Buffer or not makes no difference. */
function plain(toc: SegmentToc): object {
  const text = (root: Uint8Array | null) => root && Buffer.from(root).toString('hex');
  return { ...toc, sections: toc.sections.map((section) => ({ ...section, root: text(section.root) })) };
}

test('the table of contents is found by one GET of the tail, and is small', async () => {
  const { store, toc } = await opened(randomRows(18, 300));
  const counted = emptyReadTally();

  assert.deepEqual(plain(await readToc(store, key, counted)), plain(toc));

  assert.equal(counted.storeGets, 1);
  assert.ok(packMessage(toc).length < 700);
  assert.deepEqual(plain(storedCheck(segmentTocSchema)(unpackMessage(packMessage(toc)))), plain(toc));
});

test('a table of contents longer than the tail takes a second GET', async () => {
  const chunks: Uint8Array[] = [];
  const writer = new SegmentWriter(key, (chunk) => void chunks.push(chunk), { indexes: rowIndexes() });
  writer.add(1, 1, (randomRows(19, 1)[0] as TestRow).entry, 0);
  await writer.beginSection('trigrams');
  const block = await writer.appendBlock(77, Buffer.alloc(5000, 'abc'), { compress: true });
  writer.endSection({ entryCount: 5, pageBytes: 0, root: Buffer.alloc(100_000, 1) });
  const { toc, size } = await writer.finish();
  const store = new CountingStore();
  await store.putIfAbsent(key, chunks);
  const counted = emptyReadTally();

  const read = await readToc(store, key, counted);

  assert.equal(size, Buffer.concat(chunks).length);
  assert.equal(counted.storeGets, 2);
  assert.deepEqual(
    { ...sectionOf(read, 'trigrams'), root: null },
    { ...sectionOf(toc, 'trigrams'), root: null },
  );
  assert.equal(sectionOf(read, 'trigrams')?.root?.length, 100_000);
  const { raw } = await readerOf(store, read).blocks.fetchOne({ ...block, kind: 77 }, tally());
  assert.deepEqual(raw, Buffer.alloc(5000, 'abc'));
  assert.throws(() => readerOf(store, read).section('graphs'), DataError);
});

test('an object that is gone or is no segment is named', async () => {
  const store = new CountingStore();
  await assert.rejects(readToc(store, key, tally()), MissingObjectError);
  await store.putIfAbsent(key, [Buffer.alloc(10)]);
  await assert.rejects(readToc(store, key, tally()), DataError);
  await store.putIfAbsent('other', [Buffer.alloc(1000)]);
  await assert.rejects(readToc(store, 'other', tally()), DataError);
});

/** The one key that random rows have. */
async function readColumns(reader: SegmentReader): Promise<void> {
  const columns = await openColumns(reader, tally());
  if (columns === 'none') return;
  for (let chunk = 0; chunk < columns.chunkCount; chunk++) {
    const column = columns.column(chunk, 'n');
    if (column === null) continue;
    const { raw, offset } = await reader.blocks.fetchOne(column.place, tally());
    readColumn(raw, { name: reader.objectKey, offset });
  }
}

/** Every block of them. */
async function readVectors(reader: SegmentReader): Promise<void> {
  const index = await openVectors(reader, tally());
  if (index === 'none') return;
  const blocks = await reader.blocks.fetch(index.blocks, tally());
  for (const [at, block] of blocks.entries()) index.vectorsOf(block, index.blocks[at] ?? { count: 0 });
}

/** Every page of it. */
async function readTextIndex(reader: SegmentReader): Promise<void> {
  const index = await openTextIndex(reader, tally());
  for (let byte = 0; byte < 256; byte++) {
    const candidates = index.search({ kind: 'part', bytes: [byte] });
    while ((await candidates.next(tally())) !== null);
  }
}

/** The suite flips every tenth byte, beginning anywhere; SEGMENT_BYTES=all flips each. */
const flipStep = process.env.SEGMENT_BYTES === 'all' ? 1 : 10;

test('no flipped byte anywhere in a segment gives a wrong answer', async (t) => {
  const first = Math.floor(Math.random() * flipStep);
  t.diagnostic(`from byte ${first}, every ${flipStep}.`);
  const rows = randomRows(20, 30, { wordsMax: 12 });
  const { bytes } = await buildSegment(rows, { documentBlockBytes: 400 });
  let detected = 0;
  let trials = 0;
  for (let at = first; at < bytes.length; at += flipStep) {
    trials++;
    const spoiled = Buffer.from(bytes);
    spoiled[at] = (spoiled[at] as number) ^ (1 << ((at * 5) % 8));
    const store = new CountingStore();
    await store.putIfAbsent(key, [spoiled]);
    try {
      const reader = readerOf(store, await readToc(store, key, tally()));
      for (let row = 0; row < rows.length; row += 5) {
        assertIsRow(await findById(reader, (rows[row] as TestRow).id, tally()), row, rows);
      }
      assert.equal(await findById(reader, 'absent', tally()), null);
      assert.deepEqual(await allRows(reader), rows.map((row) => row.entry).reverse());
      await readTextIndex(reader);
      await readColumns(reader);
      await readVectors(reader);
    } catch (error) {
      assert.ok(error instanceof DataError, `byte ${at}: ${String(error)}`);
      detected++;
    }
  }
  assert.equal(detected, trials);
});

test('a truncated segment is an error, whatever its length', async () => {
  const rows = randomRows(21, 30, { wordsMax: 12 });
  const { bytes, toc } = await buildSegment(rows, { documentBlockBytes: 400 });
  for (let length = 0; length < bytes.length; length += 29) {
    const store = new CountingStore();
    await store.putIfAbsent(key, [bytes.subarray(0, length)]);
    const lookUps = readerOf(store, toc).findRows(wantIds(rows.map((row) => row.id)), tally());

    await assert.rejects(readToc(store, key, tally()), DataError);
    if (length < (sectionOf(toc, 'ids')?.offset ?? 0))
      await assert.rejects(allRows(readerOf(store, toc)), DataError);
    if (length < (sectionOf(toc, 'text')?.offset ?? 0)) await assert.rejects(lookUps, DataError);
    else await Promise.allSettled([lookUps]);
  }
});

test('a block of another place is not taken for the one that was asked for', async () => {
  const rows = randomRows(22, 200);
  const { bytes, toc } = await buildSegment(rows, { documentBlockBytes: 1000 });
  const store = new CountingStore();
  await store.putIfAbsent(key, [bytes]);
  const index = await readerOf(store, toc).blockIndex(tally());
  const first = index.place(0);
  const second = index.place(1);
  const swapped = Buffer.from(bytes);
  swapped.set(bytes.subarray(second.offset, second.offset + second.length), first.offset);
  const other = new CountingStore();
  await other.putIfAbsent(key, [swapped]);

  await assert.rejects(findById(readerOf(other, toc), (rows[0] as TestRow).id, tally()), DataError);
});

test('a whole segment that got under another key is not taken for the one that belongs there', async () => {
  const rows = randomRows(22, 200);
  const own = await buildSegment(rows);
  // The same rows under another key: every length and every offset is the same.
  const other = await buildSegment(rows, {}, `${key}2`);
  assert.deepEqual(other.toc, own.toc);
  const store = new CountingStore();
  await store.putIfAbsent(key, [other.bytes]);
  const { id } = rows[0] as TestRow;

  await assert.rejects(findById(readerOf(store, own.toc), id, tally()), DataError);
  await assert.rejects(allRows(readerOf(store, own.toc)), DataError);
  await assert.rejects(readToc(store, key, tally()), DataError);
});

test('rows out of order, sections out of order and empty segments are our bugs', async () => {
  const { entry } = randomRows(23, 1)[0] as TestRow;
  const writer = new SegmentWriter(key, () => {});
  await assert.rejects(new SegmentWriter(key, () => {}).finish(), AssertionError);
  writer.add(5, 1, entry, 0);
  assert.throws(() => writer.add(5, 1, entry, 0), AssertionError);
  await writer.beginSection('trigrams');
  assert.throws(() => writer.add(6, 1, entry, 0), AssertionError);
  await assert.rejects(writer.finish(), AssertionError);
});

test('a slow sink holds the writer up, and the bytes stay in order', async () => {
  const rows = randomRows(24, 500);
  const chunks: Uint8Array[] = [];
  let busy = false;
  const writer = new SegmentWriter(
    key,
    async (chunk) => {
      assert.equal(busy, false);
      busy = true;
      await new Promise((resolve) => setImmediate(resolve));
      busy = false;
      chunks.push(chunk);
    },
    { documentBlockBytes: 2000, indexes: rowIndexes() },
  );

  for (const row of rows) {
    const sent = writer.add(row.sequence, row.writtenAt, row.entry, 0);
    if (sent !== undefined) await sent;
  }
  await writer.finish();

  assert.deepEqual(Buffer.concat(chunks), (await buildSegment(rows, { documentBlockBytes: 2000 })).bytes);
});

test('the writer copies its rows: the caller may use the buffer again', async () => {
  const rows = randomRows(25, 50);
  const chunks: Uint8Array[] = [];
  const writer = new SegmentWriter(key, (chunk) => void chunks.push(chunk), { indexes: rowIndexes() });
  const buffer = Buffer.alloc(100_000);

  for (const row of rows) {
    buffer.fill(0).set(row.entry, 100);
    await writer.add(row.sequence, row.writtenAt, buffer, 100);
  }
  await writer.finish();

  assert.deepEqual(Buffer.concat(chunks), (await buildSegment(rows)).bytes);
});

test('hashes are ordered as numbers, equal ones by position', (t) => {
  const seed = Math.floor(Math.random() * 1e9);
  t.diagnostic(`seed ${seed}`);
  const random = seededRandom(seed);
  for (const count of [0, 1, 2, 1000, 1024, 1025, 20_000]) {
    const digests = Uint32Array.from(
      { length: (count + 5) * idDigestWords },
      () => random() * (random() < 0.5 ? 3 : 2 ** 32),
    );
    const hashAt = (at: number) =>
      (BigInt(digests[at * idDigestWords] as number) << 32n) |
      BigInt(digests[at * idDigestWords + 1] as number);
    const compare = (a: number, b: number) =>
      hashAt(a) === hashAt(b) ? a - b : hashAt(a) < hashAt(b) ? -1 : 1;

    const order = orderByHash(digests, count);

    const wanted = Array.from({ length: count }, (_, at) => at).sort(compare);
    assert.deepEqual([...order], wanted);
    // In groups, each row with its digest and its numbers.
    const [grouped, rows] = [digests.slice(), Uint32Array.from({ length: count }, (_, at) => at)];
    const twice = rows.map((row) => row * 2);
    const groups = groupByHash(grouped, count, [rows, twice]);
    const byGroups = orderByHash(grouped, count, { ranks: rows, groups });
    assert.deepEqual(
      Array.from(byGroups, (position) => rows[position]),
      wanted,
    );
    assert.ok(twice.every((number, position) => number === (rows[position] as number) * 2));
    for (let at = 0; at < count; at++) {
      const row = rows[at] as number;
      const words = digests.subarray(row * idDigestWords, (row + 1) * idDigestWords);
      assert.deepEqual(grouped.subarray(at * idDigestWords, (at + 1) * idDigestWords), words);
    }
  }
});

test('segments of this format keep their bytes', async () => {
  const folder = join(process.cwd(), 'test/golden');
  const rows = randomRows(100, 200, { wordsMax: 20 });
  const { bytes, toc } = await buildSegment(rows, { documentBlockBytes: 4096 });
  const expected = {
    toc: plain(toc),
    documents: rows.map((row) => ({ id: row.id, sequence: row.sequence, writtenAt: row.writtenAt })),
  };
  if (process.env.UPDATE_GOLDEN === '1') {
    writeFileSync(join(folder, 'segment-v9.bin'), bytes);
    writeFileSync(join(folder, 'segment-v9.json'), `${JSON.stringify(expected, null, 1)}\n`);
  }

  const golden = readFileSync(join(folder, 'segment-v9.bin'));
  const store = new CountingStore();
  await store.putIfAbsent(key, [golden]);
  const goldenToc = await readToc(store, key, tally());
  const documents: object[] = [];
  for await (const block of blocksNewestFirst(readerOf(store, goldenToc), tally())) {
    for (let index = block.rowCount - 1; index >= 0; index--) {
      documents.unshift({
        id: documentId(block.buffer, block.entryOffset(index)),
        sequence: block.sequences[index],
        writtenAt: block.writtenAt[index],
      });
    }
  }

  assert.deepEqual(
    { toc: plain(goldenToc), documents },
    JSON.parse(readFileSync(join(folder, 'segment-v9.json'), 'utf8')),
  );
  assert.deepEqual(golden, bytes);
  assert.ok(documentIdBytes(rows[0]?.entry ?? Buffer.alloc(16), 0).length > 0);
});
