import { threadTimes } from '../../src/base/thread-cpu.ts';
import { DocumentBlock } from '../storage/document-block.ts';
import { QueryPatterns } from '../text/query-pattern.ts';
import { literalRows } from './literal-rows.ts';

/** Blocks of documents to be looked through for a literal by a thread of the lane `scan`: some milliseconds of work. */
export interface FindRowsTask {
  readonly task: 'find-rows';
  /** A literal, as a search asks for it. */
  readonly query: string;
  readonly blocks: readonly SentBlock[];
}

export interface SentBlock {
  /** Its raw form, in shared memory. */
  readonly bytes: Uint8Array;
  /** Rows of the segment to look at, as in `WantedBlock`. */
  readonly ranges: readonly number[];
}

export interface RowsAnswer {
  /** For each block the rows whose texts have the literal, deleted ones too. */
  readonly rows: readonly (readonly number[])[];
  /** CPU time of the thread, in milliseconds. */
  readonly cpuMs: number;
  /** How long it waited for a core meanwhile, in milliseconds. */
  readonly waitedMs: number;
}

/** Has another thread find rows. Rejects where too many wait, or the thread dies. */
export type FindRowsElsewhere = (task: FindRowsTask) => Promise<RowsAnswer>;

/** Finds rows for other threads. */
export class RowFinding {
  readonly #patterns = new QueryPatterns();

  run({ query, blocks }: FindRowsTask): RowsAnswer {
    const began = threadTimes();
    const literal = this.#patterns.of(query, false);
    const rows = blocks.map(({ bytes, ranges }) => {
      const raw = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      return literalRows({ block: new DocumentBlock(raw, 'a scan', 0, true), ranges }, literal);
    });
    const ended = threadTimes();
    return { rows, cpuMs: ended.cpuMs - began.cpuMs, waitedMs: ended.waitedMs - began.waitedMs };
  }
}
