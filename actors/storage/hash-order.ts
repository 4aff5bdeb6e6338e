/**
 * Sorts rows by the first 64 bits of their ids' digests: into as many buckets as there are rows, by their first bits, which in one pass puts nearly
 * all of them where they belong, and then each bucket. Many rows are grouped before: what lies in no cache of the processor is then read
 * and written front to back, and not once a row. No boxing of BigInts; ids whose digests were chosen to share their
 * first bits make it no slower than comparing.
 * Hot while a segment is built.
 */
import { digestId, type IdDigestFunction, idDigestWords } from './id-digest.ts';

const wordBits = 32;
/** 64 MB of counts. */
const bucketBitsMax = 24;
/** Longer buckets are not sorted by insertion. */
const insertedMax = 16;
/** Rows that groups have on average where there may be enough groups: with 16 bytes of digest and 12 of numbers a row, one fits a core's cache. */
const groupRows = 4_096;
/** More groups are more places to write to than a core has at hand. */
const groupBitsMax = 10;

/** Digests that lie in groups by their first bits, the groups in rising order. */
export interface HashGroups {
  /** How many first bits the digests of a group share. */
  readonly bits: number;
  /** Where each group begins, and behind the last one where it ends. */
  readonly starts: Uint32Array;
}

/** Moves digests in place into groups by their first bits. `others`: numbers, one a digest, that move along. */
export function groupByHash(digests: Uint32Array, count: number, others: readonly Uint32Array[]): HashGroups {
  const bits = Math.min(Math.max(0, Math.ceil(Math.log2(count / groupRows))), groupBitsMax);
  if (bits === 0) return { bits, starts: Uint32Array.of(0, count) };
  const starts = countBuckets(digests, 0, count, 0, bits);
  const ends = starts.slice(1);
  const next = starts.slice();
  for (let group = 0; group < ends.length; group++) {
    let at = next[group] as number;
    const end = ends[group] as number;
    while (at < end) {
      const owner = (digests[at * idDigestWords] as number) >>> (wordBits - bits);
      if (owner === group) at++;
      else {
        const to = next[owner] as number;
        next[owner] = to + 1;
        for (let word = 0; word < idDigestWords; word++)
          swap(digests, at * idDigestWords + word, to * idDigestWords + word);
        for (const numbers of others) swap(numbers, at, to);
      }
    }
    next[group] = end;
  }
  return { bits, starts };
}

function swap(numbers: Uint32Array, a: number, b: number): void {
  const number = numbers[a] as number;
  numbers[a] = numbers[b] as number;
  numbers[b] = number;
}

/**
 * Positions 0 to count - 1 in the order of their hashes; equal hashes by rising `ranks`, which has one number a position, and without it by
 * their positions. `groups`: where the digests lie in groups.
 */
export function orderByHash(
  digests: Uint32Array,
  count: number,
  {
    ranks = null,
    groups = null,
  }: { readonly ranks?: Uint32Array | null; readonly groups?: HashGroups | null } = {},
): Uint32Array {
  const order = new Uint32Array(count);
  const { bits, starts } = groups ?? { bits: 0, starts: Uint32Array.of(0, count) };
  const before = (a: number, b: number) =>
    compareHashes(digests, a, b) || (ranks === null ? a - b : (ranks[a] as number) - (ranks[b] as number));
  for (let group = 0; group + 1 < starts.length; group++)
    orderGroup(digests, order, starts[group] as number, starts[group + 1] as number, bits, before);
  return order;
}

type Compare = (a: number, b: number) => number;

/** Orders the positions from `from` to `end`, whose digests share their first `shared` bits. */
function orderGroup(
  digests: Uint32Array,
  order: Uint32Array,
  from: number,
  end: number,
  shared: number,
  compare: Compare,
): void {
  const bits = Math.min(Math.max(1, Math.ceil(Math.log2(end - from))), bucketBitsMax);
  const starts = countBuckets(digests, from, end, shared, bits);
  // Where each bucket begins; once it is filled, where the next one does.
  for (let position = from; position < end; position++) {
    const bucket = ((digests[position * idDigestWords] as number) << shared) >>> (wordBits - bits);
    const slot = starts[bucket] as number;
    starts[bucket] = slot + 1;
    order[slot] = position;
  }
  for (let bucket = 0, first = from; first < end; bucket++) {
    const last = starts[bucket] as number;
    if (last - first > insertedMax) order.subarray(first, last).sort(compare);
    else insertSorted(order, first, last, compare);
    first = last;
  }
}

/** Where each bucket of positions begins, by `bits` bits of their digests behind the `shared` first ones, and behind the last one the end. */
function countBuckets(
  digests: Uint32Array,
  from: number,
  end: number,
  shared: number,
  bits: number,
): Uint32Array {
  const starts = new Uint32Array(2 ** bits + 1);
  starts[0] = from;
  for (let at = from; at < end; at++) {
    const bucket = (((digests[at * idDigestWords] as number) << shared) >>> (wordBits - bits)) + 1;
    starts[bucket] = (starts[bucket] as number) + 1;
  }
  for (let bucket = 1; bucket < starts.length; bucket++)
    starts[bucket] = (starts[bucket] as number) + (starts[bucket - 1] as number);
  return starts;
}

function insertSorted(order: Uint32Array, from: number, end: number, compare: Compare): void {
  for (let next = from + 1; next < end; next++) {
    const position = order[next] as number;
    let at = next;
    for (; at > from; at--) {
      const before = order[at - 1] as number;
      if (compare(before, position) <= 0) break;
      order[at] = before;
    }
    order[at] = position;
  }
}

function compareHashes(digests: Uint32Array, a: number, b: number): number {
  const [atA, atB] = [a * idDigestWords, b * idDigestWords];
  return (
    (digests[atA] as number) - (digests[atB] as number) ||
    (digests[atA + 1] as number) - (digests[atB + 1] as number)
  );
}

/** Ids to look for, digested and put into the order of their hashes: once, however many segments are asked. */
export interface WantedIds {
  readonly count: number;
  /** The digests, four words each, most significant first. */
  readonly words: Uint32Array;
  /** Places of the ids by rising hash. */
  readonly order: Uint32Array;
}

export function wantIds(ids: readonly string[], digest: IdDigestFunction = digestId): WantedIds {
  const words = new Uint32Array(ids.length * idDigestWords);
  ids.forEach((id, index) => {
    digest(id, words, index * idDigestWords);
  });
  return { count: ids.length, words, order: orderByHash(words, ids.length) };
}

const single: WantedIds = { count: 1, words: new Uint32Array(idDigestWords), order: Uint32Array.of(0) };

/** Hot: one id, in memory that the next call takes again. For look-ups that make no promise. */
export function wantIdForNow(id: string): WantedIds {
  digestId(id, single.words, 0);
  return single;
}
