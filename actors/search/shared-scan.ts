import { limits } from '../../protocol/limits.ts';
import type { WantedLiteral } from '../text/judge.ts';
import { type RowsAnswer, rowsOfAnswer, taskOf } from './find-rows-task.ts';
import { bytesOfRanges, isByRows, literalRows, liveOf } from './literal-rows.ts';
import type { QueryContext } from './query.ts';
import type { ReadBlock } from './read-ahead.ts';

export interface SharedScanOptions {
  readonly literal: WantedLiteral;
  /** Takes the live rows of a block, by their numbers in the segment, whose texts have the literal; blocks come in any order. */
  readonly take: (block: ReadBlock, rows: readonly number[]) => void;
  /** Bytes of entries that are looked through here before others help. */
  readonly aloneBytes?: number;
  /** Bytes of blocks that are sent at once. */
  readonly batchBytes?: number;
}

/** Bytes of documents that a scan looks through by itself: 4 ms. Less is not worth a message to another thread. */
const aloneBytesDefault = 16 * 1024 * 1024;
/** Bytes of blocks that are sent at once: 2 ms of work. Half of it takes a tenth longer in all, by messages. */
const batchBytesDefault = 8 * 1024 * 1024;
/** Up to so many milliseconds, waiting for a core says nothing of how busy the cores are: the kernel counts it by the time that threads have at once. */
const waitedMsMin = 8;
/** A block is sent where so much of it is to be looked through: its handle takes the threads as long as a tenth of it. */
const wantedShareMin = 1 / 4;

/** Blocks that another thread has, or will have, and whose rows were not taken yet. */
type Batch = readonly ReadBlock[];

/**
 * Looks through many blocks for a literal, by this thread and by those of the lane `scan` at the same time, as far as cores are idle. A few
 * batches are elsewhere at once, and meanwhile this thread looks through what comes next, so whoever helps slowly has less to do, and where
 * nobody helps, nothing is waited for: at the end this thread looks through what nobody has answered yet. What is done twice is counted twice.
 */
export class SharedScan {
  readonly #context: Pick<QueryContext, 'findRows' | 'scanRoom' | 'slice'>;
  readonly #options: Required<SharedScanOptions>;
  /** Bytes that this thread has looked through, or would have. */
  #bytes = 0;
  /** The blocks of the next batch for another thread. */
  #open: ReadBlock[] = [];
  #openBytes = 0;
  readonly #sent = new Set<Batch>();
  /** Blocks that nobody else would look through. */
  readonly #refused: ReadBlock[] = [];
  /** What the batches have taken elsewhere, in milliseconds. */
  readonly #helpersMs = { onCore: 0, waited: 0 };
  /** Whether cores are busy, or the lane is. */
  #isCrowded = false;

  constructor(context: Pick<QueryContext, 'findRows' | 'scanRoom' | 'slice'>, options: SharedScanOptions) {
    this.#context = context;
    this.#options = {
      aloneBytes: aloneBytesDefault,
      batchBytes: batchBytesDefault,
      ...options,
    };
  }

  /** Looks through a block, now or later; answers false where it has to be judged text by text. Others have their turn between two calls. */
  add(read: ReadBlock): boolean {
    if (!isByRows(read)) return false;
    const refused = this.#refused.pop();
    if (refused !== undefined) this.#lookThrough(refused);
    const wanted = bytesOfRanges(read);
    this.#bytes += wanted;
    if (!this.#goesElsewhere(read, wanted)) {
      this.#lookThrough(read);
      return true;
    }
    this.#open.push(read);
    this.#openBytes += read.block.buffer.length;
    if (this.#openBytes >= this.#options.batchBytes) this.#send();
    return true;
  }

  /** Answers whether all rows were taken; false where the time of the query was over before. */
  async finish(): Promise<boolean> {
    if (!(await this.#takeBack(this.#open.splice(0)))) return false;
    // Answers that have come are heard now.
    if (this.#sent.size > 0) await this.#context.slice.giveWay();
    // The last one is the least likely to be under way.
    for (const batch of [...this.#sent].reverse())
      if (!(await this.#takeBack(batch, () => this.#sent.has(batch)))) return false;
    return this.#takeBack(this.#refused.splice(0));
  }

  #goesElsewhere({ block: { buffer } }: ReadBlock, wanted: number): boolean {
    const { literal, aloneBytes } = this.#options;
    // RE2 takes so long that a batch of it would hold up those of others.
    if (this.#isCrowded || literal.piece === null || this.#bytes <= aloneBytes) return false;
    if (wanted < buffer.length * wantedShareMin) return false;
    // What is not shared would be copied.
    if (!(buffer.buffer instanceof SharedArrayBuffer)) return false;
    return this.#open.length > 0 || this.#sent.size < limits.scanBatchesAheadMax;
  }

  #send(): void {
    const batch = this.#open;
    const bytes = this.#openBytes;
    this.#open = [];
    this.#openBytes = 0;
    const { findRows, scanRoom } = this.#context;
    if (!scanRoom.take(bytes)) return this.#refuse(batch);
    this.#sent.add(batch);
    findRows(taskOf(this.#options.literal.query, batch))
      .then(
        (found) => this.#hear(batch, found),
        () => {
          if (this.#sent.delete(batch)) this.#refuse(batch);
        },
      )
      .finally(() => scanRoom.give(bytes));
  }

  /** This thread looks through the batch, and through what was collected for others, a block at a time. */
  #refuse(batch: Batch): void {
    this.#isCrowded = true;
    this.#refused.push(...batch, ...this.#open.splice(0));
    this.#openBytes = 0;
  }

  #hear(batch: Batch, found: RowsAnswer): void {
    const { cpuMs, waitedMs } = found;
    this.#context.slice.charge(cpuMs);
    this.#helpersMs.onCore += cpuMs;
    this.#helpersMs.waited += waitedMs;
    if (this.#helpersMs.waited > this.#helpersMs.onCore + waitedMsMin) this.#refuse([]);
    // Taken back meanwhile.
    if (!this.#sent.delete(batch)) return;
    for (const [at, read] of batch.entries()) this.#options.take(read, liveOf(read, rowsOfAnswer(found, at)));
  }

  #lookThrough(read: ReadBlock): void {
    this.#options.take(read, this.#rowsOf(read));
  }

  /** Looks through a batch for as long as it is wanted, and gives way between two blocks. Answers false where the time was over. */
  async #takeBack(batch: Batch, isWanted = () => true): Promise<boolean> {
    const { slice } = this.#context;
    const found: (readonly number[])[] = [];
    for (const read of batch) {
      if (slice.due()) await slice.giveWay();
      if (!isWanted()) return true;
      if (slice.timedOut) return false;
      found.push(this.#rowsOf(read));
    }
    this.#sent.delete(batch);
    for (const [at, read] of batch.entries()) this.#options.take(read, found[at] ?? []);
    return true;
  }

  #rowsOf(read: ReadBlock): readonly number[] {
    return liveOf(read, literalRows(read, this.#options.literal));
  }
}
