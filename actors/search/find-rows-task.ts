import { threadTimes } from '../../src/base/thread-cpu.ts';
import { DocumentBlock } from '../storage/document-block.ts';
import { QueryPatterns } from '../text/query-pattern.ts';
import { literalRows } from './literal-rows.ts';
import type { ReadBlock } from './read-ahead.ts';

/** Blocks of documents to be looked through for a literal by a thread of the lane `scan`: some milliseconds of work. */
export interface FindRowsTask {
  readonly task: 'find-rows';
  /** A literal that the kernel finds (literal-piece.ts), as a search asks for it. */
  readonly query: string;
  /** The blocks' raw forms, in shared memory. */
  readonly blocks: readonly Uint8Array[];
  /** Rows of the segments to look at, pairs as in `WantedBlock`, those of one block after those of the other. */
  readonly ranges: Uint32Array;
  /** Where in `ranges` those of each block end. */
  readonly rangeEnds: Uint32Array;
}

/** What a thread of the lane `scan` has found in the blocks of a task. */
export interface RowsAnswer {
  /** Rows whose texts have the literal, deleted ones too, those of one block after those of the other. */
  readonly rows: Uint32Array;
  /** Where in `rows` those of each block end. */
  readonly rowEnds: Uint32Array;
  /** CPU time of the thread, in milliseconds. */
  readonly cpuMs: number;
  /** How long it waited for a core meanwhile, in milliseconds. */
  readonly waitedMs: number;
}

/** Has another thread find rows. Rejects where too many wait, or the thread dies. */
export type FindRowsElsewhere = (task: FindRowsTask) => Promise<RowsAnswer>;

/** Makes the task of a batch. */
export function taskOf(query: string, batch: readonly ReadBlock[]): FindRowsTask {
  const { joined, ends } = join(batch.map(({ ranges }) => ranges));
  const blocks = batch.map(({ block }) => block.buffer);
  return { task: 'find-rows', query, blocks, ranges: joined, rangeEnds: ends };
}

/** Answers the rows that were found in the block at a place of the batch. */
export function rowsOfAnswer({ rows, rowEnds }: RowsAnswer, at: number): number[] {
  return [...part(rows, rowEnds, at)];
}

/** Finds rows for other threads. */
export class RowFinding {
  readonly #patterns = new QueryPatterns();

  run({ query, blocks, ranges, rangeEnds }: FindRowsTask): RowsAnswer {
    const began = threadTimes();
    const literal = this.#patterns.of(query, false);
    const found = blocks.map((bytes, at) => {
      const raw = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      const block = new DocumentBlock(raw, 'a scan', 0, true);
      return literalRows({ block, ranges: [...part(ranges, rangeEnds, at)] }, literal);
    });
    const { joined, ends } = join(found);
    const ended = threadTimes();
    return {
      rows: joined,
      rowEnds: ends,
      cpuMs: ended.cpuMs - began.cpuMs,
      waitedMs: ended.waitedMs - began.waitedMs,
    };
  }
}

/** Numbers cross threads as bytes: lists of them would be read one by one by each thread on the way. */
function join(lists: readonly (readonly number[])[]): {
  readonly joined: Uint32Array;
  readonly ends: Uint32Array;
} {
  const ends = new Uint32Array(lists.length);
  let end = 0;
  for (const [at, list] of lists.entries()) ends[at] = end += list.length;
  const joined = new Uint32Array(end);
  for (const [at, list] of lists.entries()) joined.set(list, (ends[at] as number) - list.length);
  return { joined, ends };
}

function part(joined: Uint32Array, ends: Uint32Array, at: number): Uint32Array {
  return joined.subarray(at === 0 ? 0 : ends[at - 1], ends[at]);
}
