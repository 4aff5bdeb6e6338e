/** Documents, segments and a counting store for the tests of the storage engine. */
import { rowIndexes } from '../../actors/compute/row-indexes.ts';
import { AllBlocks } from '../../actors/search/all-blocks.ts';
import { readAhead } from '../../actors/search/read-ahead.ts';
import { emptyReadTally, type ReadTally } from '../../actors/storage/block-fetch.ts';
import { encodeDocument, encodedDocumentLength } from '../../actors/storage/document-batch.ts';
import type { DocumentBlock } from '../../actors/storage/document-block.ts';
import { wantIdForNow, wantIds } from '../../actors/storage/hash-order.ts';
import type { IdDigestFunction } from '../../actors/storage/id-digest.ts';
import type { SegmentToc } from '../../actors/storage/segment-format.ts';
import type { DocumentPlace, SegmentReader } from '../../actors/storage/segment-reader.ts';
import { SegmentWriter, type SegmentWriterOptions } from '../../actors/storage/segment-writer.ts';
import { noTombstones } from '../../actors/storage/tombstones.ts';
import { MemoryObjectStore } from '../../src/object-store/memory-object-store.ts';
import type { ByteRange, GetOptions, StoredObject } from '../../src/object-store/object-store.ts';

export interface TestRow {
  readonly id: string;
  readonly sequence: number;
  readonly writtenAt: number;
  readonly entry: Buffer;
}

/** Mulberry32: a small seeded generator, 0 ≤ x < 1. */
export function seededRandom(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const words = 'fence epoch commit segment log tide harbour Größe 潮汐 query index block page'.split(' ');

export function randomText(random: () => number, wordCount: number): string {
  return Array.from({ length: wordCount }, () => words[Math.floor(random() * words.length)]).join(' ');
}

/** Rows of many shapes: without text, meta or vector, tiny and large, sequences with gaps. */
export function randomRows(seed: number, count: number, options: { wordsMax?: number } = {}): TestRow[] {
  const random = seededRandom(seed);
  const wordsMax = options.wordsMax ?? 60;
  let sequence = 0;
  return Array.from({ length: count }, (_, at) => {
    sequence += 1 + Math.floor(random() * 3);
    const text = random() < 0.1 ? null : Buffer.from(randomText(random, Math.floor(random() * wordsMax)));
    const meta = random() < 0.5 ? null : Buffer.from(JSON.stringify({ n: Math.floor(random() * 1000) }));
    const vector = random() < 0.8 ? null : Float32Array.from({ length: 8 }, () => random());
    const id = `${random() < 0.2 ? 'größe' : 'doc'}-${at}-${Math.floor(random() * 1e6)}`;
    return {
      id,
      sequence,
      writtenAt: 1.7e15 + at,
      entry: entryOf({ id, text, meta, vector }),
    };
  });
}

export function entryOf(parts: Parameters<typeof encodeDocument>[0]): Buffer {
  const entry = Buffer.alloc(encodedDocumentLength(parts));
  encodeDocument(parts, entry, 0);
  return entry;
}

export async function buildSegment(
  rows: readonly TestRow[],
  options: SegmentWriterOptions = {},
  objectKey = 'ns/ab/n/segment/s',
): Promise<{ toc: SegmentToc; bytes: Buffer }> {
  const chunks: Uint8Array[] = [];
  const indexes = rowIndexes();
  const writer = new SegmentWriter(objectKey, (chunk) => void chunks.push(chunk), { indexes, ...options });
  for (const row of rows) await writer.add(row.sequence, row.writtenAt, row.entry, 0);
  const { toc } = await writer.finish();
  return { toc, bytes: Buffer.concat(chunks) };
}

/** The document with an id, as a single read finds it. */
export async function findById(
  reader: SegmentReader,
  id: string,
  tally: ReadTally,
  digest?: IdDigestFunction,
): Promise<DocumentPlace | null> {
  const place = await reader.findRow(wantIds([id], digest), 0, tally);
  return place && reader.readPlace(place, tally);
}

export function findCachedById(reader: SegmentReader, id: string): DocumentPlace | null | 'miss' {
  const place = reader.findCached(wantIdForNow(id), 0, emptyReadTally());
  return place === null || place === 'miss' ? place : reader.placeCached(place, emptyReadTally());
}

/** The document blocks of one segment, newest first, as a search that has no condition reads them. */
export async function* blocksNewestFirst(
  reader: SegmentReader,
  tally: ReadTally,
  { below = Number.POSITIVE_INFINITY, rows = Number.POSITIVE_INFINITY } = {},
): AsyncGenerator<DocumentBlock, void, void> {
  const segment = { id: reader.objectKey, size: 0, reader, tombstones: noTombstones, graphs: null };
  const blocks = new AllBlocks([segment], { below, rows, tally });
  for await (const { block } of readAhead(blocks, tally, { waitFor: (read) => read })) yield block;
}

/** A memory store that counts GETs and can spoil what it gives. */
export class CountingStore extends MemoryObjectStore {
  gets = 0;
  getBytes = 0;
  readonly ranges: (ByteRange | undefined)[] = [];
  /** Called with each GET's bytes, a copy; may change or replace them. */
  spoil: (bytes: Uint8Array, range: ByteRange | undefined) => Uint8Array = (bytes) => bytes;

  override async get(key: string, options?: GetOptions): Promise<StoredObject | null> {
    this.gets++;
    this.ranges.push(options?.range);
    const object = await super.get(key, options);
    if (object === null) return null;
    this.getBytes += object.bytes.length;
    return { ...object, bytes: this.spoil(object.bytes, options?.range) };
  }
}
