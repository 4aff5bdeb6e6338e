import { assert } from '../../src/base/assert.ts';
import { type ViewedBytes, viewed } from '../../src/base/viewed-bytes.ts';
import type { ByteSink } from '../../src/object-store/put-once.ts';
import { documentEntryLength, documentHeadBytes, documentTextStart } from './document-batch.ts';
import { DocumentPacker, type PackedDocuments } from './document-packer.ts';
import { groupByHash, orderByHash } from './hash-order.ts';
import { type IdDigestFunction, idDigestWords } from './id-digest.ts';
import { IdDigests } from './id-digests.ts';
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
  sealBlock,
  sealInPlace,
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

/**
 * Builds one segment front to back. Order of calls: `add` per row, ascending by sequence, or `index` per row where blocks of
 * documents come packed, by `addBlock`, each after its rows; then, for each further section, `beginSection`, `appendBlock`…, `endSection`; then `finish`. Whoever gets a promise awaits it before the
 * next call. Memory: one document block, 16 bytes a row and 20 bytes a block until `finish`, which needs 12 more a row for
 * sorting, and what the further indexes take.
 */
export class SegmentWriter {
  readonly #owner: BlockOwner;
  readonly #sink: ByteSink;
  readonly #packer: DocumentPacker;
  readonly #blocks = new BlockList();
  readonly #indexes: readonly RowIndexWriter[];
  readonly #sections: SegmentSection[] = [];
  readonly #ids: IdDigests;
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
    const { rowsExpected, digest } = options;
    this.#ids = new IdDigests({ rowsExpected, digest });
    this.#packer = new DocumentPacker(options.documentBlockBytes);
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
    const length = documentEntryLength(buffer, offset);
    const full = this.#packer.makeRoom(length);
    const sent = full === null ? undefined : this.#storeBlock(full, sealBlock);
    const written = this.#index(sequence, buffer, offset, sent);
    this.#packer.add(sequence, writtenAt, buffer, offset, length);
    return written;
  }

  /** Takes the entry at `offset` of `buffer` as the next row, whose block comes packed, by `addBlock`. */
  index(sequence: number, buffer: Buffer, offset: number): void | Promise<void> {
    return this.#index(sequence, buffer, offset, undefined);
  }

  /**
   * Stores a packed block of rows that were indexed; such blocks come in the order of their rows. In front of its bytes there is room for
   * a header, which is written to. The sink is given that memory until it has taken it, and not to keep.
   */
  addBlock(block: PackedDocuments): void | Promise<void> {
    assert(this.#section?.name === 'docs', () => 'documents come before other sections');
    return this.#storeBlock(block, sealInPlace);
  }

  /** Takes a row into everything but its block. `before`: what is being written. */
  #index(
    sequence: number,
    buffer: Buffer,
    offset: number,
    before: void | Promise<void>,
  ): void | Promise<void> {
    assert(this.#section?.name === 'docs', () => 'rows come before other sections');
    assert(sequence > this.#maxSequence, () => `sequence ${sequence} after ${this.#maxSequence}`);
    assert(this.#rowCount < rowsMax, () => 'too many rows for one segment');
    this.#ids.add(buffer, offset + documentHeadBytes, documentTextStart(buffer, offset));
    if (this.#rowCount === 0) this.#minSequence = sequence;
    this.#maxSequence = sequence;
    this.#rowCount++;
    let written = before;
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
      ({ view }, first, entries) => this.#blocks.writeEntries(view, first, entries),
    );
    await this.#writeIdSections();
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
    const last = this.#packer.end();
    if (last !== null) await this.#storeBlock(last, sealBlock);
    const stored = this.#blocks.rowCount;
    assert(stored === this.#rowCount, () => `blocks have ${stored} of ${this.#rowCount} rows`);
    this.endSection();
  }

  #storeBlock(packed: PackedDocuments, seal: typeof sealBlock): void | Promise<void> {
    const { firstRow, rowCount, firstSequence, rawLength } = packed;
    const block = seal(blockKinds.documents, packed, { owner: this.#owner, offset: this.#offset });
    this.#blocks.add({ firstRow, rowCount, firstSequence, offset: this.#offset, length: block.length });
    this.#docsRawBytes += rawLength;
    if (this.#section !== null) this.#section.blockCount++;
    return this.#send(block);
  }

  #send(chunk: Uint8Array): void | Promise<void> {
    this.#offset += chunk.length;
    return this.#sink(chunk);
  }

  async #writeIdSections(): Promise<void> {
    const digests = this.#ids.all();
    const rows = new Uint32Array(this.#rowCount);
    for (let row = 0; row < rows.length; row++) rows[row] = row;
    const blocks = this.#blocks.ofRows();
    const groups = groupByHash(digests, this.#rowCount, [rows, blocks]);
    await this.#writeFilter(digests);
    const order = orderByHash(digests, this.#rowCount, { ranks: rows, groups });
    await this.#writeIds({ digests, order, rows, blocks, places: this.#blocks.places() });
  }

  async #writeFilter(digests: Uint32Array): Promise<void> {
    const count = filterBlockCount(this.#rowCount);
    const filter = new Uint8Array(count * filterEntry.bytes);
    for (let row = 0; row < this.#rowCount; row++) {
      const at = row * idDigestWords;
      addToFilter(filter, filterBlockOf(digests, at, count) * filterEntry.bytes, digests, at);
    }
    await this.#writePages('filter', blockKinds.filter, filterEntry, count, ({ bytes }, first, entries) =>
      bytes.set(filter.subarray(first * filterEntry.bytes, (first + entries) * filterEntry.bytes)),
    );
  }

  async #finishIndex(index: RowIndexWriter): Promise<void> {
    await this.beginSection(index.section);
    const root = await index.finish((kind, raw, options) => this.appendBlock(kind, raw, options));
    if (root === null) this.#section = null;
    else this.endSection({ root });
  }

  async #writeIds(ids: IdRows): Promise<void> {
    await this.#writePages('ids', blockKinds.ids, idEntry, this.#rowCount, ({ view }, first, entries) => {
      if (writeIdEntries(view, ids, { first, end: first + entries })) this.#hasEqualIds = true;
    });
  }

  /** A section of `count` fixed-width entries in pages that are not compressed. */
  async #writePages(
    name: string,
    kind: number,
    entry: { readonly bytes: number; readonly perPage: number },
    count: number,
    write: (page: ViewedBytes, first: number, entries: number) => void,
  ): Promise<void> {
    await this.beginSection(name);
    const page = viewed(Buffer.allocUnsafe(Math.min(entry.perPage, count) * entry.bytes));
    for (let first = 0; first < count; first += entry.perPage) {
      const inPage = Math.min(entry.perPage, count - first);
      write(page, first, inPage);
      await this.appendBlock(kind, page.bytes.subarray(0, inPage * entry.bytes), { compress: false });
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
  #rowCount = 0;

  get count(): number {
    return this.#rows.length;
  }

  /** Rows of all blocks. */
  get rowCount(): number {
    return this.#rowCount;
  }

  add(row: BlockRow): void {
    assert(row.firstRow === this.#rowCount, () => `a block of row ${row.firstRow} behind ${this.#rowCount}`);
    this.#rows.push(row);
    this.#rowCount += row.rowCount;
  }

  /** Writes the entries of `count` blocks, from the one of number `first` on, to a page of the index. */
  writeEntries(page: DataView, first: number, count: number): void {
    for (const [index, row] of this.#rows.slice(first, first + count).entries()) {
      const at = index * blockEntry.bytes;
      const [low, high] = halvesOf(row.offset);
      page.setUint32(at + blockEntry.firstRow, row.firstRow, true);
      page.setUint32(at + blockEntry.rowCount, row.rowCount, true);
      page.setFloat64(at + blockEntry.firstSequence, row.firstSequence, true);
      page.setUint32(at + blockEntry.offset, low, true);
      page.setUint16(at + blockEntry.offset + 4, high, true);
      page.setUint32(at + blockEntry.length, row.length, true);
    }
  }

  /** The number of each row's block. */
  ofRows(): Uint32Array {
    const blocks = new Uint32Array(this.#rowCount);
    for (const [index, { firstRow, rowCount }] of this.#rows.entries())
      blocks.fill(index, firstRow, firstRow + rowCount);
    return blocks;
  }

  places(): BlockPlaces {
    const count = this.#rows.length;
    const places = {
      low: new Uint32Array(count),
      high: new Uint16Array(count),
      length: new Uint32Array(count),
    };
    for (const [index, { offset, length }] of this.#rows.entries()) {
      [places.low[index], places.high[index]] = halvesOf(offset);
      places.length[index] = length;
    }
    return places;
  }
}

/** Where blocks lie, by their numbers. */
interface BlockPlaces {
  /** Each block's offset in the object, as the lower 32 bits and the upper 16, and its length. */
  readonly low: Uint32Array;
  readonly high: Uint16Array;
  readonly length: Uint32Array;
}

function halvesOf(offset: number): readonly [number, number] {
  const high = Math.floor(offset / 2 ** 32);
  return [offset - high * 2 ** 32, high];
}

interface IdRows {
  /** Digests of the rows' ids, four words a position. */
  readonly digests: Uint32Array;
  /** Positions by rising hash. */
  readonly order: Uint32Array;
  /** The row of each position, and the number of its block. */
  readonly rows: Uint32Array;
  readonly blocks: Uint32Array;
  readonly places: BlockPlaces;
}

/** Writes a page of entries; answers whether one of them has the hash of the one before it. Hot: once a row. */
function writeIdEntries(
  page: DataView,
  { digests, order, rows, blocks, places }: IdRows,
  { first, end }: { readonly first: number; readonly end: number },
): boolean {
  const { low, high, length } = places;
  let areEqual = false;
  let before = (order[Math.max(0, first - 1)] as number) * idDigestWords;
  for (let entry = first, at = 0; entry < end; entry++, at += idEntry.bytes) {
    const position = order[entry] as number;
    const digest = position * idDigestWords;
    const isEqual = digests[digest] === digests[before] && digests[digest + 1] === digests[before + 1];
    areEqual ||= isEqual && entry > 0;
    before = digest;
    for (let word = 0; word < idDigestWords; word++)
      page.setUint32(at + idEntry.digest + word * 4, digests[digest + word] as number);
    const block = blocks[position] as number;
    page.setUint32(at + idEntry.row, rows[position] as number, true);
    page.setUint32(at + idEntry.offset, low[block] as number, true);
    page.setUint16(at + idEntry.offset + 4, high[block] as number, true);
    page.setUint32(at + idEntry.length, length[block] as number, true);
  }
  return areEqual;
}
