import { invalidField } from '../../protocol/errors.ts';
import { limits } from '../../protocol/limits.ts';
import type { SearchRequest } from '../../protocol/search.ts';
import { documentVector } from '../storage/document-batch.ts';
import { isReadFailure, type ReadFailure } from '../storage/read-failure.ts';
import type { Found } from '../text/judge.ts';
import { DistanceFrom, scoreOf } from '../vector/distance.ts';
import { Nearest, type Ranked } from '../vector/nearest.ts';
import { hitJson } from './answers.ts';
import { findInDocument, passesFilter } from './document-filter.ts';
import { fuseRanks } from './fuse-ranks.ts';
import { type NearRow, nearestRows } from './nearest-rows.ts';
import { Page } from './page.ts';
import { answer, late, type QueryContext, scan, type Test, testOf } from './query.ts';
import { readRows } from './read-rows.ts';
import type { ScanEnd, ScannedDocument } from './scan.ts';

/**
 * Search by a vector: the nearest of the documents that match `q` and `filter`, nearest first.
 *
 * 1. Without a text to match, vectors are searched apart from documents (nearest-rows.ts), and then the documents of the hits
 *    are read.
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
  return test.judge === null && request.rank === undefined
    ? searchVectors(context, request, { test, distances })
    : searchDocuments(context, request, { test, distances });
}

async function searchVectors(
  context: QueryContext,
  request: SearchRequest,
  { test, distances }: { readonly test: Test; readonly distances: DistanceFrom },
): Promise<string> {
  const { filter } = test;
  const exact = request.exact === true;
  // Columns may let rows pass whose documents fail: then as many more are looked for.
  for (let count = request.limit; ; count *= 2) {
    const page = new Page(request);
    const { rows, end } = await nearestRows(context, { distances, count, filter, exact });
    const failed = await takeRows(context, { rows, test, distances, page, request });
    if (failed instanceof Error)
      return answerOf(context, { kind: 'failed', sequence: 0, cause: failed }, page);
    if (end.kind !== 'complete' || failed === 0 || page.isFull || rows.length < count)
      return answerOf(context, end, page);
  }
}

interface RowsToTake {
  readonly rows: readonly NearRow[];
  readonly test: Test;
  readonly distances: DistanceFrom;
  readonly page: Page;
  readonly request: SearchRequest;
}

/** How many of the rows do not pass the filter after all; or why their documents could not be read. */
async function takeRows(context: QueryContext, wanted: RowsToTake): Promise<number | ReadFailure> {
  const { rows, test, distances, page, request } = wanted;
  let failed = 0;
  try {
    for (let from = 0; from < rows.length && !page.isTruncated; from += rowsReadAtOnce) {
      const some = rows.slice(from, from + rowsReadAtOnce);
      for (const [at, document] of (await readRows(context, some)).entries()) {
        if (!passesFilter(test.filter, document)) {
          failed++;
          continue;
        }
        const { distance } = some[at] as NearRow;
        const json = hitJson(document, [], request.include);
        const bare = request.include === undefined ? json : hitJson(document, []);
        const score = scoreOf(distances.metric, distance);
        if (!page.add(withRank({ sequence: document.sequence, distance, score, json, bare }))) return failed;
      }
    }
  } catch (cause) {
    if (!isReadFailure(cause)) throw cause;
    context.readFailed(cause);
    return cause;
  }
  return failed;
}

/** Of a page; some of them may be large. */
const rowsReadAtOnce = 32;

async function searchDocuments(
  context: QueryContext,
  request: SearchRequest,
  { test, distances }: { readonly test: Test; readonly distances: DistanceFrom },
): Promise<string> {
  const isFused = request.rank === 'rrf';
  const places = isFused ? Math.max(request.limit, limits.fusedRanksMax) : request.limit;
  const nearest = new NearestHits(places);
  const newest = new NewestHits(isFused ? places : 0);
  const page = new Page(request);
  const { condition, filter } = test;
  const wanted = { below: Number.POSITIVE_INFINITY, enough: undefined, condition, filter };
  const end = await scan(context, wanted, (document) => {
    const { sequence } = document;
    const distance = distanceOf(document, distances);
    const isNear = distance !== null && nearest.wants({ distance, sequence });
    if (!isNear && !newest.wantsMore) return true;
    const take = (found: Found) => {
      if (found === null) return true;
      const json = hitJson(document, found, request.include);
      const bare = request.include === undefined ? json : hitJson(document, found);
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
  /** With all that was included, and without. */
  readonly json: string;
  readonly bare: string;
}

/** With a vector. */
type NearHit = KeptHit & Ranked;

interface Scored extends KeptHit {
  readonly score: number;
}

/** Throws ApiError 422 for a vector that the namespace's can't be compared with. */
function distancesFrom({ vector }: QueryContext, numbers: readonly number[]): DistanceFrom {
  if (vector === null) throw invalidField('vector', 'this namespace has no vectors');
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

/** Hits come whole, so what is kept is bounded as an answer is: the worst go where there are too many bytes. */
class NearestHits {
  readonly #nearest: Nearest<NearHit>;
  #bytes = 0;
  #isCut = false;

  constructor(count: number) {
    this.#nearest = new Nearest(count);
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
    this.#bytes += hit.json.length - (gone?.json.length ?? 0);
    while (this.#bytes > limits.answerBytesMax) {
      const worst = this.#nearest.dropWorst();
      if (worst === null) return;
      this.#bytes -= worst.json.length;
      this.#isCut = true;
    }
  }
}

class NewestHits {
  readonly hits: KeptHit[] = [];
  readonly #count: number;
  #bytes = 0;
  #isCut = false;

  constructor(count: number) {
    this.#count = count;
  }

  get isCut(): boolean {
    return this.#isCut;
  }

  get wantsMore(): boolean {
    return this.hits.length < this.#count && !this.#isCut;
  }

  add(hit: KeptHit): void {
    this.hits.push(hit);
    this.#bytes += hit.json.length;
    this.#isCut = this.#bytes > limits.answerBytesMax;
  }
}
