import { invalidField } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import type { SearchRequest } from '../../protocol/search.ts';
import { documentVector } from '../storage/document-batch.ts';
import { isReadFailure, type ReadFailure } from '../storage/read-failure.ts';
import type { Found } from '../text/judge.ts';
import { DistanceFrom, scoreOf } from '../vector/distance.ts';
import { Nearest, type Ranked } from '../vector/nearest.ts';
import type { AnswerRoom } from './answer-room.ts';
import { hitJson, isBare } from './answers.ts';
import { findInDocument } from './document-filter.ts';
import { fuseRanks } from './fuse-ranks.ts';
import type { NearRow } from './near-row.ts';
import { nearestRows } from './nearest-rows.ts';
import { Page } from './page.ts';
import { answer, late, type QueryContext, scan, type Test, testOf } from './query.ts';
import { readRows } from './read-rows.ts';
import { refuseLargeScan } from './refuse-large-scan.ts';
import { isOutOfTime, type ScanEnd, type ScannedDocument } from './scan.ts';

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
 */
export async function runVectorSearch(
  context: QueryContext,
  request: SearchRequest,
  numbers: readonly number[],
): Promise<string> {
  const distances = distancesFrom(context, numbers);
  const test = testOf(context, request);
  await refuseLargeScan(context, test);
  const query = { request, test, distances };
  if (request.rank !== undefined) return searchDocuments(context, query);
  return (await searchVectors(context, query)) ?? searchDocuments(context, query);
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

/**
 * The nearest rows, and then whether their documents match. Where a text is asked for, this is the way only while texts match
 * often: null where the documents that match are to be walked.
 */
async function searchVectors(context: QueryContext, query: VectorQuery): Promise<string | null> {
  const { request, test, distances } = query;
  const { filter, judge } = test;
  const { limit } = request;
  const exact = request.exact === true;
  if (judge !== null && (exact || !mayMatchOften(context))) return null;
  // Columns may let rows pass whose documents fail, and texts may not match: then more are looked for.
  for (let count = judge === null ? limit : limit * judgedPerHit; ; count *= 2) {
    const page = new Page(request, context.room);
    const { rows, end } = await nearestRows(context, { distances, count, filter, exact });
    const taken = await takeRows(context, query, { rows, page });
    if (taken instanceof Error) return answerOf(context, { kind: 'failed', sequence: 0, cause: taken }, page);
    if (taken === 'late') return answerOf(context, { kind: 'timed-out', sequence: 0 }, page);
    const isDone = page.hits.length === limit || page.isTruncated || rows.length < count;
    if (end.kind !== 'complete' || isDone) return answerOf(context, end, page);
    const isRare = page.hits.length < rows.length * matchingShareMin || count > judgedMax;
    page.discard();
    if (judge !== null && isRare) return null;
  }
}

/** What has to be fetched from the store is read once, in the order of the rows, and not here and there. */
function mayMatchOften({ snapshot, foundAs }: QueryContext): boolean {
  return foundAs === 'warm' && snapshot.segments.some(({ graphs }) => (graphs?.length ?? 0) > 0);
}

/** Whether the rows' documents match, until the page is full; or why their documents could not be read. */
async function takeRows(
  context: QueryContext,
  { request, test, distances }: VectorQuery,
  { rows, page }: { readonly rows: readonly NearRow[]; readonly page: Page },
): Promise<'taken' | 'late' | ReadFailure> {
  const { slice } = context;
  try {
    for (let from = 0; from < rows.length; from += rowsReadAtOnce) {
      const some = rows.slice(from, from + rowsReadAtOnce);
      for (const [at, document] of (await readRows(context, some)).entries()) {
        const judged = findInDocument(test, document, page.wanted);
        const found = judged instanceof Promise ? await slice.waitUntilDeadline(judged) : judged;
        if (found === 'late') return 'late';
        if (found === null) continue;
        const { distance } = some[at] as NearRow;
        const json = hitJson(document, found, request);
        const bare = isBare(request) ? json : hitJson(document, found);
        const score = scoreOf(distances.metric, distance);
        if (!page.add(withRank({ sequence: document.sequence, distance, score, json, bare }))) return 'taken';
        if (page.hits.length === request.limit) return 'taken';
      }
      if (slice.due()) await slice.giveWay();
      if (slice.timedOut) return 'late';
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
): Promise<string> {
  const isFused = request.rank === 'rrf';
  const places = isFused ? Math.max(request.limit, limits.fusedRanksMax) : request.limit;
  const nearest = new NearestHits(places, context.room);
  const newest = new NewestHits(isFused ? places : 0, context.room);
  const page = new Page(request, context.room);
  const { condition, filter } = test;
  const wanted = { below: Number.POSITIVE_INFINITY, enough: undefined, condition, filter };
  const end = await scan(context, wanted, (document) => {
    const { sequence } = document;
    const distance = distanceOf(document, distances);
    const isNear = distance !== null && nearest.wants({ distance, sequence });
    if (!isNear && !newest.wantsMore) return true;
    const take = (found: Found) => {
      if (found === null) return true;
      const json = hitJson(document, found, request);
      const bare = isBare(request) ? json : hitJson(document, found);
      if (newest.wantsMore) newest.add({ sequence, distance, json, bare });
      if (isNear) nearest.add({ sequence, distance, json, bare });
      return true;
    };
    const found = findInDocument(test, document, page.wanted);
    return found instanceof Promise ? late(context, found, take) : take(found);
  });
  const hits: readonly Scored[] = isFused
    ? fuseRanks<KeptHit>([newest.hits, nearest.hits]).map(({ item, score }) => ({ ...item, score }))
    : nearest.hits.map((hit) => ({ ...hit, score: scoreOf(distances.metric, hit.distance) }));
  for (const hit of hits) if (!page.add(withRank(hit))) break;
  return answerOf(context, end, page, nearest.isCut || newest.isCut);
}

/** Answers by a vector do not page. */
function answerOf(context: QueryContext, end: ScanEnd, page: Page, isCut = false): string {
  const truncated = page.isTruncated || isCut ? ',"truncated":true' : '';
  return answer(context, end, `"hits":[${page.hits.join(',')}],"next":""${truncated}`);
}

interface KeptHit {
  readonly sequence: number;
  /** Null where the document has no vector. */
  readonly distance: number | null;
  /** The hit with all that was included; `bare` is without. */
  readonly json: string;
  readonly bare: string;
}

/** A kept hit that has a vector. */
type NearHit = KeptHit & Ranked;

interface Scored extends KeptHit {
  readonly score: number;
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

function withRank({ json, bare, sequence, distance, score }: Scored) {
  const rank = `,"score":${score}${distance === null ? '' : `,"distance":${distance}`}}`;
  return { sequence, json: json.slice(0, -1) + rank, bare: bare.slice(0, -1) + rank };
}

/** A hit is kept with what was included, and without, in case it does not fit. */
function bytesOf({ json, bare }: Pick<KeptHit, 'json' | 'bare'>): number {
  return json === bare ? json.length : json.length + bare.length;
}

/** Hits come whole, so what is kept is bounded as an answer is: the worst go where there are too many bytes. */
class NearestHits {
  readonly #nearest: Nearest<NearHit>;
  readonly #room: AnswerRoom;
  #bytes = 0;
  #isCut = false;

  constructor(count: number, room: AnswerRoom) {
    this.#nearest = new Nearest(count);
    this.#room = room;
  }

  get isCut(): boolean {
    return this.#isCut;
  }

  /** The nearest first. */
  get hits(): readonly NearHit[] {
    return this.#nearest.sorted();
  }

  wants(ranked: Ranked): boolean {
    return this.#nearest.wants(ranked);
  }

  add(hit: NearHit): void {
    const gone = this.#nearest.add(hit);
    if (gone !== null) this.#letGo(gone);
    this.#bytes += bytesOf(hit);
    while (this.#bytes > limits.answerBytesMax || !this.#room.take(bytesOf(hit))) {
      const worst = this.#nearest.dropWorst();
      if (worst === null) return;
      this.#isCut = true;
      this.#bytes -= bytesOf(worst);
      if (worst === hit) return;
      this.#room.give(bytesOf(worst));
    }
  }

  #letGo(hit: NearHit): void {
    this.#bytes -= bytesOf(hit);
    this.#room.give(bytesOf(hit));
  }
}

class NewestHits {
  readonly hits: KeptHit[] = [];
  readonly #count: number;
  readonly #room: AnswerRoom;
  #bytes = 0;
  #isCut = false;

  constructor(count: number, room: AnswerRoom) {
    this.#count = count;
    this.#room = room;
  }

  get isCut(): boolean {
    return this.#isCut;
  }

  get wantsMore(): boolean {
    return this.hits.length < this.#count && !this.#isCut;
  }

  add(hit: KeptHit): void {
    this.hits.push(hit);
    this.#bytes += bytesOf(hit);
    this.#isCut = this.#bytes > limits.answerBytesMax || !this.#room.take(bytesOf(hit));
  }
}
