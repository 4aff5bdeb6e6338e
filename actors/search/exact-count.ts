/**
 * How many documents pass a test, exactly.
 *
 * 1. Without a test, the snapshot knows; documents are read for the ids that are shown, and no more.
 * 2. With a filter alone, columns count the rows of which they are sure (sure-rows.ts), and only the segments' documents of the others
 *    are read. The ids that are shown are found as by a search.
 * 3. With a text to match, every document that may match is judged; a literal in all texts of a block at once, by all cores
 *    that are idle (shared-scan.ts), once there are as many ids as are shown.
 */
import { ApiError } from '../../protocol/errors.ts';
import type { Filter } from '../../protocol/filter.ts';
import { documentId } from '../storage/document-batch.ts';
import { isReadFailure } from '../storage/read-failure.ts';
import type { Found } from '../text/judge.ts';
import { noCondition } from '../text/trigram-query.ts';
import { findInDocument } from './find-in-document.ts';
import { isEverything, late, type QueryContext, scan, type Test } from './query.ts';
import type { ReadBlock } from './read-ahead.ts';
import { isOutOfTime, type ScanEnd } from './scan.ts';
import { SharedScan } from './shared-scan.ts';
import { countSureRows, type SureRows } from './sure-rows.ts';

export interface ExactCount {
  readonly count: number;
  /** Ids of the newest documents that pass, at most as many as are wanted. */
  readonly ids: readonly string[];
}

/** Counts the documents that pass a test. Throws `query_timeout` where the time of the query is over, and what reading throws. */
export async function countExactly(context: QueryContext, test: Test, idsMax: number): Promise<ExactCount> {
  const { filter } = test;
  if (isEverything(test)) {
    const { ids } = await walk(context, test, { idsMax, stopsAtIds: true });
    return { count: context.snapshot.documents, ids };
  }
  if (test.judge !== null || filter === null) return walk(context, test, { idsMax, stopsAtIds: false });
  const found = await walk(context, test, { idsMax, stopsAtIds: true });
  return found.ids.length < idsMax
    ? found
    : { count: await countByColumns(context, test, filter), ids: found.ids };
}

/** Counts what passes, newest first; where it stops at the last id that is wanted, there may be more. */
async function walk(
  context: QueryContext,
  test: Test,
  { idsMax, stopsAtIds }: { readonly idsMax: number; readonly stopsAtIds: boolean },
): Promise<ExactCount> {
  let count = 0;
  const ids: string[] = [];
  if (stopsAtIds && idsMax === 0) return { count, ids };
  const { condition, filter } = test;
  const enough = isEverything(test) ? idsMax : undefined;
  const literal = test.judge?.literal ?? null;
  const blocks =
    literal === null
      ? null
      : new SharedScan(context, {
          literal,
          take(_, rows) {
            count += rows.length;
          },
        });
  const takeBlock = (block: ReadBlock) => {
    const isSure = filter === null || block.passes === true;
    return isSure && ids.length >= idsMax && blocks?.add(block) === true;
  };
  const wanted = { below: Number.POSITIVE_INFINITY, enough, condition, filter, takeBlock };
  const end = await scan(context, wanted, (document) => {
    const take = (found: Found) => {
      if (found === null) return true;
      count++;
      if (ids.length < idsMax) ids.push(documentId(document.buffer, document.offset));
      return !stopsAtIds || ids.length < idsMax;
    };
    const found = findInDocument(test, document, 'none');
    return found instanceof Promise ? late(context, found, take) : take(found);
  });
  throwUnlessWhole(end);
  if ((await blocks?.finish()) === false) throw tooLate();
  return { count, ids };
}

async function countByColumns(context: QueryContext, test: Test, filter: Filter): Promise<number> {
  const { sure, asks } = await sureRows(context, filter);
  if (!asks) return sure;
  let count = sure;
  // Memtables are counted already.
  const segments = { ...context, snapshot: { ...context.snapshot, memtables: [] } };
  const wanted = {
    below: Number.POSITIVE_INFINITY,
    enough: undefined,
    condition: noCondition,
    filter,
    unsureOnly: true,
  };
  const end = await scan(segments, wanted, (document) => {
    if (findInDocument(test, document, 'none') !== null) count++;
    return true;
  });
  throwUnlessWhole(end);
  // What was asked for too late was not asked of columns: rows that they are sure of may have been counted again.
  if (context.slice.timedOut) throw tooLate();
  return count;
}

async function sureRows(context: QueryContext, filter: Filter): Promise<SureRows> {
  try {
    const counted = await countSureRows(context, filter);
    if (counted === null) throw tooLate();
    return counted;
  } catch (error) {
    if (!isReadFailure(error)) throw error;
    if (isOutOfTime(error)) throw tooLate();
    context.readFailed(error);
    throw error;
  }
}

function throwUnlessWhole(end: ScanEnd): void {
  if (end.kind === 'failed') throw end.cause;
  if (end.kind === 'timed-out') throw tooLate();
}

function tooLate(): ApiError {
  return new ApiError('query_timeout', 'the count ran past the time limit of your plan: narrow the query');
}
