import { limits } from '../protocol/limits.ts';
import type { CountAnswer, Hit, SearchAnswer } from '../protocol/search.ts';
import type { Connections } from './measured-server.ts';
import type { SearchCase } from './search-cases.ts';

/**
 * Holds the answers of count and search against somebody else's opinion of the same files: which ones match, and where
 * the first match of a file is.
 */
export interface Place {
  /** Bytes of the file. */
  readonly start: number;
  readonly end: number;
  /** From 1. */
  readonly lineNumber: number;
}

export interface Oracle {
  matching(asked: SearchCase): Promise<ReadonlySet<string>>;
  /** The first match of each of these files, all of which match. */
  firstMatches(asked: SearchCase, ids: readonly string[]): Promise<ReadonlyMap<string, Place>>;
  /** All matches of one file, for those who know them. */
  allMatches?(asked: SearchCase, id: string): readonly Place[];
}

export interface Checked {
  readonly asked: SearchCase;
  readonly count: number;
  readonly expected: number;
  /** Milliseconds that the server's count took. */
  readonly countMs: number;
  /** Sentences; none where everything agrees. */
  readonly differences: readonly string[];
}

export interface Subject {
  readonly client: Connections;
  readonly namespace: string;
  /** All ids, the last written first. */
  readonly newestFirst: readonly string[];
  readonly textOf: (id: string) => Buffer;
}

/** How one case is asked. */
export interface Asking {
  /** So many of the newest hits are compared. */
  readonly hitsMax: number;
  readonly pageSize: number;
  /** The bytes of each page; pages may then be shorter. */
  readonly bytesMax?: number;
  /** In the address, in place of a body. */
  readonly viaGet: boolean;
}

const firstPageHits = 20;
/** The pages do not divide the hits that are checked, so that the last one is cut. */
const usualAsking: Asking = { hitsMax: firstPageHits, pageSize: 8, viaGet: false };
const differencesShownMax = 5;
/** Hits that are asked for with their whole text and all their matches. */
const wholeHits = 3;

/** Every id of the namespace as a listing gives them, page by page. */
export async function listNewestFirst(client: Connections, namespace: string): Promise<string[]> {
  const asking = { ...usualAsking, hitsMax: Number.POSITIVE_INFINITY, pageSize: limits.searchLimitMax };
  const { hits } = await pagedHits({ client, namespace }, {}, asking);
  return hits.map(({ id }) => id);
}

export async function checkCase(
  subject: Subject,
  oracle: Oracle,
  asked: SearchCase,
  asking: Asking = usualAsking,
): Promise<Checked> {
  const query = { q: asked.query, regex: asked.isRegex, scan: true };
  const expected = await oracle.matching(asked);
  const began = performance.now();
  const counted = await ask<CountAnswer>(subject, 'count', query, asking.viaGet);
  const countMs = performance.now() - began;
  const newest = subject.newestFirst.filter((id) => expected.has(id)).slice(0, asking.hitsMax);
  const first = await ask<SearchAnswer>(subject, 'search', { ...query, limit: firstPageHits }, asking.viaGet);
  const paged = await pagedHits(subject, query, asking);
  const places = await oracle.firstMatches(asked, newest);
  const differences = [
    ...(counted.count === expected.size && counted.exact
      ? []
      : [`counts ${counted.count}, not ${expected.size}`]),
    ...[counted, first].flatMap(({ docs }) =>
      docs === subject.newestFirst.length
        ? []
        : [`says ${docs} documents, not ${subject.newestFirst.length}`],
    ),
    ...sameIds('newest ids of the count', counted.ids, newest.slice(0, limits.countIdsMax)),
    ...(first.partial ? [] : sameIds('newest hits', idsOf(first.hits), newest.slice(0, firstPageHits))),
    ...sameIds('newest hits page by page', idsOf(paged.hits), newest),
    ...paged.wrongPages,
    ...(await wholeDifferences(subject, oracle, asked)),
    ...[...first.hits, ...paged.hits].flatMap((hit) =>
      hitDifferences(hit, places.get(hit.id), subject.textOf),
    ),
  ];
  return { asked, count: counted.count, expected: expected.size, countMs, differences: firstOf(differences) };
}

const idsOf = (hits: readonly Hit[]) => hits.map(({ id }) => id);

function firstOf(differences: readonly string[]): string[] {
  const more = differences.length - differencesShownMax;
  return [...differences.slice(0, differencesShownMax), ...(more > 0 ? [`and ${more} more`] : [])];
}

type Asked = Pick<Subject, 'client' | 'namespace'>;

async function ask<Answer>(to: Asked, operation: string, query: object, viaGet: boolean): Promise<Answer> {
  const path = `/v1/namespaces/${to.namespace}/${operation}`;
  if (!viaGet) return JSON.parse(await to.client.post(path, Buffer.from(JSON.stringify(query)))) as Answer;
  const parameters = Object.entries(query).map(
    ([name, value]) => `${name}=${encodeURIComponent(String(value))}`,
  );
  return JSON.parse(await to.client.get(`${path}?${parameters.join('&')}`)) as Answer;
}

/** The first hits, asked for in pages; and pages that are shorter than they may be, or promise more where none is. */
async function pagedHits(
  to: Asked,
  query: object,
  { hitsMax, pageSize, bytesMax, viaGet }: Asking,
): Promise<{ readonly hits: readonly Hit[]; readonly wrongPages: readonly string[] }> {
  const hits: Hit[] = [];
  const wrongPages: string[] = [];
  for (let cursor = ''; hits.length < hitsMax; ) {
    const bytes = bytesMax === undefined ? {} : { max_bytes: bytesMax };
    const page = await ask<SearchAnswer>(
      to,
      'search',
      { ...query, ...bytes, limit: pageSize, cursor },
      viaGet,
    );
    hits.push(...page.hits);
    // One that ran out of time goes on with the next one.
    const isShort =
      page.next === '' ? hits.length > 0 && page.hits.length === 0 : page.hits.length < pageSize;
    if (isShort && !page.partial && !page.truncated)
      wrongPages.push(`a page has ${page.hits.length} hits, not ${pageSize}`);
    if (page.next === '') break;
    cursor = page.next;
  }
  return { hits: hits.slice(0, hitsMax), wrongPages };
}

function sameIds(what: string, got: readonly string[], wanted: readonly string[]): string[] {
  const at = wanted.findIndex((id, i) => id !== got[i]);
  if (at < 0 && got.length === wanted.length) return [];
  const place = at < 0 ? wanted.length : at;
  return [
    `${what}: ${got.length}, not ${wanted.length}; the ${place + 1}. is ${got[place]}, not ${wanted[place]}`,
  ];
}

function hitDifferences(hit: Hit, place: Place | undefined, textOf: (id: string) => Buffer): string[] {
  if (place === undefined) return [`${hit.id}: no match is known`];
  const text = textOf(hit.id);
  const { start, end, lineNumber } = place;
  const wanted = JSON.stringify({ start, end, lineNumber, match: matchOf(text, place) });
  const got = JSON.stringify({
    start: hit.start,
    end: hit.end,
    lineNumber: hit.line_number,
    match: hit.match,
  });
  if (got !== wanted) return [`${hit.id}: ${got}, not ${wanted}`];
  return lineIsRight(hit, text) ? [] : [`${hit.id}: the line is ${JSON.stringify(hit.line)}`];
}

/** The newest hits with all that they can hold on request. */
async function wholeDifferences(subject: Subject, oracle: Oracle, asked: SearchCase): Promise<string[]> {
  if (oracle.allMatches === undefined) return [];
  const query = {
    q: asked.query,
    regex: asked.isRegex,
    scan: true,
    limit: wholeHits,
    include: ['text', 'matches'],
  };
  const { hits } = await ask<SearchAnswer>(subject, 'search', query, false);
  return hits.flatMap(({ id, text, matches }) => {
    const wanted = oracle.allMatches?.(asked, id).slice(0, limits.matchesMax) ?? [];
    const places = matches?.map(({ start, end, line_number: lineNumber }) => ({ start, end, lineNumber }));
    return [
      ...(text === subject.textOf(id).toString() ? [] : [`${id}: its text is not what was written`]),
      ...(JSON.stringify(places) === JSON.stringify(wanted)
        ? []
        : [
            `${id}: all matches are ${JSON.stringify(places)?.slice(0, 200)}, not ${JSON.stringify(wanted).slice(0, 200)}`,
          ]),
    ];
  });
}

/** The matched text, cut at a size and never inside a character. */
function matchOf(text: Buffer, { start, end }: Place): string {
  if (end - start <= limits.matchBytesMax) return text.toString('utf8', start, end);
  let cut = start + limits.matchBytesMax;
  while (((text[cut] ?? 0) & 0xc0) === 0x80) cut--;
  return text.toString('utf8', start, cut);
}

/** A short line is shown whole; of a long one a part that the match begins in. */
function lineIsRight(hit: Hit, text: Buffer): boolean {
  const from = text.subarray(0, hit.start).lastIndexOf('\n') + 1;
  const feed = text.indexOf('\n', hit.start);
  const whole = text.toString('utf8', from, feed < 0 ? text.length : feed).replace(/\r$/, '');
  if (Buffer.byteLength(whole) <= limits.lineBytesMax) return hit.line === whole;
  const shown = hit.line.replace(/^…/, '').replace(/…$/, '');
  const firstLine = hit.match.split(/\r?\n/)[0] ?? '';
  const bytes = Buffer.byteLength(shown);
  return (
    bytes <= limits.lineBytesMax &&
    whole.includes(shown) &&
    (bytes < hit.match.length || shown.includes(firstLine))
  );
}
