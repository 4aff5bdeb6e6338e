import { limits } from '../../protocol/limits.ts';
import type { CountRequest, SearchRequest } from '../../protocol/search.ts';
import type { NamespaceIdentity } from '../storage/manifest.ts';
import { isReadFailure } from '../storage/read-failure.ts';
import type { Found } from '../text/judge.ts';
import { type CursorScope, decodeCursor, encodeCursor, queryDigest } from './cursor.ts';
import { type Estimate, estimateCount } from './estimate-count.ts';
import { countExactly } from './exact-count.ts';
import { findInDocument } from './find-in-document.ts';
import { liveLiteralRows } from './literal-rows.ts';
import { frameBytes, Page } from './page.ts';
import {
  answer,
  answerOfHits,
  isCutShort,
  isEverything,
  type JsonAnswer,
  late,
  type QueryContext,
  scan,
  testOf,
} from './query.ts';
import { refuseLargeScan } from './refuse-large-scan.ts';
import { runVectorSearch } from './run-vector-search.ts';

/** Search and count over one snapshot, by walking it newest first. */
export async function runSearch(context: QueryContext, request: SearchRequest): Promise<JsonAnswer> {
  if (request.vector !== undefined) return runVectorSearch(context, request, request.vector);
  const test = testOf(context, request);
  await refuseLargeScan(context, test);
  const scope = cursorScope(context.identity, request);
  const below =
    request.cursor === null
      ? Number.POSITIVE_INFINITY
      : decodeCursor(context.cursorKeys, scope, request.cursor);
  const page = new Page(request, context.room);
  // One document beyond the page tells whether there is another page.
  const enough = isEverything(test) ? request.limit + 1 : undefined;
  const end = await scan(
    context,
    { below, enough, condition: test.condition, filter: test.filter },
    (document) => {
      const take = (found: Found) => (found === null ? true : page.take(document, found, context.slice));
      const found = findInDocument(test, document, page.wanted);
      return found instanceof Promise ? late(context, found, take) : take(found);
    },
  );
  // A search that ran out of time or of storage goes on where it stopped, not at its last hit.
  const from = isCutShort(end) ? end.sequence : page.isFull ? (page.lastSequence ?? below) : null;
  const next =
    from === null ? '' : encodeCursor(context.cursorKeys, scope, Math.min(from, Number.MAX_SAFE_INTEGER));
  const truncated = page.isTruncated ? ',"truncated":true' : '';
  return answerOfHits(context, end, { hits: page.hits, fields: `"next":"${next}"${truncated}` });
}

export async function runCount(context: QueryContext, request: CountRequest): Promise<string> {
  return (request.exact ? null : await runEstimate(context, request)) ?? runExactCount(context, request);
}

/** Null where an exact count costs no more. */
async function runEstimate(context: QueryContext, request: CountRequest): Promise<string | null> {
  const test = testOf(context, { ...request, scan: true });
  if (isEverything(test)) return null;
  const { slice, tally } = context;
  const options = { condition: test.condition, groupsMax: limits.estimateGroupsMax, slice, tally };
  const isMatch = (found: Found) => found !== null;
  try {
    const literal = test.judge?.literal ?? null;
    const estimate = await estimateCount(context.snapshot, options, {
      document(place) {
        const found = findInDocument(test, place, 'none');
        return found instanceof Promise ? late(context, found, isMatch) : isMatch(found);
      },
      block: (block) => (literal === null ? null : (liveLiteralRows(block, literal)?.length ?? null)),
    });
    if (estimate === null) return null;
    const { count, low, high, likely, timedOut } = estimate;
    const bounds = `"count":${count},"exact":${low === high},${boundsJson({ low, high, likely })}"ids":[]`;
    return answer(context, timedOut ? { kind: 'timed-out', sequence: 0 } : { kind: 'complete' }, bounds);
  } catch (error) {
    if (isReadFailure(error)) context.readFailed(error);
    throw error;
  }
}

async function runExactCount(context: QueryContext, request: CountRequest): Promise<string> {
  const test = testOf(context, request);
  await refuseLargeScan(context, test);
  const idsMax = Math.min(limits.countIdsMax, request.limit ?? limits.countIdsMax);
  const { count, ids } = await countExactly(context, test, idsMax);
  const certain = { low: count, high: count };
  const bounds = request.exact ? '' : boundsJson({ ...certain, likely: certain });
  const shown = idsWithin(ids, request.max_bytes);
  const truncated = shown.length < ids.length ? ',"truncated":true' : '';
  return answer(
    context,
    { kind: 'complete' },
    `"count":${count},"exact":true,${bounds}"ids":${JSON.stringify(shown)}${truncated}`,
  );
}

function boundsJson({ low, high, likely }: Pick<Estimate, 'low' | 'high' | 'likely'>): string {
  return `"low":${low},"high":${high},"likely_low":${likely.low},"likely_high":${likely.high},`;
}

/** The first ids, as far as an answer of so many bytes has room for them. */
function idsWithin(ids: readonly string[], bytesMax = limits.answerBytesMax): readonly string[] {
  let bytesLeft = bytesMax - frameBytes;
  const past = ids.findIndex((id) => {
    bytesLeft -= Buffer.byteLength(JSON.stringify(id)) + 1;
    return bytesLeft < 0;
  });
  return past < 0 ? ids : ids.slice(0, past);
}

function cursorScope(identity: NamespaceIdentity, request: SearchRequest): CursorScope {
  // Marked, or the string "1n" would be the same query as the integer.
  const filter = JSON.stringify(request.filter, (_, value) => {
    if (typeof value === 'bigint') return `integer ${value}`;
    return typeof value === 'string' ? `string ${value}` : value;
  });
  return {
    tenantId: identity.tenantId,
    namespaceId: identity.namespaceId,
    queryDigest: queryDigest(request.q, request.regex, filter),
  };
}
