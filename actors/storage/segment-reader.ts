import { DataError } from '../../src/base/assert.ts';
import { xxh64 } from '../../src/base/hash.ts';
import { SingleFlight } from '../../src/base/single-flight.ts';
import type { ObjectStore } from '../../src/object-store/object-store.ts';
import {
  type Block,
  type BlockFetcher,
  MissingObjectError,
  type ObjectBlocks,
  type ReadReport,
} from './block-fetch.ts';
import { BlockIndex } from './block-index.ts';
import { DocumentBlock } from './document-block.ts';
import { type HashFunction, orderByHash, splitHash } from './hash-order.ts';
import { AscendingSearch, type IdMatch, type IdSearch, type PageSource, searchIds } from './id-index.ts';
import {
  type BlockPlace,
  blockEntry,
  blockKinds,
  decodeFooter,
  decodeToc,
  footerBytes,
  idEntry,
  pageCount,
  pagePlace,
  type SegmentSection,
  type SegmentToc,
  sectionOf,
} from './segment-format.ts';

/** A document found: its row, and its block in hand, so that reading it needs no second look-up. */
export interface DocumentPlace {
  readonly row: number;
  readonly block: DocumentBlock;
  /** Of the row in the block: `block.entryOffset(index)`, `block.sequences[index]`. */
  readonly index: number;
}

export interface SegmentReaderOptions {
  readonly hash?: HashFunction;
  /** Called between pieces of long work of some milliseconds; may give way to others. */
  readonly pause?: () => void | Promise<void>;
}

/** The table of contents and the footer of all but odd segments: one GET. */
const tailBytes = 64 * 1024;
/** Pages that one piece of a bulk look-up holds: 8 MB. */
const bulkPagesMax = 2_048;
const bulkIdsMax = 1_024;
/** Document blocks that one piece of a bulk look-up or one read-ahead decodes: about 4 MB, 4 ms. */
const blocksPerPiece = 32;

/** Reads the table of contents of a segment that no manifest describes. */
export async function readToc(
  store: ObjectStore,
  objectKey: string,
  report: ReadReport,
): Promise<SegmentToc> {
  const get = async (range: { suffix: number } | { offset: number; length: number }) => {
    report.storeGets++;
    const object = await store.get(objectKey, { range });
    if (object === null) throw new MissingObjectError(objectKey);
    report.storeBytes += object.bytes.length;
    return object;
  };
  const tail = await get({ suffix: tailBytes });
  if (tail.bytes.length < footerBytes) throw new DataError(objectKey, 0, 'shorter than a segment footer');
  const place = decodeFooter(tail.bytes.subarray(-footerBytes), objectKey, tail.size);
  const start = tail.bytes.length - footerBytes - place.length;
  const record = start >= 0 ? tail.bytes.subarray(start, start + place.length) : (await get(place)).bytes;
  return decodeToc(record, objectKey);
}

/** An open segment. Methods named `…Cached` look in memory and on local disk only and make no promise. */
export class SegmentReader {
  readonly toc: SegmentToc;
  readonly #blocks: ObjectBlocks;
  readonly #hash: HashFunction;
  readonly #pause: () => void | Promise<void>;
  readonly #ids: SegmentSection;
  readonly #index: SegmentSection;
  readonly #cachedPages: PageSource;
  readonly #loadingIndex = new SingleFlight<'index', BlockIndex>();
  #blockIndex: BlockIndex | null = null;

  constructor(objectKey: string, toc: SegmentToc, fetcher: BlockFetcher, options: SegmentReaderOptions = {}) {
    this.toc = toc;
    this.#blocks = fetcher.open(objectKey);
    this.#hash = options.hash ?? xxh64;
    this.#pause = options.pause ?? (() => {});
    this.#ids = this.section('ids');
    this.#index = this.section('blocks');
    this.#cachedPages = { page: (page) => this.#pageCached(page) };
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
   * The newest row with this id among those that `isLive`, null where there is none; compares the ids themselves, as
   * hashes may collide. Blocks of other rows are not read.
   */
  async findRow(
    id: string,
    report: ReadReport,
    isLive: (row: number) => boolean = () => true,
  ): Promise<DocumentPlace | null> {
    const idBytes = Buffer.from(id);
    const { low, high } = splitHash(this.#hash(idBytes));
    const pages = new FetchedPages(this.#cachedPages);
    let search = searchIds(this.#ids, low, high, pages);
    while (search.kind === 'need') {
      await this.#fetchPages(pageNumbers(search), pages, report);
      search = searchIds(this.#ids, low, high, pages);
    }
    for (const match of search.matches.toReversed()) {
      if (!isLive(match.row)) continue;
      const block = await this.#blocks.fetchOne(documentsOf(match), report);
      const place = this.#placeOf(block, match.row);
      if (place.block.hasId(place.index, idBytes)) return place;
    }
    return null;
  }

  /** As `findRow`, or `'miss'` where something is needed from the object store. */
  findCached(id: string): DocumentPlace | null | 'miss' {
    const idBytes = Buffer.from(id);
    const { low, high } = splitHash(this.#hash(idBytes));
    const search = searchIds(this.#ids, low, high, this.#cachedPages);
    if (search.kind === 'need') return 'miss';
    for (let at = search.matches.length - 1; at >= 0; at--) {
      const match = search.matches[at] as IdMatch;
      const block = this.#blocks.cachedOrLocal(documentsOf(match));
      if (block === undefined) return 'miss';
      const place = this.#placeOf(block, match.row);
      if (place.block.hasId(place.index, idBytes)) return place;
    }
    return null;
  }

  /** The newest row of each id, -1 where there is none. Reads the block of every row found, in turn and bounded. */
  findRows(ids: readonly string[], report: ReadReport): Promise<Int32Array> {
    return this.findWanted(wantIds(ids, this.#hash), report);
  }

  /** As `findRows`, for ids that several segments are asked for, without the rows that `isGone` says yes to. */
  async findWanted(
    wanted: WantedIds,
    report: ReadReport,
    isGone: (row: number) => boolean = () => false,
  ): Promise<Int32Array> {
    const { ids, order } = wanted;
    const candidates: Candidate[] = [];
    for (let from = 0; from < order.length; ) {
      from = await this.#searchPiece(wanted, from, candidates, report);
      await this.#pause();
    }
    const rows = new Int32Array(ids.length).fill(-1);
    const open = candidates.filter(({ match }) => !isGone(match.row));
    await this.#verify(ids, open, rows, report);
    return rows;
  }

  /** The document of a row. */
  async readRow(row: number, report: ReadReport): Promise<DocumentPlace> {
    const index = await this.blockIndex(report);
    const block = await this.#blocks.fetchOne(index.place(index.blockOfRow(row)), report);
    return this.#placeOf(block, row);
  }

  rowCached(row: number): DocumentPlace | 'miss' {
    if (this.#blockIndex === null) return 'miss';
    const block = this.blockCached(this.#blockIndex.blockOfRow(row));
    if (block === 'miss') return 'miss';
    return { row, block, index: this.#indexIn(block, row) };
  }

  /** The index of the document blocks: one GET the first time, which may run beside other first reads. */
  async blockIndex(report: ReadReport): Promise<BlockIndex> {
    return this.#blockIndex ?? this.#loadingIndex.run('index', () => this.#loadBlockIndex(report));
  }

  async readBlock(index: number, report: ReadReport): Promise<DocumentBlock> {
    const blocks = await this.blockIndex(report);
    return this.#documents(await this.#blocks.fetchOne(blocks.place(index), report));
  }

  /** Blocks by their numbers, in that order; neighbours are one GET. */
  async readBlocks(indexes: readonly number[], report: ReadReport): Promise<DocumentBlock[]> {
    const blocks = await this.blockIndex(report);
    const places = indexes.map((index) => blocks.place(index));
    return (await this.#blocks.fetch(places, report)).map((block) => this.#documents(block));
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

  blockCached(index: number): DocumentBlock | 'miss' {
    if (this.#blockIndex === null) return 'miss';
    const block = this.#blocks.cachedOrLocal(this.#blockIndex.place(index));
    return block === undefined ? 'miss' : this.#documents(block);
  }

  /**
   * The blocks from the one that holds `fromRow` down to the first, newest first. Reads ahead while the consumer works:
   * one block, then twice as many each time, so that whoever stops early has not read much in vain.
   */
  async *blocksDescending(fromRow: number, report: ReadReport): AsyncGenerator<DocumentBlock, void, void> {
    const index = await this.blockIndex(report);
    let next = index.blockOfRow(fromRow);
    let size = 1;
    const readNext = (): Promise<Block[]> | null => {
      if (next < 0) return null;
      const places: BlockPlace[] = [];
      for (const stop = Math.max(0, next - size + 1); next >= stop; next--) places.push(index.place(next));
      size = Math.min(size * 2, blocksPerPiece);
      const blocks = this.#blocks.fetch(places, report);
      blocks.catch(() => {}); // The consumer may stop before it comes to a read that fails.
      return blocks;
    };
    for (let reading = readNext(); reading !== null; ) {
      const blocks = await reading;
      reading = readNext();
      for (const block of blocks) yield this.#documents(block);
    }
  }

  /** All blocks, oldest first, once: past the caches, for whoever reads everything and comes back to nothing. */
  async *blocksAscending(report: ReadReport): AsyncGenerator<DocumentBlock, void, void> {
    const index = await this.blockIndex(report);
    const places = Array.from({ length: index.count }, (_, at) => index.place(at));
    for await (const block of this.#blocks.stream(places, report)) yield this.#documents(block);
  }

  async #loadBlockIndex(report: ReadReport): Promise<BlockIndex> {
    const count = this.#index.entryCount;
    const places = Array.from({ length: pageCount(this.#index, blockEntry) }, (_, page) =>
      pagePlace(this.#index, blockEntry, page, blockKinds.blockIndex),
    );
    const pages = await this.#blocks.fetch(places, report);
    this.#blockIndex = new BlockIndex(
      count,
      pages.map((page) => page.raw),
    );
    return this.#blockIndex;
  }

  #pageCached(page: number): Buffer | undefined {
    return this.#blocks.cachedOrLocal(this.#pagePlace(page))?.raw;
  }

  #pagePlace(page: number): BlockPlace {
    return pagePlace(this.#ids, idEntry, page, blockKinds.ids);
  }

  async #fetchPages(wanted: readonly number[], pages: FetchedPages, report: ReadReport): Promise<void> {
    const places = wanted.map((page) => this.#pagePlace(page));
    const blocks = await this.#blocks.fetch(places, report);
    blocks.forEach((block, at) => {
      pages.set(wanted[at] as number, block.raw);
    });
  }

  /** Searches ids in the order of their hashes from `from` on, as many as one piece may; answers where it stopped. */
  async #searchPiece(
    { order, low, high }: WantedIds,
    from: number,
    candidates: Candidate[],
    report: ReadReport,
  ): Promise<number> {
    const pages = new FetchedPages(this.#cachedPages);
    const ascending = new AscendingSearch(this.#ids, pages);
    const search = (id: number): IdSearch => ascending.search(low[id] as number, high[id] as number);
    const settle = (id: number, result: IdSearch, wanted: Set<number>): boolean => {
      if (result.kind === 'need') for (const page of pageNumbers(result)) wanted.add(page);
      else for (const match of result.matches) candidates.push({ id, match });
      return result.kind === 'found';
    };
    let wanted = new Set<number>();
    let open: number[] = [];
    let at = from;
    for (; at < order.length && at - from < bulkIdsMax && wanted.size < bulkPagesMax; at++) {
      const id = order[at] as number;
      if (!settle(id, search(id), wanted)) open.push(id);
    }
    while (open.length > 0) {
      await this.#fetchPages([...wanted], pages, report);
      const again = new Set<number>();
      open = open.filter((id) => !settle(id, search(id), again));
      wanted = again;
    }
    return at;
  }

  /** Reads the candidates' blocks, some at a time, and keeps the newest row whose id is the wanted one. */
  async #verify(
    ids: readonly string[],
    candidates: readonly Candidate[],
    rows: Int32Array,
    report: ReadReport,
  ): Promise<void> {
    const groups = groupByBlock(candidates);
    for (let from = 0; from < groups.length; from += blocksPerPiece) {
      const piece = groups.slice(from, from + blocksPerPiece);
      const places = piece.map((group) => documentsOf((group[0] as Candidate).match));
      const blocks = await this.#blocks.fetch(places, report);
      piece.forEach((group, at) => {
        this.#verifyBlock(ids, group, blocks[at] as Block, rows);
      });
      await this.#pause();
    }
  }

  #verifyBlock(ids: readonly string[], group: readonly Candidate[], block: Block, rows: Int32Array): void {
    for (const { id, match } of group) {
      const place = this.#placeOf(block, match.row);
      const matches = place.block.hasId(place.index, Buffer.from(ids[id] as string));
      if (matches && match.row > (rows[id] as number)) rows[id] = match.row;
    }
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
    const documents = new DocumentBlock(block.raw, this.objectKey, block.offset);
    block.parsed = documents;
    return documents;
  }
}

/** Ids to look for, hashed and put into the order of their hashes: once, however many segments are asked. */
export interface WantedIds {
  readonly ids: readonly string[];
  /** Halves of the hash of each id. */
  readonly low: Uint32Array;
  readonly high: Uint32Array;
  /** Places in `ids` by rising hash. */
  readonly order: Uint32Array;
}

export function wantIds(ids: readonly string[], hash: HashFunction = xxh64): WantedIds {
  const { low, high } = hashAll(ids, hash);
  return { ids, low, high, order: orderByHash(low, high, ids.length) };
}

interface Candidate {
  /** Index of the id asked for. */
  readonly id: number;
  readonly match: IdMatch;
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

function documentsOf(match: IdMatch): BlockPlace {
  return { offset: match.blockOffset, length: match.blockLength, kind: blockKinds.documents };
}

/** Groups of one block each, in the order of the blocks. */
function groupByBlock(candidates: readonly Candidate[]): Candidate[][] {
  const groups: Candidate[][] = [];
  for (const candidate of candidates.toSorted((a, b) => a.match.blockOffset - b.match.blockOffset)) {
    const last = groups.at(-1);
    if (last?.[0]?.match.blockOffset === candidate.match.blockOffset) last.push(candidate);
    else groups.push([candidate]);
  }
  return groups;
}

function hashAll(
  ids: readonly string[],
  hash: HashFunction,
): { readonly low: Uint32Array; readonly high: Uint32Array } {
  const low = new Uint32Array(ids.length);
  const high = new Uint32Array(ids.length);
  ids.forEach((id, at) => {
    const halves = splitHash(hash(Buffer.from(id)));
    low[at] = halves.low;
    high[at] = halves.high;
  });
  return { low, high };
}
