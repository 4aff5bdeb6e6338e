/**
 * Document blocks of segments, read before they are wanted, across segments: asked for without waiting for those before
 * them, one block, then twice as many each time, neighbours joined into one GET, while fewer are on their way or unread
 * than the source allows. So a namespace of some megabytes takes one round more than its indexes, and a large one as many
 * bytes a round as a search gets through meanwhile.
 *
 * What memory or the local disk has is unpacked when its turn comes: whoever stops early has not paid for it.
 */
import type { ReadTally } from '../storage/block-fetch.ts';
import type { DocumentBlock } from '../storage/document-block.ts';
import type { SegmentReader } from '../storage/segment-reader.ts';
import type { Tombstones } from '../storage/tombstones.ts';
import type { TimeSlice } from './time-slice.ts';

export interface WantedBlock {
  readonly reader: SegmentReader;
  readonly tombstones: Tombstones;
  /** The block's number in its segment. */
  readonly number: number;
  /** Rows of the segment to look at: pairs of first and end, the newest pair first. */
  readonly ranges: readonly number[];
  /** The parts (text-parts.ts) to look at of rows with large texts, by row, ascending; all where nothing is said. */
  readonly parts?: ReadonlyMap<number, readonly number[]> | null;
  /** Whether columns say of each of these rows that it passes the filter. */
  readonly passes?: boolean;
}

export interface ReadBlock extends WantedBlock {
  readonly block: DocumentBlock;
}

/** Which blocks are wanted, from the newest to the oldest. */
export interface BlockSource {
  /** The next ones, at most `count`, none at the end. A promise only where an index has to be read. */
  take(count: number): readonly WantedBlock[] | Promise<readonly WantedBlock[]>;
  /** Whether those taken will probably do: more are read only once all of them were looked at. */
  readonly isEnough: boolean;
  /** Blocks of the first read. */
  readonly firstRead: number;
  /** Blocks that may be on their way or unread. */
  readonly aheadMax: number;
}

/** About 4 MB before compression: what takes as long to search as a round to S3. */
export const blocksAheadMax = 32;
/**
 * Blocks that are looked for ahead while all of them are at hand: looking for those that nobody will want takes longer than
 * finding out late.
 */
const nearBlocksAhead = 4;
/** Blocks of one GET, so that the first of them come before the last are sent. */
export const blocksPerReadMax = 16;

/**
 * Reads blocks in the source's order, some ahead. A failed read ends it when its block's turn comes. What is waited for is no
 * work of the slice.
 */
export class BlocksAhead {
  readonly #ahead: Ahead;
  readonly #tally: ReadTally;
  readonly #slice: Pick<TimeSlice, 'waitFor'>;
  /** Blocks that were asked for together. */
  #wanted: readonly WantedBlock[] = [];
  /** How many of `#wanted` were answered. */
  #answered = 0;
  /** Those of `#wanted` that had to be read; null where all were at hand. */
  #fetched: Fetched | null = null;
  /** Whether the consumer has a block that it is not known to be done with. */
  #isLookedAt = false;

  constructor(source: BlockSource, tally: ReadTally, slice: Pick<TimeSlice, 'waitFor'>) {
    this.#ahead = new Ahead(source, tally);
    this.#tally = tally;
    this.#slice = slice;
  }

  /** The next block, null at the end; whoever asks is done with the one before. A promise only where something has to be read. */
  next(): ReadBlock | null | Promise<ReadBlock | null> {
    if (this.#isLookedAt) this.#ahead.consumed();
    this.#isLookedAt = false;
    while (this.#answered === this.#wanted.length) {
      const reading = this.#ahead.next();
      if (reading === undefined) return this.#more();
      this.#wanted = reading.wanted;
      this.#answered = 0;
      this.#fetched = null;
      if (reading.fetched !== null) return this.#afterReading(reading.fetched);
    }
    const wanted = this.#wanted[this.#answered++] as WantedBlock;
    const block = this.#fetched?.get(wanted) ?? blockAtHand(wanted, this.#tally);
    return block === null ? this.#again(wanted) : this.#answer(wanted, block);
  }

  /** The consumer has enough. */
  stop(): void {
    this.#ahead.stop();
  }

  #answer(wanted: WantedBlock, block: DocumentBlock): ReadBlock {
    this.#isLookedAt = true;
    // Copied by name: hot where each block has one row or two, and spread it takes several times as long.
    const { reader, tombstones, number, ranges, parts = null, passes = false } = wanted;
    return { reader, tombstones, number, ranges, parts, passes, block };
  }

  async #again(wanted: WantedBlock): Promise<ReadBlock> {
    return this.#answer(wanted, await this.#slice.waitFor(readAgain(wanted, this.#tally)));
  }

  async #afterReading(fetched: Promise<Fetched>): Promise<ReadBlock | null> {
    this.#fetched = await this.#slice.waitFor(fetched);
    return this.next();
  }

  #more(): null | Promise<ReadBlock | null> {
    const more = this.#ahead.more();
    return more === null ? null : this.#afterMore(more);
  }

  async #afterMore(more: Promise<void>): Promise<ReadBlock | null> {
    await this.#slice.waitFor(more);
    return this.next();
  }
}

/** Reads blocks as `BlocksAhead` does, for whoever takes its time with each. */
export async function* readAhead(
  source: BlockSource,
  tally: ReadTally,
  slice: Pick<TimeSlice, 'waitFor'>,
): AsyncGenerator<ReadBlock, void, void> {
  const blocks = new BlocksAhead(source, tally, slice);
  try {
    for (;;) {
      const next = blocks.next();
      const read = next instanceof Promise ? await next : next;
      if (read === null) return;
      yield read;
    }
  } finally {
    blocks.stop();
  }
}

function blockAtHand({ reader, number }: WantedBlock, tally: ReadTally): DocumentBlock | null {
  const block = reader.blockCached(number, tally);
  return block === 'miss' ? null : block;
}

/** Reads a block that was at hand when its neighbours were asked for, and has made room for others since. */
function readAgain({ reader, number }: WantedBlock, tally: ReadTally): Promise<DocumentBlock> {
  return reader.readBlock(number, tally);
}

type Fetched = ReadonlyMap<WantedBlock, DocumentBlock>;

interface Reading {
  readonly wanted: readonly WantedBlock[];
  /** What was not at hand; null where all of it was. */
  readonly fetched: Promise<Fetched> | null;
}

/** What is on its way, and what to ask for next. */
class Ahead {
  readonly #source: BlockSource;
  readonly #tally: ReadTally;
  readonly #readings: Reading[] = [];
  #blocksAhead = 0;
  /** Blocks of the next read, at most. */
  #size: number;
  /** Parts of an index on their way, and then the blocks that they name. */
  #waiting: Promise<void> | null = null;
  #stopped = false;
  /** Whether anything had to be read. */
  #isFar = false;

  constructor(source: BlockSource, tally: ReadTally) {
    this.#source = source;
    this.#tally = tally;
    this.#size = source.firstRead;
  }

  next(): Reading | undefined {
    this.#ask();
    return this.#readings.shift();
  }

  consumed(): void {
    this.#blocksAhead--;
    this.#ask();
  }

  /** Resolves when more was asked for; null at the end. */
  more(): Promise<void> | null {
    return this.#waiting;
  }

  /** The consumer has enough. */
  stop(): void {
    this.#stopped = true;
  }

  #ask(): void {
    while (!this.#stopped && this.#waiting === null && this.#hasRoom()) {
      const some = this.#source.take(this.#size);
      if (some instanceof Promise) return this.#readLater(some);
      if (some.length === 0) return;
      this.#read(some);
    }
  }

  #hasRoom(): boolean {
    if (this.#source.isEnough) return this.#blocksAhead === 0;
    return this.#blocksAhead < (this.#isFar ? this.#source.aheadMax : nearBlocksAhead);
  }

  #readLater(some: Promise<readonly WantedBlock[]>): void {
    this.#waiting = some.then((wanted) => {
      this.#waiting = null;
      if (this.#stopped) return;
      this.#read(wanted);
      this.#ask();
    });
    // Thrown when the consumer comes to it; it may stop before.
    this.#waiting.catch(() => {});
  }

  #read(wanted: readonly WantedBlock[]): void {
    if (wanted.length === 0) return;
    const fetched = fetchMissing(wanted, this.#tally);
    fetched?.catch(() => {});
    this.#isFar ||= fetched !== null;
    this.#readings.push({ wanted, fetched });
    this.#blocksAhead += wanted.length;
    this.#size = Math.min(this.#size * 2, blocksPerReadMax);
  }
}

/** Null where nothing has to be read. */
function fetchMissing(some: readonly WantedBlock[], tally: ReadTally): Promise<Fetched> | null {
  const missing = some.filter(({ reader, number }) => reader.bytesAtHand(number) === 0);
  if (missing.length === 0) return null;
  const readers = [...new Set(missing.map(({ reader }) => reader))];
  const reads = readers.map(async (reader) => {
    const wanted = missing.filter((one) => one.reader === reader);
    const numbers = wanted.map(({ number }) => number);
    const blocks = await reader.readBlocks(numbers, tally);
    return wanted.map((one, i) => [one, blocks[i] as DocumentBlock] as const);
  });
  return Promise.all(reads).then((fetched) => new Map(fetched.flat()));
}
