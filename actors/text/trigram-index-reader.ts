import { must } from '../../src/base/assert.ts';
import type { ObjectBlocks, ReadTally } from '../storage/block-fetch.ts';
import { type BlockPlace, blockKinds } from '../storage/segment-format.ts';
import { type AgeSource, AllAges, Intersection, ListedAges, noAges, Union } from './age-sources.ts';
import { lowerBound, PostingsCursor } from './postings.ts';
import { RowGroups } from './row-groups.ts';
import { decodeIndexRoot, decodeSparse, type IndexSpan } from './trigram-index-format.ts';
import { findInPage } from './trigram-page.ts';
import { pagesOf, planSpan, type SpanPlan } from './trigram-plan.ts';
import type { TrigramQuery } from './trigram-query.ts';

export type IndexBlocks = Pick<ObjectBlocks, 'objectKey' | 'cachedOrLocal' | 'fetch'>;

/** Ages of the first window; each next one is four times as long. */
const firstWindowAges = 4096;
const windowGrowth = 4;
/** Pages of older spans come in the same round as those of the newest, up to so many: about a megabyte. */
const roundPagesMax = 96;

/**
 * Answers which row groups of a segment may hold a match, newest first. A candidate is never a proof: a group has several
 * rows, its trigrams need not stand together, and some conditions are left out; every document is verified.
 */
export class TrigramIndexReader {
  readonly rowGroups: RowGroups;
  readonly #blocks: IndexBlocks;
  /** Oldest first. */
  readonly #spans: readonly IndexSpan[];

  private constructor(blocks: IndexBlocks, spans: readonly IndexSpan[], rowGroups: RowGroups) {
    this.#blocks = blocks;
    this.#spans = spans;
    this.rowGroups = rowGroups;
  }

  /** `root` is the section's. Reads two blocks that stand side by side: one GET. Memory: 16 bytes a page, 1.2 a group. */
  static async open(root: Uint8Array, blocks: IndexBlocks, tally: ReadTally): Promise<TrigramIndexReader> {
    const { sparse, rowGroups, groupCount, rowCount } = decodeIndexRoot(root, blocks.objectKey);
    const [spans, groups] = await blocks.fetch([sparse, rowGroups], tally);
    const name = blocks.objectKey;
    return new TrigramIndexReader(
      blocks,
      decodeSparse(must(spans, 'sparse index').raw, groupCount, { name, offset: sparse.offset }),
      new RowGroups(
        must(groups, 'row groups').raw,
        { groupCount, rowCount },
        { name, offset: rowGroups.offset },
      ),
    );
  }

  /** Answers the candidates of a query, among the groups of `among`, which ascend, or among all where it is null. Reads nothing yet. */
  search(query: TrigramQuery, among: Uint32Array | null = null): CandidateGroups {
    return new CandidateGroups(this.#blocks, { spans: this.#spans, query, among });
  }
}

interface SpanSearch {
  readonly span: IndexSpan;
  readonly plan: SpanPlan;
  /** The only ages that are wanted; null for all. */
  readonly among: Uint32Array | null;
  /** Raw pages by their number, once they are read. */
  pages: ReadonlyMap<number, Uint8Array> | null;
}

interface GroupsWanted {
  /** The spans of the index, oldest first. */
  readonly spans: readonly IndexSpan[];
  readonly query: TrigramQuery;
  readonly among: Uint32Array | null;
}

/** The candidates of one query in one segment, read from the newest on, as far as somebody asks. */
export class CandidateGroups {
  readonly #blocks: IndexBlocks;
  /** Newest first. */
  readonly #searches: readonly SpanSearch[];
  #at = 0;
  /** What is read of the current span, how far, and the bound of the next window. */
  #source: AgeSource | null = null;
  #window = firstWindowAges;
  #windowEnd = 0;

  constructor(blocks: IndexBlocks, { spans, query, among }: GroupsWanted) {
    this.#blocks = blocks;
    this.#searches = spans
      .map((span): SpanSearch => {
        const ages = among === null ? null : agesIn(span, among);
        return { span, plan: planSpan(query, span), among: ages, pages: null };
      })
      .filter(({ plan, among: ages }) => plan.kind !== 'none' && ages?.length !== 0)
      .reverse();
  }

  /** Whether the index leaves out nothing of some span: its documents are all candidates. */
  get isScan(): boolean {
    return this.#searches.some(({ plan }) => plan.kind === 'all');
  }

  /** How many candidates there are at most, as far as counts of posting lists tell. A promise only where pages have to come from the object store. */
  atMost(tally: ReadTally): number | Promise<number> {
    let count = 0;
    for (const search of this.#searches) {
      search.pages ??= this.#pagesAtHand(search, tally);
      if (search.pages === null) return this.#readPages(tally).then(() => this.atMost(tally));
      count += this.#sourceOf(search, search.pages).count;
    }
    return count;
  }

  /**
   * The next candidates, numbers of groups in descending order, at least one; null at the end. A promise only where pages
   * have to come from the object store: all of them in one round.
   */
  next(tally: ReadTally): Uint32Array | null | Promise<Uint32Array | null> {
    for (;;) {
      const search = this.#searches[this.#at];
      if (search === undefined) return null;
      if (this.#source === null) {
        search.pages ??= this.#pagesAtHand(search, tally);
        if (search.pages === null) return this.#readPages(tally).then(() => this.next(tally));
        this.#begin(search, search.pages);
      }
      const groups = this.#nextWindow(search.span);
      if (groups !== null) return groups;
    }
  }

  #begin(search: SpanSearch, pages: ReadonlyMap<number, Uint8Array>): void {
    this.#source = this.#sourceOf(search, pages);
    this.#windowEnd = 0;
    this.#window = firstWindowAges;
    // A rare list is read at once.
    if (this.#source.count <= firstWindowAges) this.#window = search.span.groupCount;
  }

  #sourceOf({ span, plan, among }: SpanSearch, pages: ReadonlyMap<number, Uint8Array>): AgeSource {
    const source = sourceOf(plan, { objectKey: this.#blocks.objectKey, span, pages });
    // What is wanted of the index is little then: lists skip what lies between.
    return among === null ? source : new Intersection([new ListedAges(among), source]);
  }

  /** The candidates of the next window; null where it has none, or the span is at its end. */
  #nextWindow(span: IndexSpan): Uint32Array | null {
    const source = must(this.#source, 'an open source');
    if (this.#windowEnd >= span.groupCount || source.count === 0) {
      this.#at++;
      this.#source = null;
      return null;
    }
    const from = this.#windowEnd;
    this.#windowEnd = Math.min(span.groupCount, from + this.#window);
    this.#window *= windowGrowth;
    const target = new Uint32Array(Math.min(source.count, this.#windowEnd - from));
    const count = source.readBelow(this.#windowEnd, target, 0);
    if (count === 0) return null;
    const newest = span.firstGroup + span.groupCount - 1;
    const groups = count === target.length ? target : target.slice(0, count);
    for (let i = 0; i < count; i++) groups[i] = newest - (groups[i] as number);
    return groups;
  }

  /** The span's pages where memory or the local disk has them all. */
  #pagesAtHand({ span, plan }: SpanSearch, tally: ReadTally): ReadonlyMap<number, Uint8Array> | null {
    const pages = new Map<number, Uint8Array>();
    for (const page of pagesOf(plan)) {
      const block = this.#blocks.cachedOrLocal(placeOf(span, page), tally);
      if (block === undefined) return null;
      pages.set(page, block.raw);
    }
    return pages;
  }

  /** Reads the pages of the current span, and of older ones as long as they are few. */
  async #readPages(tally: ReadTally): Promise<void> {
    const round: { readonly search: SpanSearch; readonly pages: readonly number[] }[] = [];
    let count = 0;
    for (let at = this.#at; at < this.#searches.length; at++) {
      const search = this.#searches[at] as SpanSearch;
      if (search.pages !== null) continue;
      const pages = [...pagesOf(search.plan)];
      if (round.length > 0 && count + pages.length > roundPagesMax) break;
      count += pages.length;
      round.push({ search, pages });
    }
    const places = round.flatMap(({ search, pages }) => pages.map((page) => placeOf(search.span, page)));
    const blocks = await this.#blocks.fetch(places, tally);
    let next = 0;
    for (const { search, pages } of round) {
      search.pages = new Map(pages.map((page) => [page, must(blocks[next++], 'a fetched page').raw]));
    }
  }
}

/** The ages of those groups that are the span's, ascending; the groups ascend. */
function agesIn({ firstGroup, groupCount }: IndexSpan, groups: Uint32Array): Uint32Array {
  const from = lowerBound(groups, 0, groups.length, firstGroup);
  const to = lowerBound(groups, from, groups.length, firstGroup + groupCount);
  const newest = firstGroup + groupCount - 1;
  return groups
    .slice(from, to)
    .reverse()
    .map((group) => newest - group);
}

function placeOf({ offsets }: IndexSpan, page: number): BlockPlace {
  const offset = offsets[page] as number;
  return { offset, length: (offsets[page + 1] as number) - offset, kind: blockKinds.trigrams };
}

interface SpanPages {
  readonly objectKey: string;
  readonly span: IndexSpan;
  readonly pages: ReadonlyMap<number, Uint8Array>;
}

function sourceOf(plan: SpanPlan, read: SpanPages): AgeSource {
  switch (plan.kind) {
    case 'all':
      return new AllAges(read.span.groupCount);
    case 'none':
      return noAges;
    case 'lists':
      return unionOf(listsOf(plan, read), read.span.groupCount);
    case 'and':
      return new Intersection(plan.parts.map((part) => sourceOf(part, read)));
    case 'or':
      return unionOf(
        plan.parts.map((part) => sourceOf(part, read)).filter(({ count }) => count > 0),
        read.span.groupCount,
      );
  }
}

function unionOf(sources: readonly AgeSource[], bound: number): AgeSource {
  const [only, ...others] = sources;
  if (only === undefined) return noAges;
  return others.length === 0 ? only : new Union(sources, bound);
}

function listsOf(plan: SpanPlan & { readonly kind: 'lists' }, read: SpanPages): AgeSource[] {
  const { objectKey, span, pages } = read;
  const sources: AgeSource[] = [];
  for (let number = plan.firstPage; number <= plan.lastPage; number++) {
    const bytes = must(pages.get(number), 'a page that was read');
    const place = { name: objectKey, offset: span.offsets[number] as number };
    const page = { bytes, bound: span.groupCount, place };
    for (const entry of findInPage(page, plan.first, plan.last)) sources.push(new PostingsCursor(entry));
  }
  return sources;
}
