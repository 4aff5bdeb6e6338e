import { DataError } from '../../src/base/assert.ts';
import { SingleFlight } from '../../src/base/single-flight.ts';
import type { ObjectStore } from '../../src/object-store/object-store.ts';
import {
  type Block,
  type BlockFetcher,
  type DiskTally,
  MissingObjectError,
  type ObjectBlocks,
  type ReadTally,
} from './block-fetch.ts';
import { BlockIndex } from './block-index.ts';
import { DocumentBlock } from './document-block.ts';
import type { WantedIds } from './hash-order.ts';
import { idDigestWords } from './id-digest.ts';
import { filterBlockOf, mayHold } from './id-filter.ts';
import { AscendingSearch, type IdSearch, type PageSource, type RowPlace, searchIds } from './id-index.ts';
import type { NearBlocks } from './near-blocks.ts';
import {
  type BlockPlace,
  blockEntry,
  blockKinds,
  decodeFooter,
  decodeToc,
  filterEntry,
  idEntry,
  pageCount,
  pagePlace,
  type SegmentSection,
  type SegmentToc,
  sectionOf,
  segmentFooterBytes,
} from './segment-format.ts';

/** A document found: its row, and its block in hand, so that reading it needs no second look-up. */
export interface DocumentPlace {
  readonly row: number;
  readonly block: DocumentBlock;
  /** The row's number in its block: `block.entryOffset(index)`, `block.sequences[index]`. */
  readonly index: number;
}

/** The table of contents and the footer of all but odd segments: one GET. */
const tailBytes = 64 * 1024;
/** Pages that one piece of a bulk look-up holds: 8 MB. */
const bulkPagesMax = 2_048;
const bulkIdsMax = 1_024;
/** A filter up to this size, of some 340,000 ids, is read as a whole, beside the index of the blocks where that is read. */
const wholeFilterBytesMax = 512 * 1024;

/** Reads the table of contents of a segment that no manifest describes. */
export async function readToc(store: ObjectStore, objectKey: string, tally: ReadTally): Promise<SegmentToc> {
  const get = async (range: { suffix: number } | { offset: number; length: number }) => {
    tally.storeGets++;
    const object = await store.get(objectKey, { range });
    if (object === null) throw new MissingObjectError(objectKey);
    tally.storeBytes += object.bytes.length;
    return object;
  };
  const tail = await get({ suffix: tailBytes });
  if (tail.bytes.length < segmentFooterBytes)
    throw new DataError(objectKey, 0, 'shorter than a segment footer');
  const place = decodeFooter(tail.bytes.subarray(-segmentFooterBytes), objectKey, tail.size);
  const start = tail.bytes.length - segmentFooterBytes - place.length;
  const record = start >= 0 ? tail.bytes.subarray(start, start + place.length) : (await get(place)).bytes;
  return decodeToc(record, objectKey);
}

/** An open segment. Methods named `…Cached` look in memory and on local disk only and make no promise. */
export class SegmentReader {
  readonly toc: SegmentToc;
  readonly #blocks: ObjectBlocks;
  readonly #ids: SegmentSection;
  readonly #filter: SegmentSection;
  readonly #index: SegmentSection;
  /** Not from the local disk: the page of the index lies there too. */
  readonly #filterInMemory = (page: number) =>
    this.#blocks.cached(this.#filter.offset + page * this.#filter.pageBytes)?.raw;
  readonly #loadingIndex = new SingleFlight<'index', BlockIndex>();
  #blockIndex: BlockIndex | null = null;

  /** `owner`: whose data it is, for the sharing of what blocks are kept. `near`: who may have its blocks nearer than the store. */
  constructor(
    objectKey: string,
    toc: SegmentToc,
    fetcher: BlockFetcher,
    owner = 0,
    near: NearBlocks | null = null,
  ) {
    this.toc = toc;
    this.#blocks = fetcher.open(objectKey, owner, near);
    this.#ids = this.section('ids');
    this.#filter = this.section('filter');
    this.#index = this.section('blocks');
  }

  get objectKey(): string {
    return this.#blocks.objectKey;
  }

  get rowCount(): number {
    return this.toc.rowCount;
  }

  /** The segment's blocks, for the readers of further sections. */
  get blocks(): ObjectBlocks {
    return this.#blocks;
  }

  /** The section of that name; `DataError` where the segment has none. */
  section(name: string): SegmentSection {
    const section = sectionOf(this.toc, name);
    if (section === null) throw new DataError(this.objectKey, 0, `no section ${name}`);
    return section;
  }

  close(): void {
    this.#blocks.close();
  }

  /**
   * Where the newest row with an id lies, null where there is none: the id is `wanted`'s `index`-th. Asks the filter where it
   * is in memory; reading it would take as long as reading the index.
   */
  async findRow(wanted: WantedIds, index: number, tally: ReadTally): Promise<RowPlace | null> {
    const at = index * idDigestWords;
    if (this.#filterSays(wanted, at, this.#filterInMemory) === 'absent') return null;
    const pages = new FetchedPages(this.#cachedPages(tally));
    let search = searchIds(this.#ids, wanted.words, at, pages);
    while (search.kind === 'need') {
      await this.#fetchPages(pageNumbers(search), pages, tally);
      search = searchIds(this.#ids, wanted.words, at, pages);
    }
    return search.matches.at(-1) ?? null;
  }

  /** Finds a row as `findRow` does, or answers `'miss'` where something is needed from the object store. */
  findCached(wanted: WantedIds, index: number, tally: DiskTally): RowPlace | null | 'miss' {
    const at = index * idDigestWords;
    if (this.#filterSays(wanted, at, this.#filterInMemory) === 'absent') return null;
    const search = searchIds(this.#ids, wanted.words, at, this.#cachedPages(tally));
    if (search.kind === 'need') return 'miss';
    return search.matches.at(-1) ?? null;
  }

  /** The newest row of each id, -1 where there is none. Reads no documents, and nothing but the filter for most others. */
  async findRows(wanted: WantedIds, tally: ReadTally): Promise<Int32Array> {
    const rows = new Int32Array(wanted.count).fill(-1);
    const passed = wanted.order.filter(await this.#passing(wanted, tally));
    for (let from = 0; from < passed.length; ) {
      from = await this.#searchPiece(passed, from, wanted, rows, tally);
    }
    return rows;
  }

  /** The document of a row that was found. */
  async readPlace(place: RowPlace, tally: ReadTally): Promise<DocumentPlace> {
    return this.#placeOf(await this.#blocks.fetchOne(documentsOf(place), tally), place.row);
  }

  placeCached(place: RowPlace, tally: DiskTally): DocumentPlace | 'miss' {
    const block = this.#blocks.cachedOrLocal(documentsOf(place), tally);
    return block === undefined ? 'miss' : this.#placeOf(block, place.row);
  }

  /** The document of a row. */
  async readRow(row: number, tally: ReadTally): Promise<DocumentPlace> {
    const index = await this.blockIndex(tally);
    const block = await this.#blocks.fetchOne(index.place(index.blockOfRow(row)), tally);
    return this.#placeOf(block, row);
  }

  rowCached(row: number, tally: DiskTally): DocumentPlace | 'miss' {
    if (this.#blockIndex === null) return 'miss';
    const block = this.blockCached(this.#blockIndex.blockOfRow(row), tally);
    if (block === 'miss') return 'miss';
    return { row, block, index: this.#indexIn(block, row) };
  }

  /** The index of the document blocks: one GET the first time, which may run beside other first reads. */
  async blockIndex(tally: ReadTally): Promise<BlockIndex> {
    return this.#blockIndex ?? this.#loadingIndex.run('index', () => this.#loadBlockIndex(tally));
  }

  /** As far as it was read before. */
  get blockIndexAtHand(): BlockIndex | null {
    return this.#blockIndex;
  }

  async readBlock(index: number, tally: ReadTally): Promise<DocumentBlock> {
    const blocks = await this.blockIndex(tally);
    return this.#documents(await this.#blocks.fetchOne(blocks.place(index), tally));
  }

  /** Blocks by their numbers, in that order; neighbours are one GET. */
  async readBlocks(indexes: readonly number[], tally: ReadTally): Promise<DocumentBlock[]> {
    const blocks = await this.blockIndex(tally);
    const places = indexes.map((index) => blocks.place(index));
    return (await this.#blocks.fetch(places, tally)).map((block) => this.#documents(block));
  }

  /** How many document blocks there are; null before their index was read. */
  get blockCount(): number | null {
    return this.#blockIndex?.count ?? null;
  }

  /** As stored: 0 where reading the block would take a read of the object store. */
  bytesAtHand(index: number): number {
    if (this.#blockIndex === null) return 0;
    const place = this.#blockIndex.place(index);
    return this.#blocks.isAtHand(place) ? place.length : 0;
  }

  blockCached(index: number, tally: DiskTally): DocumentBlock | 'miss' {
    if (this.#blockIndex === null) return 'miss';
    const block = this.#blocks.cachedOrLocal(this.#blockIndex.place(index), tally);
    return block === undefined ? 'miss' : this.#documents(block);
  }

  /** All blocks, oldest first, once: past the caches, for whoever reads everything and comes back to nothing. */
  async *blocksAscending(tally: ReadTally): AsyncGenerator<DocumentBlock, void, void> {
    const index = await this.blockIndex(tally);
    const places = Array.from({ length: index.count }, (_, at) => index.place(at));
    for await (const block of this.#blocks.stream(places, tally)) yield this.#documents(block);
  }

  async #loadBlockIndex(tally: ReadTally): Promise<BlockIndex> {
    const count = this.#index.entryCount;
    const places = Array.from({ length: pageCount(this.#index, blockEntry) }, (_, page) =>
      pagePlace(this.#index, blockEntry, page, blockKinds.blockIndex),
    );
    // Its neighbour comes with the same GET.
    const pages = await this.#blocks.fetch([...places, ...this.#wholeFilter()], tally);
    this.#blockIndex = new BlockIndex(
      count,
      pages.slice(0, places.length).map((page) => page.raw),
    );
    return this.#blockIndex;
  }

  /** The places of a small filter's pages; none where it is large. */
  #wholeFilter(): BlockPlace[] {
    if (this.#filter.length > wholeFilterBytesMax) return [];
    return Array.from({ length: pageCount(this.#filter, filterEntry) }, (_, page) => this.#filterPlace(page));
  }

  #filterPlace(page: number): BlockPlace {
    return pagePlace(this.#filter, filterEntry, page, blockKinds.filter);
  }

  /** What the filter says of the digest at `at`, as far as its pages are at hand. */
  #filterSays(
    { words }: WantedIds,
    at: number,
    pageAtHand: (page: number) => Buffer | undefined,
  ): 'absent' | 'maybe' | 'unknown' {
    const block = filterBlockOf(words, at, this.#filter.entryCount);
    const page = pageAtHand(Math.floor(block / filterEntry.perPage));
    if (page === undefined) return 'unknown';
    return mayHold(page, (block % filterEntry.perPage) * filterEntry.bytes, words, at) ? 'maybe' : 'absent';
  }

  /** Reads what is missing of the filter, and answers which ids pass it. */
  async #passing(wanted: WantedIds, tally: ReadTally): Promise<(index: number) => boolean> {
    const pages = new Map<number, Buffer>();
    const missing = new Set<number>();
    for (let index = 0; index < wanted.count; index++) {
      const block = filterBlockOf(wanted.words, index * idDigestWords, this.#filter.entryCount);
      const page = Math.floor(block / filterEntry.perPage);
      if (pages.has(page) || missing.has(page)) continue;
      const raw = this.#blocks.cachedOrLocal(this.#filterPlace(page), tally)?.raw;
      if (raw === undefined) missing.add(page);
      else pages.set(page, raw);
    }
    const whole = missing.size === 0 ? [] : this.#wholeFilter();
    const numbers = whole.length > 0 ? [...whole.keys()] : [...missing];
    const places = numbers.map((page) => this.#filterPlace(page));
    const blocks = await this.#blocks.fetch(places, tally);
    blocks.forEach((block, at) => {
      pages.set(numbers[at] as number, block.raw);
    });
    return (index) => this.#filterSays(wanted, index * idDigestWords, (page) => pages.get(page)) === 'maybe';
  }

  #cachedPages(tally: DiskTally): PageSource {
    return { page: (page) => this.#blocks.cachedOrLocal(this.#pagePlace(page), tally)?.raw };
  }

  #pagePlace(page: number): BlockPlace {
    return pagePlace(this.#ids, idEntry, page, blockKinds.ids);
  }

  async #fetchPages(wanted: readonly number[], pages: FetchedPages, tally: ReadTally): Promise<void> {
    const places = wanted.map((page) => this.#pagePlace(page));
    const blocks = await this.#blocks.fetch(places, tally);
    blocks.forEach((block, at) => {
      pages.set(wanted[at] as number, block.raw);
    });
  }

  /** Searches ids in the order of their hashes from `from` on, as many as one piece may; answers where it stopped. */
  async #searchPiece(
    order: Uint32Array,
    from: number,
    { words }: WantedIds,
    rows: Int32Array,
    tally: ReadTally,
  ): Promise<number> {
    const pages = new FetchedPages(this.#cachedPages(tally));
    const ascending = new AscendingSearch(this.#ids, pages);
    const settle = (id: number, needed: Set<number>): boolean => {
      const result: IdSearch = ascending.search(words, id * idDigestWords);
      if (result.kind === 'need') for (const page of pageNumbers(result)) needed.add(page);
      else rows[id] = result.matches.at(-1)?.row ?? -1;
      return result.kind === 'found';
    };
    let needed = new Set<number>();
    let open: number[] = [];
    let at = from;
    for (; at < order.length && at - from < bulkIdsMax && needed.size < bulkPagesMax; at++) {
      const id = order[at] as number;
      if (!settle(id, needed)) open.push(id);
    }
    while (open.length > 0) {
      await this.#fetchPages([...needed], pages, tally);
      const again = new Set<number>();
      open = open.filter((id) => !settle(id, again));
      needed = again;
    }
    return at;
  }

  #placeOf(block: Block, row: number): DocumentPlace {
    const documents = this.#documents(block);
    return { row, block: documents, index: this.#indexIn(documents, row) };
  }

  #indexIn(block: DocumentBlock, row: number): number {
    const index = row - block.firstRow;
    if (index >= 0 && index < block.rowCount) return index;
    throw new DataError(this.objectKey, 0, `row ${row} is not in the block that should hold it`);
  }

  /** Decoded once per block in memory. */
  #documents(block: Block): DocumentBlock {
    if (block.parsed instanceof DocumentBlock) return block.parsed;
    const documents = new DocumentBlock(block.raw, this.objectKey, block.offset, block.wasDecodedElsewhere);
    block.parsed = documents;
    return documents;
  }
}

/** Pages read for one look-up: they stay at hand even where the cache has no room for them. */
class FetchedPages implements PageSource {
  readonly #cached: PageSource;
  readonly #fetched = new Map<number, Buffer>();

  constructor(cached: PageSource) {
    this.#cached = cached;
  }

  page(page: number): Buffer | undefined {
    return this.#fetched.get(page) ?? this.#cached.page(page);
  }

  set(page: number, raw: Buffer): void {
    this.#fetched.set(page, raw);
  }
}

function pageNumbers(need: { readonly firstPage: number; readonly lastPage: number }): number[] {
  return Array.from({ length: need.lastPage - need.firstPage + 1 }, (_, at) => need.firstPage + at);
}

function documentsOf(place: RowPlace): BlockPlace {
  return { offset: place.blockOffset, length: place.blockLength, kind: blockKinds.documents };
}
