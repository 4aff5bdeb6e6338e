import { invalidField } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import type { SearchRequest } from '../../protocol/search.ts';
import { documentVector } from '../storage/document-batch.ts';
import { isReadFailure, type ReadFailure } from '../storage/read-failure.ts';
import type { Found } from '../text/judge.ts';
import { DistanceFrom, scoreOf } from '../vector/distance.ts';
import { hitJson, isBare } from './answers.ts';
import { findInDocument } from './find-in-document.ts';
import { fuseRanks } from './fuse-ranks.ts';
import type { NearRow } from './near-row.ts';
import { nearestRows } from './nearest-rows.ts';
import { Page } from './page.ts';
import {
  answerOfHits,
  isEverything,
  type JsonAnswer,
  late,
  type QueryContext,
  scan,
  type Test,
  testOf,
} from './query.ts';
import { readRows } from './read-rows.ts';
import { refuseLargeScan } from './refuse-large-scan.ts';
import { isOutOfTime, type ScanEnd, type ScannedDocument } from './scan.ts';
import {
  HitsInOrder,
  type HitTaker,
  type KeptHit,
  NearestHits,
  type NearHit,
  PageOfNearest,
  withRank,
} from './vector-hits.ts';

/**
 * Search by a vector: the nearest of the documents that match `q` and `filter`, nearest first.
 *
 * 1. Without a text to match, vectors are searched apart from documents (nearest-rows.ts), and then the documents of the hits
 *    are read. So it is with a text that matches often: the nearest are judged until there are enough.
 * 2. Else the documents that may match are walked as by a search without a vector, which has their vectors with them; the
 *    texts of those alone are judged that would be among the hits.
 *
 * With `rank: "rrf"` a document's place among the newest that match and its place among the nearest are fused, as far as
 * `limits.fusedRanksMax` places of each, or the limit where that is more. Documents without a vector have the first alone.
 * Where texts match often the two lists are found apart, by 1 and by a walk that ends with the newest; else by one walk, 2.
 */
export async function runVectorSearch(
  context: QueryContext,
  request: SearchRequest,
  numbers: readonly number[],
): Promise<JsonAnswer> {
  const distances = distancesFrom(context, numbers);
  const test = testOf(context, request);
  await refuseLargeScan(context, test);
  const query = { request, test, distances };
  const byVectors = request.rank === undefined ? searchVectors : searchFused;
  return (await byVectors(context, query)) ?? searchDocuments(context, query);
}

interface VectorQuery {
  readonly request: SearchRequest;
  readonly test: Test;
  readonly distances: DistanceFrom;
}

/** How many of the nearest are judged first where there is a text to match, for each hit, and at most. */
const judgedPerHit = 8;
const judgedMax = 2_000;
/** The share of the judged that must match, or walking those that the index names is cheaper. */
const matchingShareMin = 1 / 16;

/** The hits of the nearest rows, nearest first; null where the documents that match are to be walked. */
async function searchVectors(context: QueryContext, query: VectorQuery): Promise<JsonAnswer | null> {
  const { request, distances } = query;
  const found = await findNearest(context, query, () => new PageOfNearest(request, context.room, distances));
  return found === null ? null : answerOf(context, found.end, found.taken.page);
}

/** The newest that match and the nearest, fused by rank; null where one walk over the documents that match finds both. */
async function searchFused(context: QueryContext, query: VectorQuery): Promise<JsonAnswer | null> {
  const { request, test, distances } = query;
  const { room } = context;
  if (request.exact === true) return null;
  const places = fusedPlaces(request);
  const page = new Page(request, room);
  const near = await findNearest(context, query, () => new HitsInOrder<NearHit>(places, room, page.wanted));
  if (near === null) return null;
  const newest = new HitsInOrder<KeptHit>(places, room, page.wanted);
  const { condition, filter } = test;
  const enough = isEverything(test) ? places : undefined;
  const wanted = { below: Number.POSITIVE_INFINITY, enough, condition, filter };
  const walked = await scan(context, wanted, (document) => {
    const take = (found: Found) => {
      if (found === null) return true;
      const { sequence } = document;
      return newest.add({
        sequence,
        distance: distanceOf(document, distances),
        ...jsonOf(document, found, request),
      });
    };
    const found = findInDocument(test, document, page.wanted);
    return found instanceof Promise ? late(context, found, take) : take(found);
  });
  const end = walked.kind === 'timed-out' || walked.kind === 'failed' ? walked : near.end;
  return fusedAnswer(
    context,
    { end, page, newest: newest.hits, nearest: near.taken.hits },
    near.taken.isCut || newest.isCut,
  );
}

/**
 * The nearest rows, and then whether their documents match. Where a text is asked for, this is the way only while texts match
 * often: null where the documents that match are to be walked.
 */
async function findNearest<Taker extends HitTaker>(
  context: QueryContext,
  query: VectorQuery,
  newTaker: () => Taker,
): Promise<{ readonly taken: Taker; readonly end: ScanEnd } | null> {
  const { request, test, distances } = query;
  const { filter, judge } = test;
  const exact = request.exact === true;
  if (judge !== null && (exact || !mayMatchOften(context))) return null;
  let taken = newTaker();
  const { countMax } = taken;
  // Columns may let rows pass whose documents fail, and texts may not match: then more are looked for.
  for (let count = judge === null ? countMax : countMax * judgedPerHit; ; count *= 2) {
    const { rows, end } = await nearestRows(context, { distances, count, filter, exact });
    const became = await takeRows(context, query, { rows, taken });
    if (became instanceof Error) return { taken, end: { kind: 'failed', sequence: 0, cause: became } };
    if (became === 'late') return { taken, end: { kind: 'timed-out', sequence: 0 } };
    if (end.kind !== 'complete' || became === 'full' || rows.length < count) return { taken, end };
    const isRare = taken.count < rows.length * matchingShareMin || count > judgedMax;
    taken.discard();
    if (judge !== null && isRare) return null;
    taken = newTaker();
  }
}

/** What has to be fetched from the store is read once, in the order of the rows, and not here and there. */
function mayMatchOften({ snapshot, foundAs }: QueryContext): boolean {
  return foundAs === 'warm' && snapshot.segments.some(({ graphs }) => (graphs?.length ?? 0) > 0);
}

/** Whether the rows' documents match, until there are enough; or why their documents could not be read. */
async function takeRows(
  context: QueryContext,
  { request, test }: VectorQuery,
  { rows, taken }: { readonly rows: readonly NearRow[]; readonly taken: HitTaker },
): Promise<'full' | 'taken' | 'late' | ReadFailure> {
  const { slice } = context;
  try {
    for (let from = 0; from < rows.length; from += rowsReadAtOnce) {
      const some = rows.slice(from, from + rowsReadAtOnce);
      for (const [at, document] of (await readRows(context, some)).entries()) {
        const judged = findInDocument(test, document, taken.wanted);
        const found = judged instanceof Promise ? await slice.waitUntilDeadline(judged) : judged;
        if (found === 'late') return 'late';
        if (found !== null) {
          const { distance } = some[at] as NearRow;
          const hit = { sequence: document.sequence, distance, ...jsonOf(document, found, request) };
          if (!taken.add(hit)) return 'full';
        }
        if (slice.due()) await slice.giveWay();
        if (slice.timedOut) return 'late';
      }
    }
  } catch (cause) {
    if (!isReadFailure(cause)) throw cause;
    if (isOutOfTime(cause)) return 'late';
    context.readFailed(cause);
    return cause;
  }
  return 'taken';
}

/** Rows of a page that are read together; some of them may be large. */
const rowsReadAtOnce = 32;

async function searchDocuments(
  context: QueryContext,
  { request, test, distances }: VectorQuery,
): Promise<JsonAnswer> {
  const isFused = request.rank === 'rrf';
  const places = isFused ? fusedPlaces(request) : request.limit;
  const nearest = new NearestHits(places, context.room);
  const page = new Page(request, context.room);
  const newest = new HitsInOrder<KeptHit>(isFused ? places : 0, context.room, page.wanted);
  const { condition, filter } = test;
  const wanted = { below: Number.POSITIVE_INFINITY, enough: undefined, condition, filter };
  const end = await scan(context, wanted, (document) => {
    const { sequence } = document;
    const distance = distanceOf(document, distances);
    const isNear = distance !== null && nearest.wants({ distance, sequence });
    if (!isNear && !newest.wantsMore) return true;
    const take = (found: Found) => {
      if (found === null) return true;
      const json = jsonOf(document, found, request);
      if (newest.wantsMore) newest.add({ sequence, distance, ...json });
      if (isNear) nearest.add({ sequence, distance, ...json });
      return true;
    };
    const found = findInDocument(test, document, page.wanted);
    return found instanceof Promise ? late(context, found, take) : take(found);
  });
  const isCut = nearest.isCut || newest.isCut;
  if (isFused) return fusedAnswer(context, { end, page, newest: newest.hits, nearest: nearest.hits }, isCut);
  for (const hit of nearest.hits) {
    if (!page.add(withRank({ ...hit, score: scoreOf(distances.metric, hit.distance) }))) break;
    if (context.slice.due()) await context.slice.giveWay();
  }
  return answerOf(context, end, page, isCut);
}

/** How many places of each order, newest and nearest, are fused. */
const fusedPlaces = ({ limit }: SearchRequest) => Math.max(limit, limits.fusedRanksMax);

interface FusedLists {
  readonly end: ScanEnd;
  readonly page: Page;
  readonly newest: readonly KeptHit[];
  readonly nearest: readonly KeptHit[];
}

async function fusedAnswer(
  context: QueryContext,
  { end, page, newest, nearest }: FusedLists,
  isCut: boolean,
): Promise<JsonAnswer> {
  const { slice } = context;
  for (const { item, score } of fuseRanks([newest, nearest])) {
    if (!page.add(withRank({ ...item, score }))) break;
    if (slice.due()) await slice.giveWay();
  }
  return answerOf(context, end, page, isCut);
}

/** Makes the answer of a search by a vector, which has one page and no cursor. */
function answerOf(context: QueryContext, end: ScanEnd, page: Page, isCut = false): Promise<JsonAnswer> {
  const truncated = page.isTruncated || isCut ? ',"truncated":true' : '';
  return answerOfHits(context, end, { hits: page.hits, fields: `"next":""${truncated}` });
}

/** Throws ApiError 422 for a vector that the namespace's can't be compared with. */
function distancesFrom({ vector }: QueryContext, numbers: readonly number[]): DistanceFrom {
  if (vector === null)
    throw invalidField(
      'vector',
      'this namespace has no vectors: search by q, or write documents with vectors into one that has vector.dims',
    );
  if (numbers.length !== vector.dims)
    throw invalidField(
      'vector',
      `must have ${vector.dims} numbers, as the namespace's vectors: it has ${numbers.length}`,
    );
  const query = Float32Array.from(numbers);
  if (!query.every(Number.isFinite)) throw invalidField('vector', 'must have numbers that fit 32 bits');
  return new DistanceFrom(query, vector.metric);
}

function distanceOf({ buffer, offset }: ScannedDocument, distances: DistanceFrom): number | null {
  const vector = documentVector(buffer, offset);
  return vector === null ? null : distances.to(vector);
}

/** Makes the JSON of a hit twice: with all that was included, and bare. */
function jsonOf(document: ScannedDocument, found: NonNullable<Found>, request: SearchRequest) {
  const json = hitJson(document, found, request);
  return { json, bare: isBare(request) ? json : hitJson(document, found) };
}
