import { assert } from '../../src/base/assert.ts';
import { blockKinds } from '../storage/segment-format.ts';
import type { AppendBlock } from '../storage/segment-writer.ts';
import { foldedBytesMax, foldUtf8 } from './fold.ts';
import { RowGroupsBuilder } from './row-groups.ts';
import { partedBytesMin, partsOf } from './text-parts.ts';
import { pieceEnd } from './text-pieces.ts';
import { encodeIndexRoot, encodeSparse, type WrittenPage, type WrittenSpan } from './trigram-index-format.ts';
import { type FinishedPage, PageBuilder, trigramBound } from './trigram-page.ts';
import { mergeRuns, PairSorter, pairsPerRun, type SortedRun } from './trigram-runs.ts';
import { TrigramSet } from './trigram-set.ts';

export interface TrigramIndexWriterOptions {
  /** A span ends when its runs, which wait in memory, hold this many bytes. */
  readonly runBytesMax?: number;
  /** A span ends at this many row groups: a bitmap of them is 32 KB. */
  readonly spanGroupsMax?: number;
}

const runBytesDefault = 40 * 1024 * 1024;
const spanGroupsDefault = 1 << 18;
/** Bytes of text between two looks at the room for pairs. */
const pieceBytes = 16 * 1024;
/** Bytes of text that are folded at once where a character is not ASCII. */
const foldedPieceBytes = 256;
/** Two of them stand after every text. */
const endBytes = 2;
const endOfText = Uint8Array.of(0xff, 0xff, 0xff);
const notAscii = 0xff;
/** What `foldUtf8` makes of a byte that is a character by itself. */
const asciiFold = new Uint8Array(256).fill(notAscii);
for (let byte = 0; byte < 0x80; byte++) foldUtf8(Uint8Array.of(byte), 0, 1, asciiFold, byte);

/** Twelve megabytes that a writer works with, clean when it has finished: they are the thread's next writer's then. */
interface Scratch {
  readonly sorter: PairSorter;
  /** A bit for each trigram that the open group has. */
  readonly seen: Uint32Array;
  /** What the parts of the open text have. */
  readonly whole: TrigramSet;
}
const idleScratch: Scratch[] = [];
/** More at a time are seldom; they are made, and forgotten. */
const idleScratchMax = 2;

/**
 * Builds the trigram index of one segment, beside the writing of its rows:
 *
 * 1. A row joins the open row group or begins the next (row-groups.ts). A large text has a group of its own and one more
 *    for each of its parts (text-parts.ts).
 * 2. Its text is folded in pieces, and each trigram that the group does not have yet, by a bitmap of all trigrams, becomes
 *    a pair with the group. Two bytes 0xFF, which no UTF-8 has, end every text: so every text has trigrams, and one that
 *    has a byte or two has a trigram that begins with them.
 * 3. Pairs are sorted by the half million into runs (trigram-runs.ts).
 * 4. A span ends when its runs hold `runBytesMax`: they are merged, and each list goes into a page (trigram-page.ts).
 *
 * Memory: 14 MB, the runs of a span (40 MB, of 310 MB of source code or 115 MB of log lines), and 2 bytes a row group. A
 * larger segment has several spans, each with all of its trigrams: that costs a query a page more a trigram and span, in
 * the same round, and no disk is needed to sort.
 */
export class TrigramIndexWriter {
  readonly #scratch: Scratch;
  readonly #runBytesMax: number;
  readonly #spanGroupsMax: number;
  readonly #groups = new RowGroupsBuilder();
  readonly #sorter: PairSorter;
  readonly #seen: Uint32Array;
  readonly #folded = new Uint8Array(foldedBytesMax(foldedPieceBytes));
  readonly #spans: WrittenSpan[] = [];
  #runs: SortedRun[] = [];
  #runsBytes = 0;
  /** The sorter's pairs so far, and where those of the open group begin. */
  #pairCount = 0;
  #groupStart = 0;
  #spanFirstGroup = 0;
  #groupIsOpen = false;
  #groupIsPart = false;
  /** The last bytes of the open text, and how many more it needs before a trigram ends. */
  #trigram = 0;
  #skip = 0;

  constructor(options: TrigramIndexWriterOptions = {}) {
    this.#scratch = idleScratch.pop() ?? {
      sorter: new PairSorter(),
      seen: new Uint32Array(trigramBound / 32),
      whole: new TrigramSet(),
    };
    this.#sorter = this.#scratch.sorter;
    this.#seen = this.#scratch.seen;
    this.#runBytesMax = options.runBytesMax ?? runBytesDefault;
    this.#spanGroupsMax = options.spanGroupsMax ?? spanGroupsDefault;
  }

  /** Adds the next row's text: UTF-8 from `start` to `end`, nothing for a row without one. */
  add(text: Uint8Array, start: number, end: number): void {
    if (this.#groups.isFullFor(end - start)) this.#closeGroup();
    const isParted = end - start >= partedBytesMin;
    if (isParted) this.#addParts(text, start, end);
    if (!this.#groupIsOpen) this.#openGroup();
    this.#groups.add(end - start);
    if (isParted) {
      this.#noteParts();
    } else {
      this.#noteText(text, start, end);
      this.#noteEnd(start, end);
    }
  }

  /** The open group, if there is one, was closed. */
  #addParts(text: Uint8Array, start: number, end: number): void {
    this.#groupIsPart = true;
    const { bounds, linesAreWhole } = partsOf(text, start, end);
    for (let at = 0; at < bounds.length; at += 2) {
      const [from, to] = [bounds[at] as number, bounds[at + 1] as number];
      this.#openGroup();
      this.#noteText(text, from, to);
      if (to === end) this.#noteEnd(from, to);
      this.#forgetSeen();
      this.#groups.addPart(linesAreWhole);
    }
    this.#groupIsPart = false;
    this.#groupIsOpen = false;
  }

  /** The whole has what the parts have: nothing is folded twice. */
  #noteParts(): void {
    this.#scratch.whole.drain((trigram) => {
      this.#makeRoom(1);
      this.#sorter.pairs[this.#pairCount++] = trigram;
    });
  }

  #noteText(text: Uint8Array, start: number, end: number): void {
    this.#trigram = 0;
    this.#skip = endBytes;
    for (let from = start; from < end; ) {
      from = this.#noteAscii(text, from, Math.min(end, from + pieceBytes));
      if (from < end && (text[from] as number) >= 0x80) from = this.#noteFolded(text, from, end);
    }
  }

  #noteEnd(start: number, end: number): void {
    // An empty text has one trigram, of end bytes alone.
    if (start === end) this.#noteBytes(endOfText, endBytes + 1);
    else this.#noteBytes(endOfText, endBytes);
  }

  /** Whether `writeSpan` must come before the next row. */
  get isSpanFull(): boolean {
    return this.#runsBytes >= this.#runBytesMax || this.#spanGroups >= this.#spanGroupsMax;
  }

  /** Writes what was added since the last span; the next row begins a new group. */
  async writeSpan(append: AppendBlock): Promise<void> {
    this.#closeGroup();
    const groupCount = this.#spanGroups;
    if (groupCount === 0) return;
    this.#closeRun();
    const pages: WrittenPage[] = [];
    for (const page of pagesOf(this.#runs, groupCount)) {
      const { offset, length } = await append(blockKinds.trigrams, page.bytes, { compress: true });
      const before = pages.at(-1);
      assert(before === undefined || before.offset + before.length === offset, () => 'pages with a gap');
      pages.push({ firstTrigram: page.firstTrigram, entryCount: page.entryCount, offset, length });
    }
    this.#spans.push({ groupCount, pages });
    this.#spanFirstGroup = this.#groups.groupCount;
    this.#runs = [];
    this.#runsBytes = 0;
  }

  /** Writes the last span and the indexes of all; the root is for the table of contents. Nothing may be added after it. */
  async finish(append: AppendBlock): Promise<Uint8Array> {
    await this.writeSpan(append);
    if (idleScratch.length < idleScratchMax) idleScratch.push(this.#scratch);
    const sparse = await append(blockKinds.trigramSparse, encodeSparse(this.#spans), { compress: true });
    const rowGroups = await append(blockKinds.rowGroups, this.#groups.encoded(), { compress: true });
    return encodeIndexRoot({
      sparse: { ...sparse, kind: blockKinds.trigramSparse },
      rowGroups: { ...rowGroups, kind: blockKinds.rowGroups },
      groupCount: this.#groups.groupCount,
      rowCount: this.#groups.rowCount,
    });
  }

  /** Closed ones of the open span. */
  get #spanGroups(): number {
    return this.#groups.groupCount - this.#spanFirstGroup;
  }

  #openGroup(): void {
    if (!this.#sorter.hasRoomForGroup) this.#closeRun();
    this.#sorter.beginGroup(this.#spanGroups, this.#pairCount);
    this.#groupStart = this.#pairCount;
    this.#groupIsOpen = true;
  }

  #closeGroup(): void {
    if (!this.#groupIsOpen) return;
    this.#forgetSeen();
    this.#groups.close();
    this.#groupIsOpen = false;
  }

  /** The group's own trigrams are the list of the bits to clear. */
  #forgetSeen(): void {
    const { pairs } = this.#sorter;
    if (this.#groupIsPart) {
      const { whole } = this.#scratch;
      for (let i = this.#groupStart; i < this.#pairCount; i++) whole.add(pairs[i] as number);
    }
    for (let i = this.#groupStart; i < this.#pairCount; i++) this.#seen[(pairs[i] as number) >>> 5] = 0;
  }

  #closeRun(): void {
    if (this.#pairCount === 0) return;
    const run = this.#sorter.takeRun(this.#pairCount);
    this.#runs.push(run);
    this.#runsBytes += run.bytes.length;
    this.#pairCount = 0;
    this.#groupStart = 0;
  }

  /** A run ends inside of the open group: what of it comes later may repeat trigrams, which the merge leaves out. */
  #splitGroup(): void {
    this.#forgetSeen();
    this.#closeRun();
    this.#sorter.beginGroup(this.#spanGroups, 0);
  }

  #makeRoom(pairs: number): void {
    if (this.#pairCount + pairs > pairsPerRun) this.#splitGroup();
  }

  /**
   * Notes the trigrams that end before the first byte that is not ASCII, whose place it answers, folding on the way. Hot:
   * nearly all of most texts goes through here. Folding apart took a third more, and noting without a branch a quarter.
   */
  #noteAscii(text: Uint8Array, start: number, end: number): number {
    this.#makeRoom(end - start);
    const seen = this.#seen;
    const { pairs } = this.#sorter;
    let count = this.#pairCount;
    let trigram = this.#trigram;
    let from = start;
    while (this.#skip > 0 && from < end && (text[from] as number) < 0x80) {
      trigram = (trigram << 8) | (asciiFold[text[from++] as number] as number);
      this.#skip--;
    }
    for (; from < end; from++) {
      const byte = asciiFold[text[from] as number] as number;
      if (byte === notAscii) break;
      trigram = ((trigram << 8) | byte) & 0xffffff;
      const word = seen[trigram >>> 5] as number;
      const bit = 1 << (trigram & 31);
      if ((word & bit) === 0) {
        seen[trigram >>> 5] = word | bit;
        pairs[count++] = trigram;
      }
    }
    this.#pairCount = count;
    this.#trigram = trigram;
    return from;
  }

  /** Folds a few characters from `from` on, notes their trigrams, and answers where they end. */
  #noteFolded(text: Uint8Array, from: number, end: number): number {
    const to = pieceEnd(text, from, end, foldedPieceBytes);
    this.#noteBytes(this.#folded, foldUtf8(text, from, to, this.#folded, 0));
    return to;
  }

  #noteBytes(folded: Uint8Array, length: number): void {
    this.#makeRoom(length);
    const seen = this.#seen;
    const { pairs } = this.#sorter;
    let count = this.#pairCount;
    let trigram = this.#trigram;
    let i = 0;
    for (; this.#skip > 0 && i < length; this.#skip--) trigram = (trigram << 8) | (folded[i++] as number);
    for (; i < length; i++) {
      trigram = ((trigram << 8) | (folded[i] as number)) & 0xffffff;
      const word = seen[trigram >>> 5] as number;
      const bit = 1 << (trigram & 31);
      if ((word & bit) === 0) {
        seen[trigram >>> 5] = word | bit;
        pairs[count++] = trigram;
      }
    }
    this.#pairCount = count;
    this.#trigram = trigram;
  }
}

/** Each list with its newest group first, as an age. */
function* pagesOf(runs: readonly SortedRun[], groupCount: number): Generator<FinishedPage, void, void> {
  const builder = new PageBuilder(groupCount);
  const groups = new Uint32Array(groupCount + 1);
  const ages = new Uint32Array(groupCount);
  for (const { trigram, count } of mergeRuns(runs, groups)) {
    for (let i = 0; i < count; i++) ages[i] = groupCount - 1 - (groups[count - 1 - i] as number);
    const page = builder.add(trigram, ages, count);
    if (page !== null) yield page;
  }
  const last = builder.finish();
  if (last !== null) yield last;
}
