import type { WarmRequest } from '../../protocol/search.ts';
import { isReadFailure } from '../storage/read-failure.ts';
import type { Snapshot } from '../storage/snapshot.ts';
import { reportJson, tookJson } from './answers.ts';
import { blocksNewestFirst } from './read-ahead.ts';
import { matcherFor, type QueryContext, queryReport } from './run-search.ts';

/**
 * Brings near what queries need, so that they read nothing from the object store.
 *
 * 1. The patterns are judged first: a wrong one is refused before anything is read.
 * 2. Without an index every query needs every block, so all queries share one pass over them, the newest first.
 * 3. The pass ends where the caches are full: once the first block that it brought has made room for others, each
 *    further one would push out one that a search wants sooner.
 * 4. Then it is counted what is at hand. Ready means all of it: the next search reads nothing.
 */
export async function runWarm(context: QueryContext, request: WarmRequest): Promise<string> {
  for (const q of request.queries) matcherFor(q, request.regex);
  const end = request.queries.length === 0 ? 'complete' : await bringNear(context);
  const held = await countHeld(context);
  const ready = end === 'complete' && held.isWhole;
  const queries = request.queries.map((q) => `{"q":${JSON.stringify(q)},"ready":${ready}}`);
  const { identity, snapshot } = context;
  return (
    `{"namespace":${JSON.stringify(identity.name)},"docs":${snapshot.documents},` +
    `"bytes_cached":${held.bytes},"queries":[${queries.join(',')}],` +
    `${tookJson(context.monotonic() - context.beganAt)},` +
    `${reportJson(queryReport(context, end === 'timed-out' || held.timedOut))}}`
  );
}

type End = 'complete' | 'timed-out' | 'full' | 'failed';

async function bringNear({ snapshot, slice, report, readFailed }: QueryContext): Promise<End> {
  const wanted = { below: Number.POSITIVE_INFINITY, rows: Number.POSITIVE_INFINITY, report };
  try {
    for await (const _ of blocksNewestFirst(snapshot.segments, wanted)) {
      if (slice.due()) await slice.giveWay();
      if (slice.timedOut) return 'timed-out';
      if (newestIsGone(snapshot)) return 'full';
    }
    return 'complete';
  } catch (error) {
    if (!isReadFailure(error)) throw error;
    readFailed(error);
    return 'failed';
  }
}

function newestIsGone({ segments }: Snapshot): boolean {
  const newest = segments[0]?.reader;
  return newest !== undefined && newest.bytesAtHand((newest.blockCount ?? 0) - 1) === 0;
}

interface Held {
  /** As stored, of the document blocks that a search would find without the object store. */
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
