/**
 * Sorting (trigram, group) pairs in bounded memory. Pairs arrive group by group:
 *
 * 1. Trigrams are noted in arrival order, and where each group begins: the group needs no word of its own.
 * 2. A full buffer is sorted by two counting passes, stable, so that a trigram's groups stay in order: by the lower 12
 *    bits of the trigram into words of its upper 12 bits and the group (20 bits), then by the upper 12.
 * 3. The sorted run is kept as bytes, 1.0 to 1.1 a pair: trigrams as distances, and each group as the distance to the one
 *    before with a bit that says whether it is the trigram's last.
 * 4. Runs are merged by their heads: there are at most some 80, so the smallest is found by looking at each.
 */
import { assert } from '../../src/base/assert.ts';
import { trigramBound } from './trigram-page.ts';
import { readVarint, varintBytesMax, varintEnd, writeVarint } from './varint.ts';

export const pairsPerRun = 1 << 19;

const groupBits = 20;
const groupMask = (1 << groupBits) - 1;
const halfBits = 12;
const halfCount = 1 << halfBits;
const halfMask = halfCount - 1;
/** A group needs a word where it begins; a run may have fewer pairs than it has room for. */
const groupsPerRun = 1 << 16;

export interface SortedRun {
  readonly bytes: Uint8Array;
  readonly firstGroup: number;
}

/** Collects pairs and sorts them. Holds 4 MB of pairs, 256 KB of groups and some 4 MB of encoded bytes. */
export class PairSorter {
  /** In arrival order, then sorted. */
  readonly #pairs = new Uint32Array(pairsPerRun);
  readonly #half = new Uint32Array(pairsPerRun);
  readonly #groupStarts = new Uint32Array(groupsPerRun + 1);
  readonly #counts = new Uint32Array(halfCount + 1);
  #encoded = new Uint8Array(4 * 1024 * 1024);
  #groupCount = 0;
  #firstGroup = 0;

  /** Written by whoever adds: the pairs so far are the first `length`. */
  get pairs(): Uint32Array {
    return this.#pairs;
  }

  /** Whether another group can begin. */
  get hasRoomForGroup(): boolean {
    return this.#groupCount < groupsPerRun;
  }

  /** The pairs from `length` on belong to `group`, which follows the one before. */
  beginGroup(group: number, length: number): void {
    assert(group <= groupMask, () => `group ${group} of a span that was full`);
    if (this.#groupCount === 0) this.#firstGroup = group;
    this.#groupStarts[this.#groupCount++] = length;
  }

  /** The first `length` pairs as a run; the sorter is empty then. */
  takeRun(length: number): SortedRun {
    this.#groupStarts[this.#groupCount] = length;
    this.#sortByLowerHalf(length);
    this.#sortByUpperHalf(length);
    const run = this.#encode(length);
    this.#groupCount = 0;
    return run;
  }

  #sortByLowerHalf(length: number): void {
    const firstPlaces = this.#counts;
    const pairs = this.#pairs;
    const half = this.#half;
    firstPlaces.fill(0);
    for (let i = 0; i < length; i++) {
      const lower = (pairs[i] as number) & halfMask;
      firstPlaces[lower + 1] = (firstPlaces[lower + 1] as number) + 1;
    }
    for (let i = 1; i <= halfCount; i++)
      firstPlaces[i] = (firstPlaces[i] as number) + (firstPlaces[i - 1] as number);
    for (let group = 0; group < this.#groupCount; group++) {
      const stop = this.#groupStarts[group + 1] as number;
      const word = this.#firstGroup + group;
      for (let i = this.#groupStarts[group] as number; i < stop; i++) {
        const pair = pairs[i] as number;
        const lower = pair & halfMask;
        const place = firstPlaces[lower] as number;
        firstPlaces[lower] = place + 1;
        half[place] = ((pair >>> halfBits) << groupBits) | word;
      }
    }
    // Each place has moved to the end of its bucket, which is the start of the next: what the next pass walks by.
  }

  #sortByUpperHalf(length: number): void {
    const pairs = this.#pairs;
    const half = this.#half;
    const lowerEnds = this.#counts;
    const places = new Uint32Array(halfCount + 1);
    for (let i = 0; i < length; i++) {
      const upper = (half[i] as number) >>> groupBits;
      places[upper + 1] = (places[upper + 1] as number) + 1;
    }
    for (let i = 1; i <= halfCount; i++) places[i] = (places[i] as number) + (places[i - 1] as number);
    let i = 0;
    for (let lower = 0; lower < halfCount; lower++) {
      const stop = lowerEnds[lower] as number;
      const word = lower << groupBits;
      for (; i < stop; i++) {
        const pair = half[i] as number;
        const upper = pair >>> groupBits;
        const place = places[upper] as number;
        places[upper] = place + 1;
        pairs[place] = word | (pair & groupMask);
      }
    }
    lowerEnds.set(places);
  }

  /** After the second pass the counts are the ends of the upper halves' buckets. */
  #encode(length: number): SortedRun {
    const pairs = this.#pairs;
    const upperEnds = this.#counts;
    let bytes: Uint8Array = this.#encoded;
    let at = 0;
    let i = 0;
    let lastTrigram = -1;
    for (let upper = 0; upper < halfCount; upper++) {
      const stop = upperEnds[upper] as number;
      while (i < stop) {
        const lower = (pairs[i] as number) >>> groupBits;
        const trigram = (upper << halfBits) | lower;
        let end = i + 1;
        while (end < stop && (pairs[end] as number) >>> groupBits === lower) end++;
        // A group's distance and its bit are below 2^21: three bytes.
        if (at + varintBytesMax + 3 * (end - i) > bytes.length) bytes = this.#grow(at, end - i);
        at = writeVarint(bytes, at, trigram - lastTrigram);
        lastTrigram = trigram;
        let previous = this.#firstGroup;
        for (; i < end; i++) {
          const group = (pairs[i] as number) & groupMask;
          let code = ((group - previous) << 1) | (i + 1 === end ? 1 : 0);
          previous = group;
          while (code > 0x7f) {
            bytes[at++] = (code & 0x7f) | 0x80;
            code >>>= 7;
          }
          bytes[at++] = code;
        }
      }
    }
    assert(i === length, () => `${i} of ${length} pairs were sorted`);
    return { bytes: bytes.slice(0, at), firstGroup: this.#firstGroup };
  }

  #grow(used: number, pairs: number): Uint8Array {
    const larger = new Uint8Array(this.#encoded.length * 2 + 3 * pairs);
    larger.set(this.#encoded.subarray(0, used));
    this.#encoded = larger;
    return larger;
  }
}

/** Reads one run from its front to its end. */
class RunReader {
  readonly #run: SortedRun;
  #at = 0;
  /** The trigram whose groups come next; `trigramBound` at the end. */
  trigram = -1;

  constructor(run: SortedRun) {
    this.#run = run;
    this.#readTrigram();
  }

  /** Moves the groups of the trigram into `target` at `to`, but for one that stands there last already. */
  readGroups(target: Uint32Array, to: number): number {
    const { bytes, firstGroup } = this.#run;
    let at = this.#at;
    let end = to;
    let group = firstGroup;
    for (let code = 0; (code & 1) === 0; ) {
      code = bytes[at++] as number;
      if (code > 0x7f) {
        code = readVarint(bytes, at - 1);
        at = varintEnd;
      }
      group += code >>> 1;
      target[end++] = group;
    }
    // A group that was cut by the end of a run may stand in both.
    if (to > 0 && target[to] === target[to - 1]) {
      target.copyWithin(to, to + 1, end);
      end--;
    }
    this.#at = at;
    this.#readTrigram();
    return end;
  }

  #readTrigram(): void {
    const { bytes } = this.#run;
    if (this.#at >= bytes.length) {
      this.trigram = trigramBound;
      return;
    }
    this.trigram += readVarint(bytes, this.#at);
    this.#at = varintEnd;
  }
}

/** Each trigram of the runs, ascending; its groups, ascending, are the first `count` of `groups` until the next step. */
export function* mergeRuns(
  runs: readonly SortedRun[],
  groups: Uint32Array,
): Generator<{ readonly trigram: number; readonly count: number }, void, void> {
  const readers = runs.map((run) => new RunReader(run));
  const heads = Uint32Array.from(readers, (reader) => reader.trigram);
  for (;;) {
    let trigram = trigramBound;
    for (let i = 0; i < heads.length; i++) {
      const head = heads[i] as number;
      if (head < trigram) trigram = head;
    }
    if (trigram === trigramBound) return;
    let count = 0;
    for (let i = 0; i < heads.length; i++) {
      if (heads[i] !== trigram) continue;
      const reader = readers[i] as RunReader;
      count = reader.readGroups(groups, count);
      heads[i] = reader.trigram;
    }
    yield { trigram, count };
  }
}
