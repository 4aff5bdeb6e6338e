import type { ReadReport } from '../storage/block-fetch.ts';
import type { BlockIndex } from '../storage/block-index.ts';
import type { DocumentBlock } from '../storage/document-block.ts';
import type { OpenSegment } from '../storage/snapshot.ts';
import type { Tombstones } from '../storage/tombstones.ts';

/**
 * The document blocks of segments from the newest to the oldest, read before they are wanted, across segments.
 *
 * 1. The indexes of all segments are asked for at once: one round.
 * 2. Blocks are asked for without waiting for those before them: one block, then twice as many each time, neighbours
 *    joined into one GET, while fewer are on their way or unread than `blocksAheadMax`. So a namespace of some megabytes
 *    takes one round more, and a large one as many bytes a round as a search gets through meanwhile.
 * 3. Who wants the newest rows and puts no condition on them knows how many: no more blocks than hold them are asked
 *    for, and then one after the other.
 */
export interface BlocksWanted {
  /** Sequences from here on are not wanted. */
  readonly below: number;
  /** How many rows will be enough; infinite where only reading them tells. */
  readonly rows: number;
  readonly report: ReadReport;
}

export interface SegmentBlock {
  readonly block: DocumentBlock;
  readonly tombstones: Tombstones;
  /** Whether memory or the local disk has it: whoever reads much may push out what it read first. */
  readonly isAtHand: () => boolean;
}

/** About 4 MB before compression: what takes as long to search as a round to S3. */
export const blocksAheadMax = 32;
/** Blocks of one GET, so that the first of them come before the last are sent. */
export const blocksPerReadMax = 16;

interface Source {
  readonly segment: OpenSegment;
  /** Null until it is known. */
  index: BlockIndex | null;
  readonly opened: Promise<void>;
  /** The next block to ask for, going down. */
  next: number;
}

interface Reading {
  readonly segment: OpenSegment;
  readonly blocks: Promise<DocumentBlock[]>;
}

/** Newest first, as the segments are. A failed read ends it when its block's turn comes. */
export async function* blocksNewestFirst(
  segments: readonly OpenSegment[],
  wanted: BlocksWanted,
): AsyncGenerator<SegmentBlock, void, void> {
  const ahead = new Ahead(segments, wanted);
  try {
    for (;;) {
      const reading = ahead.take();
      if (reading === undefined) {
        if (await ahead.opened()) continue;
        return;
      }
      for (const block of await reading.blocks) {
        const { reader, tombstones } = reading.segment;
        yield { block, tombstones, isAtHand: () => reader.isAtHand(block) };
        ahead.consumed();
      }
    }
  } finally {
    ahead.stop();
  }
}

/** What is on its way, and what to ask for next. */
class Ahead {
  readonly #left: Source[];
  readonly #wanted: BlocksWanted;
  readonly #reading: Reading[] = [];
  #blocksAhead = 0;
  #rowsAsked = 0;
  /** Blocks of the next read, at most. */
  #size: number;
  #stopped = false;

  constructor(segments: readonly OpenSegment[], wanted: BlocksWanted) {
    this.#wanted = wanted;
    this.#size = wanted.rows === Number.POSITIVE_INFINITY ? 1 : blocksPerReadMax;
    this.#left = segments
      .filter(({ reader }) => reader.toc.minSequence < wanted.below)
      .map((segment) => this.#open(segment));
  }

  take(): Reading | undefined {
    return this.#reading.shift();
  }

  consumed(): void {
    this.#blocksAhead--;
    this.#ask();
  }

  /** Resolves when something more was asked for; false where nothing is left. */
  async opened(): Promise<boolean> {
    const [source] = this.#left;
    if (source === undefined) return false;
    await source.opened;
    return true;
  }

  /** The consumer has enough. */
  stop(): void {
    this.#stopped = true;
  }

  #open(segment: OpenSegment): Source {
    const { below, report } = this.#wanted;
    const source: Source = {
      segment,
      index: null,
      next: -1,
      opened: segment.reader.blockIndex(report).then((index) => {
        source.index = index;
        source.next = index.blockOfSequence(below);
        this.#ask();
      }),
    };
    // The consumer may stop before it comes to a segment that can't be read.
    source.opened.catch(() => {});
    return source;
  }

  /** In order: a segment whose index is not known yet keeps older ones waiting. */
  #ask(): void {
    if (this.#stopped) return;
    for (let source = this.#left[0]; source !== undefined && this.#hasRoom(); source = this.#left[0]) {
      if (source.index === null) return;
      this.#read(source, source.index);
      if (source.next < 0) this.#left.shift();
    }
  }

  #hasRoom(): boolean {
    if (this.#wanted.rows === Number.POSITIVE_INFINITY) return this.#blocksAhead < blocksAheadMax;
    // Deleted rows were counted as well: whoever has not enough asks on, a block at a time.
    return (
      this.#blocksAhead === 0 || (this.#rowsAsked < this.#wanted.rows && this.#blocksAhead < blocksAheadMax)
    );
  }

  #read(source: Source, index: BlockIndex): void {
    const { segment } = source;
    const numbers: number[] = [];
    do {
      numbers.push(source.next);
      this.#rowsAsked += index.rowCount(source.next);
      source.next--;
    } while (source.next >= 0 && numbers.length < this.#size && this.#wantsMore());
    this.#size = Math.min(this.#size * 2, blocksPerReadMax);
    this.#blocksAhead += numbers.length;
    const blocks = segment.reader.readBlocks(numbers, this.#wanted.report);
    blocks.catch(() => {});
    this.#reading.push({ segment, blocks });
  }

  #wantsMore(): boolean {
    return this.#rowsAsked < this.#wanted.rows;
  }
}
