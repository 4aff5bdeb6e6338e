import type { ReadTally } from '../storage/block-fetch.ts';
import type { BlockIndex } from '../storage/block-index.ts';
import type { OpenSegment } from '../storage/snapshot.ts';
import { type BlockSource, blocksAheadMax, blocksPerReadMax, type WantedBlock } from './read-ahead.ts';

export interface BlocksWanted {
  /** Sequences from here on are not wanted. */
  readonly below: number;
  /** How many rows will be enough; infinite where only reading them tells. */
  readonly rows: number;
  readonly tally: ReadTally;
}

interface Opening {
  readonly segment: OpenSegment;
  /** Null until it is known. */
  index: BlockIndex | null;
  readonly opened: Promise<void>;
  /** The next block to ask for, going down. */
  next: number;
}

/**
 * All document blocks of segments, from the newest to the oldest. The indexes of all segments are asked for at once: one
 * round. Who wants the newest rows and puts no condition on them knows how many: no more blocks than hold them are asked
 * for, and then one after the other, because deleted rows were counted as well.
 */
export class AllBlocks implements BlockSource {
  readonly aheadMax = blocksAheadMax;
  readonly firstRead: number;
  /** Newest first, as the segments are. */
  readonly #left: Opening[];
  readonly #rows: number;
  #rowsTaken = 0;

  constructor(segments: readonly OpenSegment[], { below, rows, tally }: BlocksWanted) {
    this.#rows = rows;
    this.firstRead = rows === Number.POSITIVE_INFINITY ? 1 : blocksPerReadMax;
    this.#left = segments
      .filter(({ reader }) => reader.toc.minSequence < below)
      .map((segment) => open(segment, below, tally));
  }

  get isEnough(): boolean {
    return this.#rowsTaken >= this.#rows;
  }

  /** Answers the next blocks, in order: a segment whose index is not known yet keeps older ones waiting. */
  take(count: number): WantedBlock[] | Promise<WantedBlock[]> {
    const taken: WantedBlock[] = [];
    for (let opening = this.#left[0]; opening !== undefined; opening = this.#left[0]) {
      if (opening.index === null) {
        return taken.length > 0 ? taken : opening.opened.then(() => this.take(count));
      }
      while (opening.next >= 0) {
        if (taken.length >= count || (taken.length > 0 && this.isEnough)) return taken;
        taken.push(this.#takeNext(opening, opening.index));
      }
      this.#left.shift();
    }
    return taken;
  }

  #takeNext(opening: Opening, index: BlockIndex): WantedBlock {
    const { reader, tombstones } = opening.segment;
    const number = opening.next--;
    const first = index.firstRow(number);
    const rowCount = index.rowCount(number);
    this.#rowsTaken += rowCount;
    return { reader, tombstones, number, ranges: [first, first + rowCount] };
  }
}

function open(segment: OpenSegment, below: number, tally: ReadTally): Opening {
  const take = (index: BlockIndex) => {
    opening.index = index;
    opening.next = index.blockOfSequence(below);
  };
  const { blockIndexAtHand } = segment.reader;
  const opened = blockIndexAtHand === null ? segment.reader.blockIndex(tally).then(take) : Promise.resolve();
  const opening: Opening = { segment, index: null, next: -1, opened };
  if (blockIndexAtHand !== null) take(blockIndexAtHand);
  // The consumer may stop before it comes to a segment that can't be read.
  opened.catch(() => {});
  return opening;
}
