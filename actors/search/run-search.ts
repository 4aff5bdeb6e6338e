import { ApiError } from '../../protocol/errors.ts';
import type { Filter } from '../../protocol/filter.ts';
import { limits } from '../../protocol/limits.ts';
import type { CountRequest, SearchRequest } from '../../protocol/search.ts';
import type { ReadReport } from '../storage/block-fetch.ts';
import { documentId } from '../storage/document-batch.ts';
import type { NamespaceIdentity } from '../storage/manifest.ts';
import { isReadFailure, type ReadFailure } from '../storage/read-failure.ts';
import type { Snapshot } from '../storage/snapshot.ts';
import { type Found, Judge, type MatchElsewhere } from '../text/judge.ts';
import { queryPattern } from '../text/query-pattern.ts';
import { noCondition, type TextCondition } from '../text/trigram-query.ts';
import { type QueryReport, reportJson, type Temperature, tookJson } from './answers.ts';
import { type CursorScope, decodeCursor, encodeCursor, queryDigest } from './cursor.ts';
import { type DocumentTest, findInDocument } from './document-filter.ts';
import { estimateCount } from './estimate-count.ts';
import { Page } from './page.ts';
import { type ScanEnd, scanNewestFirst } from './scan.ts';
import type { TimeSlice } from './time-slice.ts';

/** Search and count over one snapshot, by walking it newest first. Answers are JSON text. */
export interface QueryContext {
  readonly identity: NamespaceIdentity;
  readonly snapshot: Snapshot;
  readonly slice: TimeSlice;
  readonly report: ReadReport;
  readonly temperature: Temperature;
  readonly cursorKey: Uint8Array;
  /** For texts that RE2 may be long about. */
  readonly match: MatchElsewhere;
  readonly monotonic: () => number;
  readonly beganAt: number;
  /**
   * Called where the answer will be partial. Throws the failure where the snapshot may be old and the query should begin
   * again with another.
   */
  readonly readFailed: (failure: ReadFailure) => void;
}

export async function runSearch(context: QueryContext, request: SearchRequest): Promise<string> {
  const test = testOf(context, request);
  const scope = cursorScope(context.identity, request);
  const below =
    request.cursor === null
      ? Number.POSITIVE_INFINITY
      : decodeCursor(context.cursorKey, scope, request.cursor);
  const page = new Page(request);
  // One document beyond the page tells whether there is another page.
  const enough = isEverything(test) ? request.limit + 1 : undefined;
  const end = await scan(
    context,
    { below, enough, condition: test.condition, filter: test.filter },
    (document) => {
      const take = (found: Found) => (found === null ? true : page.take(document, found));
      const found = findInDocument(test, document, page.wanted);
      return found instanceof Promise ? late(context, found, take) : take(found);
    },
  );
  // A search that ran out of time or of storage goes on where it stopped, not at its last hit.
  const from = isCutShort(end) ? end.sequence : page.isFull ? (page.lastSequence ?? below) : null;
  const next =
    from === null ? '' : encodeCursor(context.cursorKey, scope, Math.min(from, Number.MAX_SAFE_INTEGER));
  const truncated = page.isTruncated ? ',"truncated":true' : '';
  return answer(context, end, `"hits":[${page.hits.join(',')}],"next":"${next}"${truncated}`);
}

export async function runCount(context: QueryContext, request: CountRequest): Promise<string> {
  return (request.exact ? null : await runEstimate(context, request)) ?? runExactCount(context, request);
}

/** Null where an exact count costs no more. */
async function runEstimate(context: QueryContext, request: CountRequest): Promise<string | null> {
  const test = testOf(context, { ...request, scan: true });
  if (isEverything(test)) return null;
  const { slice, report } = context;
  const options = { condition: test.condition, groupsMax: limits.estimateGroupsMax, slice, report };
  const isMatch = (found: Found) => found !== null;
  try {
    const estimate = await estimateCount(context.snapshot, options, (document) => {
      const found = findInDocument(test, document, 'none');
      return found instanceof Promise ? late(context, found, isMatch) : isMatch(found);
    });
    if (estimate === null) return null;
    const { count, low, high } = estimate;
    const bounds = `"count":${count},"exact":${low === high},"low":${low},"high":${high},"ids":[]`;
    return answer(context, { kind: 'complete' }, bounds);
  } catch (error) {
    if (isReadFailure(error)) context.readFailed(error);
    throw error;
  }
}

async function runExactCount(context: QueryContext, request: CountRequest): Promise<string> {
  const test = testOf(context, request);
  let count = 0;
  const ids: string[] = [];
  const everything = isEverything(test);
  const enough = everything ? limits.countIdsMax : undefined;
  const { condition, filter } = test;
  const wanted = { below: Number.POSITIVE_INFINITY, enough, condition, filter };
  const end = await scan(context, wanted, (document) => {
    const take = (found: Found) => {
      if (found === null) return true;
      count++;
      if (ids.length < limits.countIdsMax) ids.push(documentId(document.buffer, document.offset));
      return !everything || ids.length < limits.countIdsMax;
    };
    const found = findInDocument(test, document, 'none');
    return found instanceof Promise ? late(context, found, take) : take(found);
  });
  if (end.kind === 'failed') throw end.cause;
  if (end.kind === 'timed-out') {
    throw new ApiError('query_timeout', 'the count ran past the time limit of your plan: narrow the query');
  }
  // How many documents live is known without reading them.
  const exact = everything ? context.snapshot.documents : count;
  const bounds = request.exact ? '' : `"low":${exact},"high":${exact},`;
  return answer(context, end, `"count":${exact},"exact":true,${bounds}"ids":${JSON.stringify(ids)}`);
}

function isCutShort(end: ScanEnd): end is Extract<ScanEnd, { sequence: number }> {
  return end.kind === 'timed-out' || end.kind === 'failed';
}

/** What is judged elsewhere is waited for as long as the query may take. */
async function late(
  { slice }: QueryContext,
  found: Promise<Found>,
  take: (found: Found) => boolean,
): Promise<boolean | 'late'> {
  const judged = await slice.waitUntilDeadline(found);
  return judged === 'late' ? 'late' : take(judged);
}

/** What a query asks of documents, and what the index knows of it. 422 for a pattern that is wrong, or that must scan. */
function testOf(context: QueryContext, request: SearchRequest | CountRequest): Test {
  const { filter, q, regex, scan } = request;
  if (q === '') return { filter, judge: null, condition: noCondition };
  const pattern = queryPattern(q, regex);
  if (pattern.condition.query.kind === 'all' && regex && !scan) refuseLargeScan(context.snapshot);
  const judge = new Judge(pattern, { elsewhere: context.match, turns: context.slice });
  return { filter, judge, condition: pattern.condition };
}

interface Test extends DocumentTest {
  readonly condition: TextCondition;
}

function refuseLargeScan({ memtables, segments }: Snapshot): void {
  let documents = 0;
  let bytes = 0;
  for (const { memtable, rowCount } of memtables) {
    documents += rowCount;
    bytes += memtable.documentBytes;
  }
  for (const { reader } of segments) {
    documents += reader.rowCount;
    bytes += reader.toc.docsRawBytes;
  }
  if (documents <= limits.scanDocumentsMax && bytes <= limits.scanBytesMax) return;
  const problem = 'the index cannot narrow this regex, and the namespace is big';
  throw new ApiError('scan_refused', `q: ${problem}: add a literal of three characters, or send scan: true`, {
    fields: { q: problem },
  });
}

function isEverything(test: DocumentTest): boolean {
  return test.filter === null && test.judge === null;
}

async function scan(
  context: QueryContext,
  wanted: {
    readonly below: number;
    readonly enough: number | undefined;
    readonly condition: TextCondition;
    readonly filter: Filter | null;
  },
  visit: Parameters<typeof scanNewestFirst>[2],
): Promise<ScanEnd> {
  const { below, condition, filter, enough = Number.POSITIVE_INFINITY } = wanted;
  const options = { below, enough, condition, filter, slice: context.slice, report: context.report };
  const end = await scanNewestFirst(context.snapshot, options, visit);
  if (end.kind === 'failed') context.readFailed(end.cause);
  return end;
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

export function queryReport(context: QueryContext, timedOut: boolean): QueryReport {
  const { temperature, report, slice } = context;
  return {
    temperature,
    storeGets: report.storeGets,
    storeBytes: report.storeBytes,
    cpuMs: slice.cpuMs,
    timedOut,
  };
}

function answer(context: QueryContext, end: ScanEnd, found: string): string {
  const { identity, snapshot } = context;
  return (
    `{"namespace":${JSON.stringify(identity.name)},${found},"docs":${snapshot.documents},` +
    `"version":${snapshot.version},${tookJson(context.monotonic() - context.beganAt)},"partial":${isCutShort(end)},` +
    `${reportJson(queryReport(context, end.kind === 'timed-out'))}}`
  );
}
