import { limits } from '../../protocol/limits.ts';
import type { WantedLiteral } from '../text/judge.ts';
import type { RowsAnswer } from './find-rows-task.ts';
import { isByRows, literalRows, liveOf } from './literal-rows.ts';
import type { QueryContext } from './query.ts';
import type { ReadBlock } from './read-ahead.ts';

export interface SharedScanOptions {
  readonly literal: WantedLiteral;
  /** Takes the live rows of a block, by their numbers in the segment, whose texts have the literal; blocks come in any order. */
  readonly take: (block: ReadBlock, rows: readonly number[]) => void;
  /** Bytes of blocks that are looked through here before others help. */
  readonly aloneBytes?: number;
  /** Bytes of blocks that are sent at once. */
  readonly batchBytes?: number;
}

/** Waiting for a core that says nothing yet, in milliseconds: the kernel counts it by the time that threads have at once. */
const waitedMsMin = 8;

/** Blocks that another thread has, or will have, and whose rows were not taken yet. */
type Batch = readonly ReadBlock[];

/**
 * Looks through many blocks for a literal, by this thread and by those of the lane `scan` at the same time, as far as cores are idle. A few
 * batches are elsewhere at once, and meanwhile this thread looks through what comes next, so whoever helps slowly has less to do, and where
 * nobody helps, nothing is waited for: at the end this thread looks through what nobody has answered yet.
 */
export class SharedScan {
  readonly #context: Pick<QueryContext, 'findRows' | 'slice'>;
  readonly #options: Required<SharedScanOptions>;
  #bytes = 0;
  /** Collected for another thread; null where this one takes the next block. */
  #open: ReadBlock[] | null = null;
  #openBytes = 0;
  readonly #sent = new Set<Batch>();
  /** What nobody else would look through. */
  readonly #refused: Batch[] = [];
  /** What the batches have taken elsewhere, in milliseconds. */
  readonly #helpersMs = { onCore: 0, waited: 0 };
  /** Whether cores are busy, or the lane is. */
  #isCrowded = false;

  constructor(context: Pick<QueryContext, 'findRows' | 'slice'>, options: SharedScanOptions) {
    this.#context = context;
    this.#options = {
      aloneBytes: limits.scanAloneBytes,
      batchBytes: limits.scanBatchBytes,
      ...options,
    };
  }

  /** Looks through a block, now or later; answers false where it has to be judged text by text. */
  add(read: ReadBlock): boolean {
    if (!isByRows(read)) return false;
    for (const batch of this.#refused.splice(0)) this.#lookThrough(batch);
    const { aloneBytes, batchBytes } = this.#options;
    const { buffer } = read.block;
    this.#bytes += buffer.length;
    if (this.#open === null && this.#bytes > aloneBytes && this.#hasHelp) this.#open = [];
    // What is not shared would be copied.
    if (this.#open === null || !(buffer.buffer instanceof SharedArrayBuffer)) {
      this.#lookThrough([read]);
      return true;
    }
    this.#open.push(read);
    this.#openBytes += buffer.length;
    if (this.#openBytes >= batchBytes) this.#send();
    return true;
  }

  /** Answers whether all rows were taken; false where the time of the query was over before. */
  async finish(): Promise<boolean> {
    const open = this.#open ?? [];
    this.#open = null;
    if (!(await this.#takeBack(open))) return false;
    // Answers that have come are heard now.
    if (this.#sent.size > 0) await this.#context.slice.giveWay();
    // The last one is the least likely to be under way.
    for (const batch of [...this.#sent].reverse())
      if (!(await this.#takeBack(batch, () => this.#sent.has(batch)))) return false;
    for (const batch of this.#refused.splice(0)) if (!(await this.#takeBack(batch))) return false;
    return true;
  }

  get #hasHelp(): boolean {
    return !this.#isCrowded && this.#sent.size < limits.scanBatchesAheadMax;
  }

  #send(): void {
    const batch = this.#open ?? [];
    const { findRows } = this.#context;
    const blocks = batch.map(({ block, ranges }) => ({ bytes: block.buffer, ranges }));
    this.#open = null;
    this.#openBytes = 0;
    this.#sent.add(batch);
    findRows({ task: 'find-rows', query: this.#options.literal.query, blocks }).then(
      (found) => this.#hear(batch, found),
      () => {
        this.#isCrowded = true;
        if (this.#sent.delete(batch)) this.#refused.push(batch);
      },
    );
  }

  #hear(batch: Batch, { rows, cpuMs, waitedMs }: RowsAnswer): void {
    this.#context.slice.charge(cpuMs);
    this.#helpersMs.onCore += cpuMs;
    this.#helpersMs.waited += waitedMs;
    if (this.#helpersMs.waited > this.#helpersMs.onCore + waitedMsMin) this.#isCrowded = true;
    // Taken back meanwhile.
    if (!this.#sent.delete(batch)) return;
    for (const [at, read] of batch.entries()) this.#options.take(read, liveOf(read, rows[at] ?? []));
  }

  #lookThrough(batch: Batch): void {
    for (const read of batch) this.#options.take(read, this.#rowsOf(read));
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
