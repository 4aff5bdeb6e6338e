/**
 * Finding a digest among the pages of the section `ids`. Its first 64 bits, the hash, are spread evenly, so the page is
 * guessed:
 *
 * 1. Where the hash should stand between the bounds known so far, entries × (hash − low) / (high − low).
 * 2. If that page is not at hand, ask for it and for its neighbours within a few standard deviations of the guess:
 *    one range read, which has the page in all but one of some 15,000 cases.
 * 3. Its first and last hash tell whether it is the page; otherwise they are new bounds, much closer: again from 1.
 * 4. Hashes that somebody chose are not spread evenly: after a few guesses the span is halved instead.
 * 5. Of the entries with the hash, those with the whole digest are the ones.
 */
import { idEntry, pageCount, type SegmentSection } from './segment-format.ts';

/** A row, and its document's block. */
export interface RowPlace {
  readonly row: number;
  readonly blockOffset: number;
  readonly blockLength: number;
}

export type IdSearch =
  /** Every entry with this digest, rows ascending: one for each row with the id. */
  | { readonly kind: 'found'; readonly matches: readonly RowPlace[] }
  /** Call again when `pages` has these. */
  | { readonly kind: 'need'; readonly firstPage: number; readonly lastPage: number };

export interface PageSource {
  /** The raw page if it is at hand. */
  page(page: number): Buffer | undefined;
}

/** Standard deviations that the first read covers to either side. */
const sigmasRead = 4;
/** Added to either side, because few entries do not follow the normal distribution. */
const entriesSlack = 8;
/** A window of a segment of 10 million rows is 72 pages; a wrong bound must not ask for everything. */
const windowPagesMax = 256;
const guessesMax = 6;

const nothing: IdSearch = { kind: 'found', matches: [] };

/** Where a hash cannot stand: before this page, whose first hash, as a part of all hashes, is below it. */
interface Start {
  readonly page: number;
  readonly bound: number;
}

const atTheStart: Start = { page: 0, bound: 0 };

/** `words` holds the digest at `at`. */
export function searchIds(
  section: SegmentSection,
  words: Uint32Array,
  at: number,
  pages: PageSource,
  start = atTheStart,
): IdSearch {
  const wanted = fraction(words[at] as number, words[at + 1] as number);
  let first = start.page;
  let last = pageCount(section, idEntry) - 1;
  let lowBound = start.bound;
  let highBound = 1;
  for (let guesses = 0; first <= last; guesses++) {
    const entries = Math.min(section.entryCount, (last + 1) * idEntry.perPage) - first * idEntry.perPage;
    const share = guesses < guessesMax ? shareOf(wanted, lowBound, highBound) : 0.5;
    const page = Math.min(last, first + Math.floor((share * entries) / idEntry.perPage));
    const raw = pages.page(page);
    if (raw === undefined) return needAround(first, last, share, entries);
    if (compareAt(raw, 0, words, at) > 0) {
      last = page - 1;
      highBound = fractionAt(raw, 0);
    } else if (compareAt(raw, raw.length - idEntry.bytes, words, at) < 0) {
      first = page + 1;
      lowBound = fractionAt(raw, raw.length - idEntry.bytes);
    } else {
      return collect({ first, last, page }, words, at, pages);
    }
  }
  return nothing;
}

/**
 * Hashes that are looked for in rising order. The page where the last one stood is the lower bound of the next, and near
 * it: of a thousand hashes in a million entries nearly each is guessed at once, and of a thousand in a few thousand most
 * stand on the page at hand. Hot where documents are written: every id is looked for in every segment.
 */
export class AscendingSearch {
  readonly #section: SegmentSection;
  readonly #pages: PageSource;
  /** The page that was looked at last. */
  #page = 0;
  #raw: Buffer | null = null;
  readonly #seen: PageSource = {
    page: (page) => {
      const raw = this.#pages.page(page);
      if (raw !== undefined) {
        this.#page = page;
        this.#raw = raw;
      }
      return raw;
    },
  };

  constructor(section: SegmentSection, pages: PageSource) {
    this.#section = section;
    this.#pages = pages;
  }

  search(words: Uint32Array, at: number): IdSearch {
    const raw = this.#raw;
    // Equal hashes may begin on a page before.
    if (raw === null || compareAt(raw, 0, words, at) >= 0)
      return searchIds(this.#section, words, at, this.#seen);
    // Strictly inside: the run of equal hashes, if there is one, ends here too.
    if (compareAt(raw, raw.length - idEntry.bytes, words, at) > 0) return onPage(raw, words, at);
    const start = { page: this.#page, bound: fractionAt(raw, 0) };
    return searchIds(this.#section, words, at, this.#seen, start);
  }
}

function onPage(raw: Buffer, words: Uint32Array, at: number): IdSearch {
  const matches: RowPlace[] = [];
  collectPage(raw, words, at, matches);
  return matches.length === 0 ? nothing : { kind: 'found', matches };
}

/** The window around the guess; it always holds the guessed page. */
function needAround(first: number, last: number, share: number, entries: number): IdSearch {
  const spread = sigmasRead * Math.sqrt(entries * share * (1 - share)) + entriesSlack;
  const reach = Math.min(spread, (windowPagesMax / 2) * idEntry.perPage);
  const pageAt = (entry: number) => first + Math.floor(entry / idEntry.perPage);
  return {
    kind: 'need',
    firstPage: Math.max(first, pageAt(share * entries - reach)),
    lastPage: Math.min(last, pageAt(share * entries + reach)),
  };
}

/** All entries of the hash from the page where it stands, and from its neighbours where equal hashes go on. */
function collect(
  found: { readonly first: number; readonly last: number; readonly page: number },
  words: Uint32Array,
  at: number,
  pages: PageSource,
): IdSearch {
  let from = found.page;
  let raw = pages.page(from);
  while (raw !== undefined && compareAt(raw, 0, words, at) === 0 && from > found.first)
    raw = pages.page(--from);
  if (raw === undefined) return { kind: 'need', firstPage: from, lastPage: from };
  const matches: RowPlace[] = [];
  for (let page = from; page <= found.last; page++) {
    raw = pages.page(page);
    if (raw === undefined) return { kind: 'need', firstPage: page, lastPage: page };
    collectPage(raw, words, at, matches);
    // Only a page that ends above the hash ends the run: the first page may end below it.
    if (compareAt(raw, raw.length - idEntry.bytes, words, at) > 0) break;
  }
  return matches.length === 0 ? nothing : { kind: 'found', matches };
}

function collectPage(raw: Buffer, words: Uint32Array, at: number, matches: RowPlace[]): void {
  for (let entry = lowerBound(raw, words, at); entry < raw.length; entry += idEntry.bytes) {
    if (compareAt(raw, entry, words, at) !== 0) return;
    if (!isDigest(raw, entry, words, at)) continue;
    matches.push({
      row: raw.readUInt32LE(entry + idEntry.row),
      blockOffset: raw.readUIntLE(entry + idEntry.offset, 6),
      blockLength: raw.readUInt32LE(entry + idEntry.length),
    });
  }
}

/** Where the first entry stands that is not below the hash; the page's length where all are. */
function lowerBound(raw: Buffer, words: Uint32Array, at: number): number {
  let from = 0;
  let to = raw.length / idEntry.bytes;
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (compareAt(raw, middle * idEntry.bytes, words, at) < 0) from = middle + 1;
    else to = middle;
  }
  return from * idEntry.bytes;
}

/** The entry's hash compared with the wanted one. */
function compareAt(raw: Buffer, entry: number, words: Uint32Array, at: number): number {
  return (
    raw.readUInt32BE(entry) - (words[at] as number) || raw.readUInt32BE(entry + 4) - (words[at + 1] as number)
  );
}

/** Whether the rest of the digest is equal too. */
function isDigest(raw: Buffer, entry: number, words: Uint32Array, at: number): boolean {
  return raw.readUInt32BE(entry + 8) === words[at + 2] && raw.readUInt32BE(entry + 12) === words[at + 3];
}

/** A hash as a part of all hashes, 0 to 1. */
function fraction(high: number, low: number): number {
  return (high + low / 2 ** 32) / 2 ** 32;
}

function fractionAt(raw: Buffer, at: number): number {
  return fraction(raw.readUInt32BE(at), raw.readUInt32BE(at + 4));
}

function shareOf(wanted: number, low: number, high: number): number {
  if (high <= low) return 0.5;
  return Math.min(1, Math.max(0, (wanted - low) / (high - low)));
}
