/**
 * Blocks of immutable objects, from the nearest place that has them:
 *
 * 1. decoded in memory (`BlockCache`, bounded by bytes, shared by all objects of a thread),
 * 2. as stored in memory, from when a small object was built until it is closed or room is needed (`FreshObjects`),
 * 3. stored in the warm cache on local disk,
 * 4. from the object store, neighbours joined into one range GET, one GET at a time per block.
 *
 * Checksums are verified wherever bytes come in. Damage on local disk is dropped and fetched again; damage from the
 * store is fetched once more, then it is a `DataError` with the object's key and the block's offset.
 */
import { DataError, must } from '../../src/base/assert.ts';
import { keptShared } from '../../src/base/garbage.ts';
import { SingleFlight } from '../../src/base/single-flight.ts';
import type { ObjectStore } from '../../src/object-store/object-store.ts';
import type { MemoryBudget } from '../thread/memory-budget.ts';
import type { DecodeElsewhere } from './decode-blocks.ts';
import { DecodingTurns, decodingPieces } from './decoding-turns.ts';
import type { FreshObjects } from './fresh-objects.ts';
import type { NearBlocks } from './near-blocks.ts';
import type { ReadDeadline } from './read-deadline.ts';
import type { ReadShare } from './read-share.ts';
import { BlockOwner, type BlockPlace, decodeBlock, rawLengthIn, viewOf } from './segment-format.ts';
import type { WarmCache } from './warm-cache.ts';

/** What one query read from the object store; reads that it shares count for whoever began them. */
export interface ReadTally {
  storeGets: number;
  storeBytes: number;
  /** Blocks and files that were read from this server's disk. */
  diskReads: number;
  /** What its tenant may have on its way at once; absent where nothing limits that. */
  readonly share?: ReadShare | undefined;
  /** Until when the query waits for its reads; absent where it waits as long as the store takes. */
  readonly deadline?: ReadDeadline | undefined;
  /** Decodes for it what comes from the store faster than its thread decodes; absent where nobody does. */
  decode?: DecodeElsewhere | undefined;
  /** Whether all that comes from the store is kept on the local disk, however much that is; true of a request to bring data near. */
  keepsAll?: boolean;
}

/** Counts reads of the local disk, for looks that make no promise. */
export type DiskTally = Pick<ReadTally, 'diskReads'>;

export function emptyReadTally(
  share: ReadShare | null = null,
  deadline: ReadDeadline | null = null,
): ReadTally {
  return {
    storeGets: 0,
    storeBytes: 0,
    diskReads: 0,
    ...(share === null ? {} : { share }),
    ...(deadline === null ? {} : { deadline }),
  };
}

/**
 * Blocks further apart are separate GETs. Less than that comes in 2 or 3 ms from S3, as long as a GET takes this process,
 * and a GET is what S3 bills for. A cold search of candidates all over a segment made 72 with 64 KB.
 */
export const coalesceGapBytesMax = 256 * 1024;
/** A GET beyond this is split: retries stay cheap and several connections share the work. */
export const rangeBytesMax = 8 * 1024 * 1024;
/** GETs of one request at a time; with the above at most 64 MB of one request are in memory undecoded. */
export const rangesInFlightMax = 8;
/** GETs of a stream, and how many are on their way or wait to be decoded: at most 8 MB. */
const streamRangeBytes = 2 * 1024 * 1024;
const streamRangesAhead = 3;
/** What a cached block costs besides its bytes. */
const blockOverheadBytes = 400;

/** The object is gone: its manifest has moved on and collection was here. Reload the manifest once. */
export class MissingObjectError extends Error {
  override name = 'MissingObjectError';
  readonly objectKey: string;

  constructor(objectKey: string) {
    super(`no object ${objectKey}`);
    this.objectKey = objectKey;
  }
}

/** A decoded block, shared by all its readers, never changed. */
export class Block {
  readonly raw: Buffer;
  readonly offset: number;
  /** The decoded blocks of its object. */
  readonly siblings: Map<number, Block>;
  /** What a reader made of the bytes and would make again; a view of them, so it is not counted apart. */
  parsed: object | null = null;
  /** What a reader derived from the bytes, beside them in memory and counted by the cache; null for most. */
  derived: { readonly bytes: number } | null = null;
  /** Whether another thread has decoded it, and checked its documents if it has some (decode-blocks.ts). */
  wasDecodedElsewhere = false;
  /** How often somebody asked whether deriving it is worth while. */
  asked = 0;
  /** Set by reads, cleared by the hand of `BlockCache`. */
  used = false;

  /** Whose data it is. */
  readonly owner: number;

  constructor(raw: Buffer, offset: number, { owner, siblings }: Pick<Block, 'owner' | 'siblings'>) {
    this.raw = raw;
    this.owner = owner;
    this.offset = offset;
    this.siblings = siblings;
  }
}

/** The share of the thread's memory that blocks always have: without some of them every read would decode the same ones again and again. */
const blocksShareMin = 1 / 16;

/**
 * Bounds the decoded blocks of a thread by bytes. First in, first out, with a second chance for those that were used: a hit
 * costs a flag, and scans don't displace what is used. An owner of whom some block was used while twice the room was read keeps
 * as many as an equal part of the room holds, used or not: who reads much displaces its own.
 * With a budget it takes what the other holders leave, at least `blocksShareMin` and at most `bytesMax`.
 */
export class BlockCache {
  readonly #bytesMax: number;
  readonly #budget: MemoryBudget | null;
  readonly #held = new Set<Block>();
  #bytes = 0;
  /** Kept, because a new iterator would step over the holes of all earlier evictions. */
  #hand: Iterator<Block> = this.#held.values();
  /** All that were ever added: the time by which uses are old. */
  #addedBytes = 0;
  readonly #owners = new Map<number, BlocksOfOwner>();

  constructor(bytesMax: number, budget: MemoryBudget | null = null) {
    this.#bytesMax = bytesMax;
    this.#budget = budget;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** What it may hold at this moment. */
  get room(): number {
    const budget = this.#budget;
    if (budget === null) return this.#bytesMax;
    const left = budget.bytesMax - (budget.bytes - this.#bytes);
    return Math.min(this.#bytesMax, Math.max(left, budget.bytesMax * blocksShareMin));
  }

  /** Puts the block among its siblings and takes others out where room is needed. Its bytes were counted as seen when it was decoded. */
  add(block: Block): void {
    const cost = costOf(block);
    const { room } = this;
    if (cost > room || block.siblings.has(block.offset)) return;
    // Without a budget, nobody is told of those that are put out.
    if (this.#budget !== null) keptShared(block.raw.length);
    this.#shrinkTo(room - cost, block.owner);
    block.siblings.set(block.offset, block);
    this.#held.add(block);
    this.#charge(block.owner, cost);
  }

  /**
   * Keeps what was derived from a block for as long as the block is kept. It is not kept where the block is not, or where there is no
   * room.
   */
  addDerived(block: Block, derived: { readonly bytes: number }): void {
    const { room } = this;
    if (costOf(block) + derived.bytes > room) return;
    this.#shrinkTo(room - derived.bytes, block.owner);
    if (!this.#held.has(block) || block.derived !== null) return;
    block.derived = derived;
    this.#charge(block.owner, derived.bytes);
  }

  /** The others have grown: gives back what is over its room, and `more` bytes of the rest beyond its least share. */
  giveBack(more: number): void {
    const least = (this.#budget?.bytesMax ?? 0) * blocksShareMin;
    this.#shrinkTo(Math.min(this.#bytes, Math.max(this.room - more, least)));
  }

  /** Forgets all blocks of one object. */
  drop(siblings: Map<number, Block>): void {
    for (const block of siblings.values()) this.#remove(block);
  }

  /** `addingOwner`: for whom room is made; its own blocks are not kept from it. */
  #shrinkTo(bytes: number, addingOwner: number | null = null): void {
    while (this.#bytes > bytes) this.#evictOne(addingOwner);
  }

  /** Ends within three rounds: the first clears every flag that it passes, and what is kept for its owner is passed once. */
  #evictOne(addingOwner: number | null): void {
    for (let passed = 0; ; ) {
      const step = this.#hand.next();
      if (step.done === true) {
        this.#hand = this.#held.values();
        continue;
      }
      const block = step.value;
      const isKept = block.owner !== addingOwner && passed < this.#held.size && this.#isKept(block);
      if (!block.used && !isKept) {
        this.#remove(block);
        return;
      }
      passed++;
      if (block.used) {
        const owner = this.#owners.get(block.owner);
        if (owner !== undefined) owner.usedAt = this.#addedBytes;
      }
      // Behind those that came since: stepped over instead, it would stay while they put each other out.
      block.used = false;
      this.#held.delete(block);
      this.#held.add(block);
    }
  }

  #isKept({ owner }: Block): boolean {
    const of = this.#owners.get(owner);
    const { room } = this;
    if (of === undefined || this.#addedBytes - of.usedAt > 2 * room) return false;
    return of.bytes <= room / this.#owners.size;
  }

  #remove(block: Block): void {
    if (!this.#held.delete(block)) return;
    block.siblings.delete(block.offset);
    this.#charge(block.owner, -costOf(block));
    block.derived = null;
  }

  #charge(owner: number, bytes: number): void {
    const of = this.#owners.get(owner) ?? { bytes: 0, usedAt: this.#addedBytes };
    of.bytes += bytes;
    this.#addedBytes += Math.max(0, bytes);
    if (of.bytes > 0) this.#owners.set(owner, of);
    else this.#owners.delete(owner);
    this.#bytes += bytes;
    this.#budget?.add('blocks', bytes);
  }
}

interface BlocksOfOwner {
  bytes: number;
  /** What had been added when the hand last met one of them that was used, or when the first came. */
  usedAt: number;
}

function costOf(block: Block): number {
  return block.raw.length + blockOverheadBytes + (block.derived?.bytes ?? 0);
}

/** One GET, and the blocks that it brings. */
export interface RangePlan {
  readonly offset: number;
  readonly length: number;
  readonly places: readonly BlockPlace[];
}

/** Joins neighbours: pure, for places in any order. A single block may exceed `bytesMax`. */
export function planRanges(
  places: readonly BlockPlace[],
  bounds: { readonly gapBytesMax: number; readonly bytesMax: number },
): RangePlan[] {
  const ranges: { offset: number; length: number; places: BlockPlace[] }[] = [];
  for (const place of [...places].sort((a, b) => a.offset - b.offset)) {
    const last = ranges.at(-1);
    const end = place.offset + place.length;
    const joins =
      last !== undefined &&
      place.offset - (last.offset + last.length) <= bounds.gapBytesMax &&
      end - last.offset <= bounds.bytesMax;
    if (joins) {
      last.length = end - last.offset;
      last.places.push(place);
    } else {
      ranges.push({ offset: place.offset, length: place.length, places: [place] });
    }
  }
  return ranges;
}

export interface BlockFetcherOptions {
  readonly store: ObjectStore;
  /** Null where there is no local disk, as in compute tasks. */
  readonly warmCache: Pick<WarmCache, 'get' | 'has' | 'put' | 'remove'> | null;
  readonly cache: BlockCache;
  /** Objects that were built a moment ago; absent where none are, as in compute tasks. */
  readonly fresh?: FreshObjects;
  /** Gives way to other requests of the thread; absent where nobody waits for it. */
  readonly yieldTurn?: () => Promise<void>;
  /** Once a query has read so many bytes from the store, what comes further is not kept on the local disk, unless its tally says so; absent where all is kept. */
  readonly keptBytesOfQueryMax?: number;
}

/** A thread's way to the blocks of its objects. */
export class BlockFetcher {
  readonly options: BlockFetcherOptions;
  /** Blocks that were not in memory, by where they were found. */
  readonly found = { fromDisk: 0, fromStore: 0 };
  readonly #turns: DecodingTurns | null;

  constructor(options: BlockFetcherOptions) {
    this.options = options;
    this.#turns = options.yieldTurn === undefined ? null : new DecodingTurns(options.yieldTurn);
  }

  /** `owner`: whose data the object is; blocks are shared out by it. `near`: who may have its blocks nearer than the store. */
  open(objectKey: string, owner = 0, near: NearBlocks | null = null): ObjectBlocks {
    return new ObjectBlocks({ objectKey, owner, near }, this, this.#turns);
  }
}

/** Raw forms that another thread has made, in the order of their places; null in place of those that are to be made here. */
type DecodedRaws = readonly (Uint8Array | null)[] | null;

/** By their offsets: what resolves with a block whose read has begun. */
type BlockLoads = ReadonlyMap<number, () => Promise<Block>>;

/** One open object. */
export class ObjectBlocks {
  readonly objectKey: string;
  readonly #owner: BlockOwner;
  readonly #options: BlockFetcherOptions;
  readonly #blocks = new Map<number, Block>();
  /** What its blocks have in common. */
  readonly #of: Pick<Block, 'owner' | 'siblings'>;
  readonly #loading = new SingleFlight<number, Block>();
  readonly #turns: DecodingTurns | null;
  readonly #found: BlockFetcher['found'];
  readonly #near: NearBlocks | null;
  /** Whether the object was kept as it was stored, through this reader of several. */
  #hasFresh = false;
  #closed = false;

  constructor(
    {
      objectKey,
      owner,
      near,
    }: { readonly objectKey: string; readonly owner: number; readonly near: NearBlocks | null },
    { options, found }: BlockFetcher,
    turns: DecodingTurns | null,
  ) {
    this.objectKey = objectKey;
    this.#near = near;
    this.#of = { owner, siblings: this.#blocks };
    this.#found = found;
    this.#turns = turns;
    this.#owner = new BlockOwner(objectKey);
    this.#options = options;
  }

  /** Answers the block where it is decoded in memory, otherwise undefined; makes no promise and no read. */
  cached(offset: number): Block | undefined {
    const block = this.#blocks.get(offset);
    if (block !== undefined) block.used = true;
    return block;
  }

  /** Answers a block as `cached` does, but looks among objects that were just built and on the local disk too. */
  cachedOrLocal(place: BlockPlace, tally: DiskTally): Block | undefined {
    return this.cached(place.offset) ?? this.#built(place) ?? this.#local(place, tally);
  }

  /** Whether memory or the local disk has the block, which may be damaged there. Nothing is read, nothing moves nearer. */
  isAtHand(place: BlockPlace): boolean {
    const { fresh, warmCache } = this.#options;
    const isInMemory = this.#blocks.has(place.offset) || fresh?.has(this.objectKey) === true;
    return isInMemory || warmCache?.has(this.#nameOf(place)) === true;
  }

  /** The blocks in the order of `places`. All reads have settled when it throws, unless it throws `ReadTimedOut`. */
  async fetch(places: readonly BlockPlace[], tally: ReadTally): Promise<Block[]> {
    const found = new Map<number, Block | Promise<Block>>();
    const missingAt = new Map<number, BlockPlace>();
    for (const place of places) {
      if (found.has(place.offset) || missingAt.has(place.offset)) continue;
      const block = this.cachedOrLocal(place, tally) ?? this.#loading.joined(place.offset);
      if (block === undefined) missingAt.set(place.offset, place);
      else found.set(place.offset, block);
    }
    const missing = [...missingAt.values()];
    if (missing.length > 0) tally.share?.refuseOver(missing.reduce((sum, { length }) => sum + length, 0));
    for (const [offset, loading] of this.#load(missing, tally)) found.set(offset, loading);
    const all = Promise.allSettled(places.map((place) => found.get(place.offset)));
    const isThere = missing.length === 0 && ![...found.values()].some((block) => block instanceof Promise);
    const results = await (isThere || tally.deadline === undefined ? all : tally.deadline.wait(all));
    return results.map((result) => {
      if (result.status === 'rejected') throw result.reason;
      return must(result.value, 'a fetched block');
    });
  }

  /** The block; `DataError`, `MissingObjectError` or the store's error where it can't be had. */
  async fetchOne(place: BlockPlace, tally: ReadTally): Promise<Block> {
    const [block] = await this.fetch([place], tally);
    return block as Block;
  }

  /**
   * Blocks that follow each other in the object, in their order, each decoded when its turn comes and kept nowhere:
   * memory is bounded by the bytes that are read ahead. Neither memory nor local disk is asked or filled.
   */
  async *stream(places: readonly BlockPlace[], tally: ReadTally): AsyncGenerator<Block, void, void> {
    const ranges = planRanges(places, { gapBytesMax: 0, bytesMax: streamRangeBytes });
    const reading: { readonly range: RangePlan; readonly bytes: Promise<Uint8Array> }[] = [];
    let next = 0;
    const readAhead = () => {
      for (; reading.length < streamRangesAhead && next < ranges.length; next++) {
        const range = ranges[next] as RangePlan;
        const bytes = this.#get(range, tally);
        bytes.catch(() => {}); // The consumer may stop before it comes to a read that fails.
        reading.push({ range, bytes });
      }
    };
    for (readAhead(); reading.length > 0; ) {
      const { range, bytes } = reading.shift() as (typeof reading)[number];
      const stored = await (tally.deadline === undefined ? bytes : tally.deadline.wait(bytes));
      readAhead();
      for (const place of range.places) {
        const part = cut(stored, place.offset - range.offset, place.length);
        yield await this.#decodeOrReread(place, part, tally);
      }
    }
  }

  /** Keeps what was derived from a block of this object, if there is room. */
  addDerived(block: Block, derived: { readonly bytes: number }): void {
    this.#options.cache.addDerived(block, derived);
  }

  /** Forgets the decoded blocks, and the object where `keepFresh` kept it; what is on local disk ages away by itself. */
  close(): void {
    this.#closed = true;
    this.#options.cache.drop(this.#blocks);
    if (this.#hasFresh) this.#options.fresh?.remove(this.objectKey);
  }

  /** Keeps the bytes of the object, which was built a moment ago, so that it is read from memory. Does nothing once it is closed. */
  keepFresh(stored: Uint8Array): void {
    if (this.#closed) return;
    this.#hasFresh = true;
    this.#options.fresh?.add(this.objectKey, this.#of.owner, stored);
  }

  /** A block of an object that was built a moment ago, on the local disk too from now on. */
  #built(place: BlockPlace): Block | undefined {
    const { fresh, warmCache } = this.#options;
    const stored = fresh?.read(this.objectKey, place) ?? null;
    if (stored === null) return undefined;
    try {
      const block = this.#keep(place, stored);
      const name = this.#nameOf(place);
      if (!this.#closed && warmCache?.has(name) !== true) warmCache?.put(name, stored);
      return block;
    } catch (error) {
      if (!(error instanceof DataError)) throw error;
      fresh?.remove(this.objectKey);
      return undefined;
    }
  }

  #local(place: BlockPlace, tally: DiskTally): Block | undefined {
    const { warmCache } = this.#options;
    if (warmCache === null) return undefined;
    const name = this.#nameOf(place);
    const stored = warmCache.get(name);
    if (stored === undefined) return undefined;
    try {
      const block = this.#keep(place, stored);
      this.#found.fromDisk++;
      tally.diskReads++;
      return block;
    } catch (error) {
      if (!(error instanceof DataError)) throw error;
      warmCache.remove(name);
      return undefined;
    }
  }

  /** Starts the reads, so that others who want the same blocks join them. */
  #load(places: readonly BlockPlace[], tally: ReadTally): Map<number, Promise<Block>> {
    const load =
      this.#near === null || places.length === 0
        ? this.#loadFromStore(places, tally)
        : this.#loadFromNear(this.#near, places, tally);
    return new Map([...load].map(([offset, block]) => [offset, this.#loading.run(offset, block)]));
  }

  /** What somebody near has, and the rest from the store as soon as that is known. */
  #loadFromNear(near: NearBlocks, places: readonly BlockPlace[], tally: ReadTally): BlockLoads {
    const reading = near.read(this.objectKey, places).then((found) => {
      const rest = places.filter((_, at) => (found[at] ?? null) === null);
      return { found, loads: this.#loadFromStore(rest, tally) };
    });
    const load = async (place: BlockPlace, at: number) => {
      const { found, loads } = await reading;
      const stored = found[at] ?? null;
      if (stored === null) return must(loads.get(place.offset), 'a block that was asked for')();
      await this.#turns?.take(place.length);
      const kept = this.#keepNear(place, stored, tally);
      return kept ?? this.#keepStored(place, await this.#get(place, tally), tally);
    };
    return new Map(places.map((place, at) => [place.offset, () => load(place, at)]));
  }

  #loadFromStore(places: readonly BlockPlace[], tally: ReadTally): BlockLoads {
    const ranges = planRanges(places, { gapBytesMax: coalesceGapBytesMax, bytesMax: rangeBytesMax });
    const reads = inLanes(
      ranges.map((range) => () => this.#get(range, tally)),
      rangesInFlightMax,
    );
    const loads = new Map<number, () => Promise<Block>>();
    ranges.forEach((range, index) => {
      const read = reads[index] as Promise<Uint8Array>;
      for (const piece of decodingPieces(range.places)) {
        const elsewhere = this.#decodedElsewhere(piece, range.offset, read, tally);
        for (const [at, place] of piece.entries())
          loads.set(place.offset, async () => {
            const stored = cut(await read, place.offset - range.offset, place.length);
            const raws = elsewhere === null ? 'nobody was asked' : await elsewhere;
            const raw = Array.isArray(raws) ? (raws[at] ?? null) : null;
            await (raw === null ? this.#turns?.take(place.length) : this.#turns?.takeDecoded(place.length));
            if (raws === null) this.#turns?.decodedHere(place.length);
            return raw === null
              ? this.#keepStored(place, stored, tally)
              : this.#keepRaw(place, { raw, stored }, tally);
          });
      }
    });
    return loads;
  }

  /** Has another thread decode a piece of a range once it has come, where this one has more to decode already; answers null in place of what is to be decoded here. */
  #decodedElsewhere(
    places: readonly BlockPlace[],
    rangeOffset: number,
    read: Promise<Uint8Array>,
    { decode }: ReadTally,
  ): Promise<DecodedRaws> | null {
    const turns = this.#turns;
    if (decode === undefined || turns === null) return null;
    const [first] = places as readonly [BlockPlace];
    const last = places.at(-1) as BlockPlace;
    const storedBytes = places.reduce((sum, { length }) => sum + length, 0);
    const decoded = read.then((range) => {
      const piece = range.subarray(first.offset - rangeOffset, last.offset + last.length - rangeOffset);
      const blockAt = ({ offset, length }: BlockPlace) => cut(piece, offset - first.offset, length);
      const rawBytes = places.reduce((sum, place) => sum + rawLengthIn(blockAt(place)), 0);
      return turns.share({ storedBytes, rawBytes }, async () => {
        // A copy, which is moved there: a slice of a Buffer would be no copy.
        const stored = new Uint8Array(piece);
        const { objectKey } = this;
        const task = { task: 'decode-blocks', objectKey, stored, offset: first.offset, places } as const;
        return (await decode(task)).raws;
      });
    });
    // Whoever waits for a block hears that the read failed.
    decoded.catch(() => {});
    return decoded;
  }

  /** Keeps a block that another thread has decoded from what came from the store. */
  #keepRaw(
    place: BlockPlace,
    { raw, stored }: { readonly raw: Uint8Array; readonly stored: Uint8Array },
    tally: ReadTally,
  ): Block {
    const block = new Block(viewOf(raw), place.offset, this.#of);
    block.wasDecodedElsewhere = true;
    this.#found.fromStore++;
    if (this.#closed) return block;
    this.#options.cache.add(block);
    this.#keepOnDisk(place, stored, tally);
    return block;
  }

  /** A block that came from another thread's part of the local disk, kept on this one's from now on; null where it is damaged. */
  #keepNear(place: BlockPlace, stored: Uint8Array, tally: ReadTally): Block | null {
    try {
      const block = this.#keep(place, stored);
      this.#found.fromDisk++;
      tally.diskReads++;
      if (!this.#closed) this.#options.warmCache?.put(this.#nameOf(place), stored);
      return block;
    } catch (error) {
      if (!(error instanceof DataError)) throw error;
      return null;
    }
  }

  /** A block that came from the store, once more where it is damaged. */
  async #keepStored(place: BlockPlace, stored: Uint8Array, tally: ReadTally): Promise<Block> {
    let intact = stored;
    let block: Block;
    try {
      block = this.#keep(place, stored);
    } catch (error) {
      if (!(error instanceof DataError)) throw error;
      intact = await this.#get(place, tally);
      block = this.#keep(place, intact);
    }
    this.#found.fromStore++;
    // Closed: its segment was merged, and what comes now must not stay on the disk.
    if (!this.#closed) this.#keepOnDisk(place, intact, tally);
    return block;
  }

  /** Keeps what came from the store on the local disk, unless its query has read more than is worth keeping. */
  #keepOnDisk(place: BlockPlace, stored: Uint8Array, { storeBytes, keepsAll }: ReadTally): void {
    const { warmCache, keptBytesOfQueryMax = Number.POSITIVE_INFINITY } = this.#options;
    if (keepsAll === true || storeBytes <= keptBytesOfQueryMax) warmCache?.put(this.#nameOf(place), stored);
  }

  async #decodeOrReread(place: BlockPlace, stored: Uint8Array, tally: ReadTally): Promise<Block> {
    try {
      return this.#decode(place, stored);
    } catch (error) {
      if (!(error instanceof DataError)) throw error;
      return this.#decode(place, await this.#get(place, tally));
    }
  }

  #keep(place: BlockPlace, stored: Uint8Array): Block {
    const block = this.#decode(place, stored);
    if (!this.#closed) this.#options.cache.add(block);
    return block;
  }

  /** Throws `DataError` where the bytes are not the block. */
  #decode(place: BlockPlace, stored: Uint8Array): Block {
    if (stored.length !== place.length) {
      const problem = `${stored.length} bytes where a block of ${place.length} should be`;
      throw new DataError(this.objectKey, place.offset, problem);
    }
    const raw = decodeBlock(stored, place.kind, this.#owner, place.offset);
    return new Block(raw, place.offset, this.#of);
  }

  async #get(range: { offset: number; length: number }, tally: ReadTally): Promise<Uint8Array> {
    tally.storeGets++;
    const { offset, length } = range;
    const { store } = this.#options;
    const get = () => store.get(this.objectKey, { range: { offset, length } });
    const object = await (tally.share === undefined ? get() : tally.share.read(length, get));
    if (object === null) throw new MissingObjectError(this.objectKey);
    tally.storeBytes += object.bytes.length;
    return object.bytes;
  }

  #nameOf(place: BlockPlace): string {
    return `${this.objectKey}@${place.offset}`;
  }
}

/** The part of a range that one block takes; shorter where the object ended early. */
function cut(bytes: Uint8Array, start: number, length: number): Uint8Array {
  return bytes.subarray(start, start + length);
}

/** Starts all tasks, at most `lanes` at a time; a lane goes on after a failure. */
function inLanes<T>(tasks: readonly (() => Promise<T>)[], lanes: number): Promise<T>[] {
  const running: Promise<T>[] = [];
  for (const task of tasks) {
    const before = running[running.length - lanes];
    running.push(before === undefined ? task() : before.then(task, task));
  }
  return running;
}
