/**
 * Which pages of a span a query reads: pure. What is left out, because there would be too much to read, only makes more
 * candidates.
 *
 * 1. A trigram's list is on the one page that can hold it. A byte or two are all trigrams that begin with them: texts end
 *    with two bytes 0xFF for that.
 * 2. Of a conjunction the parts with the smallest lists are read, as far as the sparse index tells: the mean of a page.
 * 3. Of a disjunction all parts, or none: then it is no condition.
 */
import type { IndexSpan } from './trigram-index-format.ts';
import { trigramBound } from './trigram-page.ts';
import type { TrigramQuery } from './trigram-query.ts';

export type SpanPlan =
  | { readonly kind: 'all' }
  | { readonly kind: 'none' }
  /** The lists of the trigrams from `first` to `last`, which are on these pages. */
  | {
      readonly kind: 'lists';
      readonly first: number;
      readonly last: number;
      readonly firstPage: number;
      readonly lastPage: number;
    }
  | { readonly kind: 'and' | 'or'; readonly parts: readonly SpanPlan[] };

/**
 * Posting lists that one conjunction reads. The sparse index tells only roughly which lists are rare: of identifiers in log lines, the 8 that look
 * rarest leave five times the candidates that 16 do, and more than 16 leave hardly fewer.
 */
export const conjunctionListsMax = 16;
/** Pages of one span that a query reads: half a megabyte as stored. */
export const planPagesMax = 48;

const all: SpanPlan = { kind: 'all' };
const none: SpanPlan = { kind: 'none' };

export function planSpan(query: TrigramQuery, span: IndexSpan): SpanPlan {
  switch (query.kind) {
    case 'all':
    case 'none':
      return query;
    case 'trigram':
      return planLists(query.trigram, query.trigram, span);
    case 'part':
      return planPart(query.bytes, span);
    case 'and':
      return planAnd(query.parts, span);
    case 'or':
      return planOr(query.parts, span);
  }
}

function planPart(bytes: readonly number[], span: IndexSpan): SpanPlan {
  const [first, second] = bytes;
  if (first === undefined || bytes.length > 2) return all;
  if (second === undefined) return planLists(first << 16, (first << 16) | 0xffff, span);
  const start = (first << 16) | (second << 8);
  return planLists(start, start | 0xff, span);
}

function planLists(first: number, last: number, span: IndexSpan): SpanPlan {
  if (last >= trigramBound) return none;
  const lastPage = pageBefore(last, span);
  if (lastPage < 0) return none;
  const firstPage = Math.max(0, pageBefore(first, span));
  if (lastPage - firstPage >= planPagesMax) return all;
  return { kind: 'lists', first, last, firstPage, lastPage };
}

/** The last page that begins at `trigram` or before; -1 where all begin after it. */
function pageBefore(trigram: number, { firstTrigrams }: IndexSpan): number {
  let low = 0;
  let high = firstTrigrams.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((firstTrigrams[middle] as number) <= trigram) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

function planAnd(parts: readonly TrigramQuery[], span: IndexSpan): SpanPlan {
  const conditions = parts
    .flatMap((part) => flattened(planSpan(part, span), 'and'))
    .filter((plan) => plan.kind !== 'all');
  if (conditions.some((plan) => plan.kind === 'none')) return none;
  const cheapest = distinct(conditions)
    .map((plan) => ({ plan, cost: costOf(plan, span) }))
    .sort((a, b) => a.cost - b.cost);
  const chosen: SpanPlan[] = [];
  const pages = new Set<number>();
  for (const { plan } of cheapest.slice(0, conjunctionListsMax)) {
    const own = pagesOf(plan);
    if (chosen.length > 0 && pages.size + own.size > planPagesMax) break;
    for (const page of own) pages.add(page);
    chosen.push(plan);
  }
  const [only] = chosen;
  if (only === undefined) return all;
  return chosen.length === 1 ? only : { kind: 'and', parts: chosen };
}

function planOr(parts: readonly TrigramQuery[], span: IndexSpan): SpanPlan {
  const ways = parts
    .flatMap((part) => flattened(planSpan(part, span), 'or'))
    .filter((plan) => plan.kind !== 'none');
  if (ways.some((plan) => plan.kind === 'all')) return all;
  const [only, ...others] = distinct(ways);
  if (only === undefined) return none;
  const plan: SpanPlan = others.length === 0 ? only : { kind: 'or', parts: [only, ...others] };
  return pagesOf(plan).size > planPagesMax ? all : plan;
}

function flattened(plan: SpanPlan, kind: 'and' | 'or'): readonly SpanPlan[] {
  return plan.kind === kind ? plan.parts : [plan];
}

/** A literal such as "banana" has a trigram twice. */
function distinct(plans: readonly SpanPlan[]): SpanPlan[] {
  const seen = new Set<number>();
  return plans.filter((plan) => {
    if (plan.kind !== 'lists' || plan.first !== plan.last) return true;
    if (seen.has(plan.first)) return false;
    seen.add(plan.first);
    return true;
  });
}

/** Bytes of posting lists that will be read, about. */
function costOf(plan: SpanPlan, span: IndexSpan): number {
  switch (plan.kind) {
    case 'all':
    case 'none':
      return 0;
    case 'lists':
      return plan.first === plan.last ? meanListBytes(plan.firstPage, span) : bytesOf(plan, span);
    case 'and':
      return Math.min(...plan.parts.map((part) => costOf(part, span)));
    case 'or':
      return plan.parts.reduce((sum, part) => sum + costOf(part, span), 0);
  }
}

function meanListBytes(page: number, span: IndexSpan): number {
  return pagesBytes(page, page, span) / (span.entryCounts[page] as number);
}

function bytesOf(plan: { readonly firstPage: number; readonly lastPage: number }, span: IndexSpan): number {
  return pagesBytes(plan.firstPage, plan.lastPage, span);
}

function pagesBytes(first: number, last: number, { offsets }: IndexSpan): number {
  return (offsets[last + 1] as number) - (offsets[first] as number);
}

/** The numbers of the pages that a plan reads. */
export function pagesOf(plan: SpanPlan, pages = new Set<number>()): Set<number> {
  if (plan.kind === 'lists') {
    for (let page = plan.firstPage; page <= plan.lastPage; page++) pages.add(page);
  } else if (plan.kind === 'and' || plan.kind === 'or') {
    for (const part of plan.parts) pagesOf(part, pages);
  }
  return pages;
}
