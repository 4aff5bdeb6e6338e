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

const hitsChecked = 20;
/** Does not divide the hits that are checked, so that the last page is cut. */
const pageSize = 8;
const differencesShownMax = 5;

/** Every id of the namespace as a listing gives them, page by page. */
export async function listNewestFirst(client: Connections, namespace: string): Promise<string[]> {
  const ids: string[] = [];
  for (let cursor = ''; ; ) {
    const page = await search(client, namespace, { limit: limits.searchLimitMax, cursor });
    ids.push(...page.hits.map(({ id }) => id));
    if (page.next === '') return ids;
    cursor = page.next;
  }
}

export async function checkCase(subject: Subject, oracle: Oracle, asked: SearchCase): Promise<Checked> {
  const query = { q: asked.query, regex: asked.isRegex };
  const expected = await oracle.matching(asked);
  const began = performance.now();
  const counted = await count(subject, query);
  const countMs = performance.now() - began;
  const newest = subject.newestFirst.filter((id) => expected.has(id)).slice(0, hitsChecked);
  const { hits } = await search(subject.client, subject.namespace, { ...query, limit: hitsChecked });
  const paged = await pagedIds(subject, query, newest.length);
  const places = await oracle.firstMatches(asked, newest);
  const differences = [
    ...(counted.count === expected.size && counted.exact
      ? []
      : [`counts ${counted.count}, not ${expected.size}`]),
    ...sameIds('newest ids of the count', counted.ids, newest.slice(0, limits.countIdsMax)),
    ...sameIds(
      'newest hits',
      hits.map(({ id }) => id),
      newest,
    ),
    ...sameIds('newest hits page by page', paged, newest),
    ...hits.flatMap((hit) => hitDifferences(hit, places.get(hit.id), subject.textOf)),
  ];
  return { asked, count: counted.count, expected: expected.size, countMs, differences: firstOf(differences) };
}

function firstOf(differences: readonly string[]): string[] {
  const more = differences.length - differencesShownMax;
  return [...differences.slice(0, differencesShownMax), ...(more > 0 ? [`and ${more} more`] : [])];
}

async function count({ client, namespace }: Subject, query: object): Promise<CountAnswer> {
  const body = Buffer.from(JSON.stringify(query));
  return JSON.parse(await client.post(`/v1/namespaces/${namespace}/count`, body)) as CountAnswer;
}

async function search(client: Connections, namespace: string, query: object): Promise<SearchAnswer> {
  const body = Buffer.from(JSON.stringify(query));
  return JSON.parse(await client.post(`/v1/namespaces/${namespace}/search`, body)) as SearchAnswer;
}

/** The first ids, asked for in small pages. */
async function pagedIds({ client, namespace }: Subject, query: object, wanted: number): Promise<string[]> {
  const ids: string[] = [];
  for (let cursor = ''; ids.length < wanted; ) {
    const page = await search(client, namespace, { ...query, limit: pageSize, cursor });
    ids.push(...page.hits.map(({ id }) => id));
    if (page.next === '') break;
    cursor = page.next;
  }
  return ids.slice(0, wanted);
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
