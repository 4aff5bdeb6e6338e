import { ApiError, invalidField } from '../../protocol/errors.ts';
import type { WarmRequest } from '../../protocol/search.ts';
import { emptyReadTally } from '../storage/block-fetch.ts';
import { ReadTimedOut } from '../storage/read-deadline.ts';
import { isReadFailure } from '../storage/read-failure.ts';
import type { Snapshot } from '../storage/snapshot.ts';
import { noCondition, type TextCondition } from '../text/trigram-query.ts';
import { figuresJson, tookJson } from './answers.ts';
import { areAtHand } from './candidate-blocks.ts';
import { figuresOf, type QueryContext } from './query.ts';
import { type ReadBlock, readAhead } from './read-ahead.ts';
import { isOutOfTime, wantedBlocks } from './scan.ts';

/**
 * Brings near what queries need, so that they read nothing from the object store.
 *
 * 1. The patterns are judged first: a wrong one is refused before anything is read.
 * 2. Each query's posting lists and candidates are read, the newest first; those of a query without a condition are all.
 * 3. A pass ends where the caches are full: once the first block that it brought has made room for others, each
 *    further one would push out one that a search wants sooner.
 * 4. Then it is looked up what is at hand. A query is ready when it would read nothing.
 */
export async function runWarm(context: QueryContext, request: WarmRequest): Promise<string> {
  const { snapshot } = context;
  const conditions: TextCondition[] = [];
  for (const [i, q] of request.queries.entries()) {
    // Compiling one may take some milliseconds.
    if (context.slice.due()) await context.slice.giveWay();
    conditions.push(conditionOf(context, q, { isRegex: request.regex, field: `queries[${i}]` }));
  }
  let end: End = 'complete';
  for (const condition of conditions) {
    if (end === 'complete') end = await bringNear(context, condition);
  }
  const held = await countHeld(context);
  const queries = request.queries.map((q, i) => {
    const ready = end === 'complete' && isReady(snapshot, conditions[i] as TextCondition, held);
    return `{"q":${JSON.stringify(q)},"ready":${ready}}`;
  });
  const { identity } = context;
  return (
    `{"namespace":${JSON.stringify(identity.name)},"docs":${snapshot.documents},` +
    `"bytes_cached":${held.bytes},"queries":[${queries.join(',')}],` +
    `${tookJson(context.monotonic() - context.beganAt)},` +
    `${figuresJson(figuresOf(context, end === 'timed-out' || held.timedOut))}}`
  );
}

/** 422 for a pattern that is wrong, under the name that it has here. */
function conditionOf(
  { patterns }: QueryContext,
  q: string,
  { isRegex, field }: { readonly isRegex: boolean; readonly field: string },
): TextCondition {
  if (q === '') return noCondition;
  try {
    return patterns.of(q, isRegex).condition;
  } catch (error) {
    if (!(error instanceof ApiError) || error.fields?.q === undefined) throw error;
    throw invalidField(field, error.fields.q);
  }
}

type End = 'complete' | 'timed-out' | 'full' | 'failed';

async function bringNear(
  { snapshot, slice, tally, readFailed }: QueryContext,
  condition: TextCondition,
): Promise<End> {
  const everything = Number.POSITIVE_INFINITY;
  tally.keepsAll = true;
  const wanted = { condition, below: everything, rows: everything, tally };
  try {
    let first: ReadBlock | null = null;
    for await (const candidates of readAhead(wantedBlocks(snapshot, wanted), tally, slice)) {
      first ??= candidates;
      if (slice.due()) await slice.giveWay();
      if (slice.timedOut) return 'timed-out';
      if (first.reader.bytesAtHand(first.number) === 0) return 'full';
    }
    return 'complete';
  } catch (error) {
    if (!isReadFailure(error)) throw error;
    if (isOutOfTime(error)) return 'timed-out';
    readFailed(error);
    return error instanceof ReadTimedOut ? 'timed-out' : 'failed';
  }
}

function isReady({ segments }: Snapshot, condition: TextCondition, held: Held): boolean {
  if (condition.query.kind === 'all') return held.isWhole;
  return areAtHand(segments, { condition, below: Number.POSITIVE_INFINITY, tally: emptyReadTally() });
}

interface Held {
  /** The stored bytes of the document blocks that a search would find without the object store. */
  readonly bytes: number;
  readonly isWhole: boolean;
  readonly timedOut: boolean;
}

async function countHeld({ snapshot, slice }: QueryContext): Promise<Held> {
  let bytes = 0;
  let isWhole = true;
  for (const { reader } of snapshot.segments) {
    const count = reader.blockCount;
    isWhole &&= count !== null;
    for (let block = 0; block < (count ?? 0); block++) {
      const held = reader.bytesAtHand(block);
      bytes += held;
      isWhole &&= held > 0;
      if (slice.due()) await slice.giveWay();
      if (slice.timedOut) return { bytes, isWhole: false, timedOut: true };
    }
  }
  return { bytes, isWhole, timedOut: false };
}
