/**
 * AND and OR of queries, kept simple and small: flat, without repetition, without parts that others imply. What would be
 * too large is weakened, never made stronger: an AND loses parts, an OR becomes `all`.
 */
import type { TrigramQuery } from './trigram-query.ts';

export const all: TrigramQuery = { kind: 'all' };
export const none: TrigramQuery = { kind: 'none' };

/**
 * Each part of an AND costs the reading of a posting list, and after a few dozen no candidate is left that does not
 * match: these are spread over the whole, since neighbours overlap and say much the same.
 */
const andPartsMax = 48;
/** Lists of an OR all have to be read. More alternatives than this come from classes, and match nearly everything. */
const orPartsMax = 128;
/** Conditions in a whole query: it is kept and sent between threads, and bounds the work of answering it. */
const conditionsMax = 1_000;

export function allOf(queries: readonly TrigramQuery[]): TrigramQuery {
  const parts = flatten(queries, 'and').filter(({ kind }) => kind !== 'all');
  if (parts.length <= 1) return parts[0] ?? all;
  if (parts.some(({ kind }) => kind === 'none')) return none;
  const distinct = distinctOf(parts);
  // A and (A or B) is A.
  const needed = distinct.filter(
    (part) => part.kind !== 'or' || !part.parts.some((a) => hasPart(distinct, a)),
  );
  return joined('and', evenlySpaced(needed, andPartsMax), all);
}

export function anyOf(queries: readonly TrigramQuery[]): TrigramQuery {
  const parts = flatten(queries, 'or').filter(({ kind }) => kind !== 'none');
  if (parts.some(({ kind }) => kind === 'all')) return all;
  const distinct = distinctOf(parts);
  // A or (A and B) is A.
  const needed = distinct.filter(
    (part) => part.kind !== 'and' || !part.parts.some((a) => hasPart(distinct, a)),
  );
  if (needed.length > orPartsMax) return all;
  return factored(needed);
}

/** Takes what all alternatives have in common out of them: (A and B) or (A and C) is A and (B or C). */
function factored(alternatives: readonly TrigramQuery[]): TrigramQuery {
  const [first, ...others] = alternatives.map(conjunctsOf);
  if (first === undefined || others.length === 0) return joined('or', alternatives, none);
  const common = first.filter((part) => others.every((other) => hasPart(other, part)));
  if (common.length === 0) return joined('or', alternatives, none);
  const rests = [first, ...others].map((parts) => allOf(parts.filter((part) => !hasPart(common, part))));
  return allOf([...common, anyOf(rests)]);
}

/** The query where it is small enough, else one that it implies. */
export function boundedQuery(query: TrigramQuery): TrigramQuery {
  return withinBudget(query, conditionsMax);
}

function withinBudget(query: TrigramQuery, budget: number): TrigramQuery {
  if (conditionsIn(query) <= budget) return query;
  if (query.kind !== 'and') return all;
  const kept: TrigramQuery[] = [];
  let left = budget;
  for (const part of query.parts.toSorted((a, b) => conditionsIn(a) - conditionsIn(b))) {
    const bounded = withinBudget(part, left);
    kept.push(bounded);
    left -= conditionsIn(bounded);
  }
  return allOf(kept);
}

/** Trigrams and parts anywhere in the query. */
export function conditionsIn(query: TrigramQuery): number {
  if (query.kind === 'and' || query.kind === 'or') {
    return query.parts.reduce((sum, part) => sum + conditionsIn(part), 0);
  }
  return query.kind === 'trigram' || query.kind === 'part' ? 1 : 0;
}

/** At most so many items, first and last among them, at even distances. */
export function evenlySpaced<T>(items: readonly T[], count: number): readonly T[] {
  if (items.length <= count) return items;
  const wanted = new Set(
    Array.from({ length: count }, (_, at) => Math.round((at * (items.length - 1)) / (count - 1))),
  );
  return items.filter((_, at) => wanted.has(at));
}

function joined(kind: 'and' | 'or', parts: readonly TrigramQuery[], ofNothing: TrigramQuery): TrigramQuery {
  const [only] = parts;
  if (only === undefined) return ofNothing;
  return parts.length === 1 ? only : { kind, parts };
}

function flatten(queries: readonly TrigramQuery[], kind: 'and' | 'or'): readonly TrigramQuery[] {
  return queries.flatMap((query) =>
    query.kind === kind && 'parts' in query ? flatten(query.parts, kind) : [query],
  );
}

function conjunctsOf(query: TrigramQuery): readonly TrigramQuery[] {
  return query.kind === 'and' ? query.parts : [query];
}

function distinctOf(queries: readonly TrigramQuery[]): readonly TrigramQuery[] {
  return [...new Map(queries.map((query) => [keyOf(query), query])).values()];
}

function hasPart(queries: readonly TrigramQuery[], wanted: TrigramQuery): boolean {
  return keysOf(queries).has(keyOf(wanted));
}

/** Kept by query, which is plain data that never changes: while a plan grows its parts are compared again and again. */
const keys = new WeakMap<TrigramQuery, string>();
const keySets = new WeakMap<readonly TrigramQuery[], ReadonlySet<string>>();

function keysOf(queries: readonly TrigramQuery[]): ReadonlySet<string> {
  const known = keySets.get(queries);
  if (known !== undefined) return known;
  const made = new Set(queries.map(keyOf));
  keySets.set(queries, made);
  return made;
}

/** The same for queries that say the same in any order. Only those of parts are worth remembering. */
function keyOf(query: TrigramQuery): string {
  if (query.kind === 'trigram') return query.trigram.toString(36);
  if (query.kind === 'part') return `(${query.bytes.join(' ')})`;
  if (query.kind === 'all' || query.kind === 'none') return query.kind;
  const known = keys.get(query);
  if (known !== undefined) return known;
  const made = `${query.kind}(${query.parts.map(keyOf).toSorted().join(',')})`;
  keys.set(query, made);
  return made;
}
