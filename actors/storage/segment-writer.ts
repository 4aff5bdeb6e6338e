import { limits } from '../../protocol/limits.ts';
import { assert } from '../../src/base/assert.ts';
import { type ViewedBytes, viewed } from '../../src/base/viewed-bytes.ts';
import type { ByteSink } from '../../src/object-store/put-once.ts';
import { documentEntryLength, documentIdBytes } from './document-batch.ts';
import { DocumentBlockBuilder } from './document-block.ts';
import { orderByHash } from './hash-order.ts';
import { digestId, type IdDigestFunction, idDigestWords } from './id-digest.ts';
import { addToFilter, filterBlockCount, filterBlockOf } from './id-filter.ts';
import {
  BlockOwner,
  blockEntry,
  blockKinds,
  encodeBlock,
  encodeTail,
  filterEntry,
  idEntry,
  pageBytesOf,
  type SegmentSection,
  type SegmentToc,
  segmentFormatVersion,
} from './segment-format.ts';

/** Stores a block of the section that is open, and answers its place in the object. */
export type AppendBlock = (
  kind: number,
  raw: Uint8Array,
  options: { readonly compress: boolean },
) => Promise<{ readonly offset: number; readonly length: number }>;

/** A further section, built while the rows come. */
export interface RowIndexWriter {
  readonly section: string;
  /** The next row: the entry at `offset` of `buffer`. */
  add(buffer: Buffer, offset: number): void;
  /** Whether it holds as much as it may: then `writePart` comes before the next row. */
  readonly isFull: boolean;
  /** Writes what was added since the last part; those blocks lie among the documents', whose index knows their places. */
  writePart(append: AppendBlock): Promise<void>;
  /** Writes what is left, and answers the section's root; null where the section holds nothing: then there is none. */
  finish(append: AppendBlock): Promise<Uint8Array | null>;
}

export interface SegmentWriterOptions {
  readonly indexes?: readonly RowIndexWriter[];
  readonly digest?: IdDigestFunction;
  /** Raw bytes of a document block. */
  readonly documentBlockBytes?: number;
  /** How many rows come, where that is known: memory for them is made once. */
  readonly rowsExpected?: number;
}

export interface FinishedSegment {
  readonly toc: SegmentToc;
  /** Bytes of the whole object. */
  readonly size: number;
  /** Whether two rows may have one id. */
  readonly hasEqualIds: boolean;
}

/** Row numbers fit an Int32Array, where -1 means none. */
const rowsMax = 0x7fff_ffff;
const rowsInitial = 1024;

/**
 * Builds one segment front to back. Order of calls: `add` per row, ascending by sequence; then, for each further
 * section, `beginSection`, `appendBlock`…, `endSection`; then `finish`. Whoever gets a promise awaits it before the
 * next call. Memory: one document block, 16 bytes a row and 20 bytes a block until `finish`, which needs 8 more a row for
 * sorting, and what the further indexes take.
 */
export class SegmentWriter {
  readonly #owner: BlockOwner;
  readonly #sink: ByteSink;
  readonly #digest: IdDigestFunction;
  readonly #documentBlockBytes: number;
  readonly #builder = new DocumentBlockBuilder();
  readonly #blocks = new BlockList();
  readonly #indexes: readonly RowIndexWriter[];
  readonly #sections: SegmentSection[] = [];
  /** Four words a row. */
  #digests: Uint32Array<ArrayBuffer>;
  #hasEqualIds = false;
  #rowCount = 0;
  #minSequence = 0;
  #maxSequence = -1;
  #docsRawBytes = 0;
  #offset = 0;
  /** Where the open section began, or null between sections. `docs` is open from the start. */
  #section: { readonly name: string; readonly offset: number; blockCount: number } | null = {
    name: 'docs',
    offset: 0,
    blockCount: 0,
  };

  /** `objectKey`: where the bytes will be stored; they read under no other. */
  constructor(objectKey: string, sink: ByteSink, options: SegmentWriterOptions = {}) {
    this.#owner = new BlockOwner(objectKey);
    this.#sink = sink;
    this.#indexes = options.indexes ?? [];
    this.#digest = options.digest ?? digestId;
    this.#digests = new Uint32Array((options.rowsExpected ?? rowsInitial) * idDigestWords);
    this.#documentBlockBytes = options.documentBlockBytes ?? limits.documentBlockBytes;
  }

  get rowCount(): number {
    return this.#rowCount;
  }

  /** Bytes handed to the sink so far. */
  get size(): number {
    return this.#offset;
  }

  /** Copies the entry at `offset` of `buffer` as the next row. `writtenAt` is in microseconds since 1970. */
  add(sequence: number, writtenAt: number, buffer: Buffer, offset: number): void | Promise<void> {
    assert(this.#section?.name === 'docs', () => 'rows come before other sections');
    assert(sequence > this.#maxSequence, () => `sequence ${sequence} after ${this.#maxSequence}`);
    assert(this.#rowCount < rowsMax, () => 'too many rows for one segment');
    const length = documentEntryLength(buffer, offset);
    const full = this.#builder.rowCount > 0 && this.#builder.rawBytesWith(length) > this.#documentBlockBytes;
    const sent = full ? this.#flushBlock() : undefined;
    this.#rememberId(documentIdBytes(buffer, offset));
    if (this.#rowCount === 0) this.#minSequence = sequence;
    this.#maxSequence = sequence;
    this.#builder.add(sequence, writtenAt, buffer, offset, length);
    this.#rowCount++;
    let written = sent;
    for (const index of this.#indexes) {
      index.add(buffer, offset);
      if (index.isFull) written = this.#writePart(index, written);
    }
    return written;
  }

  async #writePart(index: RowIndexWriter, before: void | Promise<void>): Promise<void> {
    await before;
    await index.writePart((kind, raw, options) => this.#append(kind, raw, options));
  }

  /** Opens a section of the caller's own blocks. `docs`, `blocks`, `filter` and `ids` are the writer's. */
  async beginSection(name: string): Promise<void> {
    await this.#closeDocuments();
    assert(this.#section === null, () => `section ${name} begins inside of another`);
    this.#section = { name, offset: this.#offset, blockCount: 0 };
  }

  /** The block's place in the object, for the section's own index. */
  async appendBlock(
    kind: number,
    raw: Uint8Array,
    options: { compress: boolean },
  ): Promise<{ offset: number; length: number }> {
    assert(this.#section !== null && this.#section.name !== 'docs', () => 'a block outside of a section');
    this.#section.blockCount++;
    return this.#append(kind, raw, options);
  }

  async #append(
    kind: number,
    raw: Uint8Array,
    options: { readonly compress: boolean },
  ): Promise<{ readonly offset: number; readonly length: number }> {
    const block = encodeBlock(kind, raw, { ...options, owner: this.#owner, offset: this.#offset });
    const place = { offset: this.#offset, length: block.length };
    await this.#send(block);
    return place;
  }

  endSection(details: { entryCount?: number; pageBytes?: number; root?: Uint8Array | null } = {}): void {
    const section = this.#section;
    assert(section !== null, () => 'no section is open');
    this.#sections.push({
      name: section.name,
      offset: section.offset,
      length: this.#offset - section.offset,
      entryCount: details.entryCount ?? section.blockCount,
      pageBytes: details.pageBytes ?? 0,
      root: details.root ?? null,
    });
    this.#section = null;
  }

  /** Writes the indexes, the table of contents and the footer. At least one row was added. */
  async finish(): Promise<FinishedSegment> {
    await this.#closeDocuments();
    assert(this.#rowCount > 0, () => 'a segment without rows');
    await this.#writePages(
      'blocks',
      blockKinds.blockIndex,
      blockEntry,
      this.#blocks.count,
      ({ view }, at, entry) => this.#blocks.writeEntry(view, at, entry),
    );
    await this.#writeFilter();
    await this.#writeIds();
    for (const index of this.#indexes) await this.#finishIndex(index);
    const toc: SegmentToc = {
      formatVersion: segmentFormatVersion,
      rowCount: this.#rowCount,
      minSequence: this.#minSequence,
      maxSequence: this.#maxSequence,
      docsRawBytes: this.#docsRawBytes,
      sections: this.#sections,
    };
    await this.#send(encodeTail(toc, this.#offset, this.#owner.objectKey));
    return { toc, size: this.#offset, hasEqualIds: this.#hasEqualIds };
  }

  async #closeDocuments(): Promise<void> {
    if (this.#section?.name !== 'docs') return;
    if (this.#builder.rowCount > 0) await this.#flushBlock();
    this.endSection();
  }

  #flushBlock(): void | Promise<void> {
    const { rowCount, firstSequence } = this.#builder;
    const firstRow = this.#rowCount - rowCount;
    const raw = this.#builder.build(firstRow);
    const place = { owner: this.#owner, offset: this.#offset };
    const block = encodeBlock(blockKinds.documents, raw, { compress: true, ...place });
    this.#blocks.add({ firstRow, rowCount, firstSequence, offset: this.#offset, length: block.length });
    this.#docsRawBytes += raw.length;
    if (this.#section !== null) this.#section.blockCount++;
    return this.#send(block);
  }

  #send(chunk: Uint8Array): void | Promise<void> {
    this.#offset += chunk.length;
    return this.#sink(chunk);
  }

  #rememberId(id: Uint8Array): void {
    const at = this.#rowCount * idDigestWords;
    if (at === this.#digests.length) this.#digests = grown(this.#digests);
    this.#digest(id, this.#digests, at);
  }

  async #writeFilter(): Promise<void> {
    const count = filterBlockCount(this.#rowCount);
    const filter = new Uint8Array(count * filterEntry.bytes);
    const digests = this.#digests;
    for (let row = 0; row < this.#rowCount; row++) {
      const at = row * idDigestWords;
      addToFilter(filter, filterBlockOf(digests, at, count) * filterEntry.bytes, digests, at);
    }
    await this.#writePages('filter', blockKinds.filter, filterEntry, count, ({ bytes }, at, entry) =>
      bytes.set(filter.subarray(entry * filterEntry.bytes, (entry + 1) * filterEntry.bytes), at),
    );
  }

  async #finishIndex(index: RowIndexWriter): Promise<void> {
    await this.beginSection(index.section);
    const root = await index.finish((kind, raw, options) => this.appendBlock(kind, raw, options));
    if (root === null) this.#section = null;
    else this.endSection({ root });
  }

  async #writeIds(): Promise<void> {
    const digests = this.#digests;
    const order = orderByHash(digests, this.#rowCount);
    const blockOfRow = this.#blocks.blockOfRows(this.#rowCount);
    this.#hasEqualIds = hasEqualHashes(digests, order);
    await this.#writePages('ids', blockKinds.ids, idEntry, this.#rowCount, ({ view }, at, entry) => {
      const row = order[entry] as number;
      for (let word = 0; word < idDigestWords; word++) {
        view.setUint32(at + idEntry.digest + word * 4, digests[row * idDigestWords + word] as number);
      }
      view.setUint32(at + idEntry.row, row, true);
      this.#blocks.writePlace(view, at + idEntry.offset, blockOfRow[row] as number);
    });
  }

  /** A section of `count` fixed-width entries in pages that are not compressed. */
  async #writePages(
    name: string,
    kind: number,
    entry: { readonly bytes: number; readonly perPage: number },
    count: number,
    write: (page: ViewedBytes, at: number, entry: number) => void,
  ): Promise<void> {
    await this.beginSection(name);
    for (let first = 0; first < count; first += entry.perPage) {
      const inPage = Math.min(entry.perPage, count - first);
      const page = viewed(Buffer.allocUnsafe(inPage * entry.bytes));
      for (let i = 0; i < inPage; i++) write(page, i * entry.bytes, first + i);
      await this.appendBlock(kind, page.bytes, { compress: false });
    }
    this.endSection({ entryCount: count, pageBytes: pageBytesOf(entry) });
  }
}

interface BlockRow {
  readonly firstRow: number;
  readonly rowCount: number;
  readonly firstSequence: number;
  readonly offset: number;
  readonly length: number;
}

/** The document blocks written so far. */
class BlockList {
  readonly #rows: BlockRow[] = [];

  get count(): number {
    return this.#rows.length;
  }

  add(row: BlockRow): void {
    this.#rows.push(row);
  }

  writeEntry(page: DataView, at: number, index: number): void {
    const row = this.#rows[index] as BlockRow;
    page.setUint32(at + blockEntry.firstRow, row.firstRow, true);
    page.setUint32(at + blockEntry.rowCount, row.rowCount, true);
    page.setFloat64(at + blockEntry.firstSequence, row.firstSequence, true);
    this.writePlace(page, at + blockEntry.offset, index);
  }

  /** u48 offset and u32 length, as both indexes hold them. */
  writePlace(page: DataView, at: number, index: number): void {
    const { offset, length } = this.#rows[index] as BlockRow;
    const high = Math.floor(offset / 2 ** 32);
    page.setUint32(at, offset - high * 2 ** 32, true);
    page.setUint16(at + 4, high, true);
    page.setUint32(at + 6, length, true);
  }

  blockOfRows(rowCount: number): Uint32Array {
    const blockOfRow = new Uint32Array(rowCount);
    this.#rows.forEach((row, index) => {
      blockOfRow.fill(index, row.firstRow, row.firstRow + row.rowCount);
    });
    return blockOfRow;
  }
}

/** `order`: places of the digests by rising hash. */
function hasEqualHashes(digests: Uint32Array, order: Uint32Array): boolean {
  for (let at = 1; at < order.length; at++) {
    const before = (order[at - 1] as number) * idDigestWords;
    const place = (order[at] as number) * idDigestWords;
    if (digests[before] === digests[place] && digests[before + 1] === digests[place + 1]) return true;
  }
  return false;
}

function grown(array: Uint32Array<ArrayBuffer>): Uint32Array<ArrayBuffer> {
  const larger = new Uint32Array(Math.max(rowsInitial, array.length * 2));
  larger.set(array);
  return larger;
}
