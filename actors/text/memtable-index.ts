import { foldedBytesMax, foldUtf8 } from './fold.ts';
import { groupTextBytes } from './row-groups.ts';
import { liesInPart, partedBytesMin, partsOf, type TextParts } from './text-parts.ts';
import { pieceEnd } from './text-pieces.ts';
import type { TextCondition, TrigramQuery } from './trigram-query.ts';

/**
 * Which rows of a memtable may match, in memory and as rows arrive:
 *
 * 1. Rows form groups as in a segment: about 4 KB of text, or one larger document. Each part of a large text (text-parts.ts)
 *    is a group, with the same first row; asked as a whole, it has what some part has.
 * 2. A group has a signature: a bit array, about one bit a byte of text, in which each of its trigrams sets the bit that
 *    its hash names. Nothing is looked up, counted or sorted, so adding costs little more than folding.
 * 3. A group without the bit of a needed trigram holds no match. A quarter to a third of the bits is set, so a literal of
 *    six bytes passes one group in 200 in vain.
 *
 * Rows are only added, so whoever took a snapshot asks for rows below its row count and may go on asking: bits of later
 * rows make more candidates, never fewer. Memory: 14 % of the text where documents are short, 21 % where they are not;
 * an inverted index of the same rows took ten times as much at a third of the speed.
 */
export class MemtableIndex {
  /** Bits of all groups, in chunks; the signature of a group lies in one chunk. */
  readonly #chunks: Uint32Array[] = [];
  /** Words that are used of the last chunk. */
  #wordsUsed = 0;
  #bytes = 0;
  /** The first row of each group, where its signature begins, in which chunk, and the bits of a hash. */
  #firstRows = new Uint32Array(groupsInitial);
  #starts = new Uint32Array(groupsInitial);
  #chunkOf = new Uint32Array(groupsInitial);
  #hashBits = new Uint8Array(groupsInitial);
  /** Whether lines are cut in the parts of a group: 1 where they are. */
  #linesAreCut = new Uint8Array(groupsInitial);
  #groupCount = 0;
  #rowCount = 0;
  #openBytes = 0;
  #openRows = 0;
  /** The parts of the next row's text, and the next of them, where some are added. Their groups begin with a row that is not there yet. */
  #begun: { readonly parts: TextParts; next: number } | null = null;

  get rowCount(): number {
    return this.#rowCount;
  }

  /** Memory that it holds. */
  get bytes(): number {
    return this.#bytes + this.#firstRows.length * groupBytes;
  }

  /** Adds the next row's text: UTF-8, nothing for a row without one. */
  add(text: Uint8Array): void {
    for (const row = this.#rowCount; this.#rowCount === row; ) this.addSome(text, text.length);
  }

  /**
   * Adds the next row's text, or of a large one as many parts more as `bytesMax` says, and one at least: the row is there with the last
   * of them. Answers how many bytes of it were added.
   */
  addSome(text: Uint8Array, bytesMax: number): number {
    if (text.length >= partedBytesMin) return this.#addParts(text, bytesMax);
    const fits = this.#openRows < groupRowsMax && this.#openBytes + text.length <= groupTextBytes;
    if (this.#groupCount === 0 || !fits) this.#beginGroup(text.length);
    this.#sign(text, 0, text.length);
    this.#endRow(text);
    return text.length;
  }

  #addParts(text: Uint8Array, bytesMax: number): number {
    this.#begun ??= { parts: partsOf(text, 0, text.length), next: 0 };
    const { bounds, linesAreWhole } = this.#begun.parts;
    let bytes = 0;
    let { next } = this.#begun;
    do {
      const [from, to] = [bounds[next] as number, bounds[next + 1] as number];
      this.#beginGroup(to - from);
      this.#linesAreCut[this.#groupCount - 1] = linesAreWhole ? 0 : 1;
      this.#sign(text, from, to);
      bytes += to - from;
      next += 2;
    } while (next < bounds.length && bytes < bytesMax);
    this.#begun.next = next;
    if (next === bounds.length) {
      this.#begun = null;
      this.#endRow(text);
    }
    return bytes;
  }

  #endRow(text: Uint8Array): void {
    this.#openRows++;
    this.#openBytes += text.length;
    this.#rowCount++;
  }

  /**
   * Fills `target` with rows below `row` that may match, in descending order, and answers how many; fewer than fit where
   * there are no more. To go on, ask for rows below the last one.
   */
  findBelow({ query, matchLength }: TextCondition, row: number, target: Uint32Array): number {
    const needed = neededOf(query);
    let count = 0;
    let below = Math.min(row, this.#rowCount);
    for (let last = this.#groupBefore(below); last >= 0 && count < target.length; ) {
      const firstRow = this.#firstRows[last] as number;
      const first = this.#firstPart(last);
      const meets = liesInPart(matchLength, this.#linesAreCut[last] === 0)
        ? this.#somePartMeets(needed, first, last)
        : this.#mayMeet(query, first, last);
      if (meets) {
        for (let next = below - 1; next >= firstRow && count < target.length; next--) target[count++] = next;
      }
      below = firstRow;
      last = first - 1;
    }
    return count;
  }

  /** Which parts of a row's text meet the condition, ascending; null where it has none, or its lines are cut. */
  partsOf({ query, matchLength }: TextCondition, row: number): number[] | null {
    const last = this.#groupBefore(row + 1);
    const first = this.#firstPart(last);
    const isParted = last > first && this.#linesAreCut[last] === 0;
    if (!isParted || !liesInPart(matchLength, true)) return null;
    const parts: number[] = [];
    const needed = neededOf(query);
    for (let part = first; part <= last; part++) if (this.#groupMeets(needed, part)) parts.push(part - first);
    return parts;
  }

  /** The first group with the row of this one. */
  #firstPart(last: number): number {
    let first = last;
    while (first > 0 && this.#firstRows[first - 1] === this.#firstRows[last]) first--;
    return first;
  }

  #somePartMeets(needed: Needed, first: number, last: number): boolean {
    for (let part = first; part <= last; part++) if (this.#groupMeets(needed, part)) return true;
    return false;
  }

  /** Hot: every search asks every group. */
  #groupMeets({ products, others }: Needed, group: number): boolean {
    const chunk = this.#chunks[this.#chunkOf[group] as number] as Uint32Array;
    const base = this.#starts[group] as number;
    const shift = 32 - (this.#hashBits[group] as number);
    for (let i = 0; i < products.length; i++) {
      const hash = (products[i] as number) >>> shift;
      if ((((chunk[base + (hash >>> 5)] as number) >>> (hash & 31)) & 1) === 0) return false;
    }
    for (const other of others) if (!this.#mayMeet(other, group, group)) return false;
    return true;
  }

  #beginGroup(textBytes: number): void {
    const hashBits = hashBitsOf(textBytes);
    const words = 1 << (hashBits - 5);
    const group = this.#groupCount;
    if (group === this.#firstRows.length) this.#growGroups();
    const last = this.#chunks.at(-1);
    if (last === undefined || this.#wordsUsed + words > last.length) {
      // As much again as there is: a memtable of one small document is small.
      const chunkWords = Math.max(words, Math.min(chunkWordsMax, this.#bytes / 4));
      this.#chunks.push(new Uint32Array(chunkWords));
      this.#bytes += chunkWords * 4;
      this.#wordsUsed = 0;
    }
    this.#firstRows[group] = this.#rowCount;
    this.#starts[group] = this.#wordsUsed;
    this.#chunkOf[group] = this.#chunks.length - 1;
    this.#hashBits[group] = hashBits;
    this.#wordsUsed += words;
    this.#groupCount++;
    this.#openBytes = 0;
    this.#openRows = 0;
  }

  #growGroups(): void {
    const length = this.#firstRows.length * 2;
    this.#firstRows = copied(this.#firstRows, new Uint32Array(length));
    this.#starts = copied(this.#starts, new Uint32Array(length));
    this.#chunkOf = copied(this.#chunkOf, new Uint32Array(length));
    this.#hashBits = copied(this.#hashBits, new Uint8Array(length));
    this.#linesAreCut = copied(this.#linesAreCut, new Uint8Array(length));
  }

  /** Sets the bits of a text's trigrams in the open group. Hot. */
  #sign(text: Uint8Array, start: number, end: number): void {
    const group = this.#groupCount - 1;
    const chunk = this.#chunks[this.#chunkOf[group] as number] as Uint32Array;
    const base = this.#starts[group] as number;
    const shift = 32 - (this.#hashBits[group] as number);
    let trigram = 0;
    /** Bytes before the first trigram ends. */
    let skip = 2;
    for (let from = start; from < end; ) {
      const to = pieceEnd(text, from, end, pieceBytes);
      const length = foldUtf8(text, from, to, folded, 0);
      let i = 0;
      for (; skip > 0 && i < length; skip--) trigram = (trigram << 8) | (folded[i++] as number);
      for (; i < length; i++) {
        trigram = ((trigram << 8) | (folded[i] as number)) & 0xffffff;
        const hash = Math.imul(trigram, hashFactor) >>> shift;
        const word = base + (hash >>> 5);
        chunk[word] = (chunk[word] as number) | (1 << (hash & 31));
      }
      from = to;
    }
  }

  /** Whether any of the groups of one text may have what the query wants. */
  #mayMeet(query: TrigramQuery, first: number, last: number): boolean {
    switch (query.kind) {
      case 'none':
        return false;
      // Trigrams hashed apart say nothing of a byte or two.
      case 'all':
      case 'part':
        return true;
      case 'trigram':
        for (let group = first; group <= last; group++) if (this.#mayHold(query.trigram, group)) return true;
        return false;
      case 'and':
        for (const part of query.parts) if (!this.#mayMeet(part, first, last)) return false;
        return true;
      case 'or':
        for (const part of query.parts) if (this.#mayMeet(part, first, last)) return true;
        return false;
    }
  }

  #mayHold(trigram: number, group: number): boolean {
    const hash = Math.imul(trigram, hashFactor) >>> (32 - (this.#hashBits[group] as number));
    const chunk = this.#chunks[this.#chunkOf[group] as number] as Uint32Array;
    const word = chunk[(this.#starts[group] as number) + (hash >>> 5)] as number;
    return ((word >>> (hash & 31)) & 1) === 1;
  }

  /** The group of the last row below `row`; -1 where there is none. */
  #groupBefore(row: number): number {
    let low = 0;
    let high = this.#groupCount;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#firstRows[middle] as number) < row) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }
}

/** What all of a group's texts must have together. */
interface Needed {
  /** The numbers whose upper bits are the hashes of the trigrams. */
  readonly products: Uint32Array;
  readonly others: readonly TrigramQuery[];
}

/** Kept by query, which is plain data that regex-plan.ts makes once for a pattern, and asked again for each memtable. */
const neededBy = new WeakMap<TrigramQuery, Needed>();

function neededOf(query: TrigramQuery): Needed {
  const known = neededBy.get(query);
  if (known !== undefined) return known;
  const conditions = query.kind === 'and' ? query.parts : [query];
  const products = conditions.flatMap((each) =>
    each.kind === 'trigram' ? [Math.imul(each.trigram, hashFactor)] : [],
  );
  const others = conditions.filter(({ kind }) => kind !== 'trigram');
  const needed = { products: Uint32Array.from(products), others };
  neededBy.set(query, needed);
  return needed;
}

const groupsInitial = 8;
const groupRowsMax = 256;
/** Three words and two bytes. */
const groupBytes = 14;
const pieceBytes = 16 * 1024;
/** 64 KB. */
const chunkWordsMax = 16 * 1024;
const hashBitsMin = 12;
/** The signature of a document of any size fits the processor's cache, and a chunk. */
const hashBitsMax = 18;
/** The golden ratio's: neighbours are spread. */
const hashFactor = 0x9e3779b1;

/** Folded bytes of a piece; one text at a time. */
const folded = new Uint8Array(foldedBytesMax(pieceBytes));

/** A bit for a byte of text, as a power of two. */
function hashBitsOf(textBytes: number): number {
  const bits = 32 - Math.clz32(Math.max(1, textBytes - 1));
  return Math.min(hashBitsMax, Math.max(hashBitsMin, bits));
}

function copied<T extends Uint8Array | Uint32Array>(from: T, to: T): T {
  to.set(from);
  return to;
}
