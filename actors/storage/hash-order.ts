/**
 * Sorts rows by the first 64 bits of their ids' digests: into as many buckets as there are rows, by their first bits, which in one pass puts nearly
 * all of them where they belong, and then each bucket. Stable, no boxing of BigInts; ids whose digests were chosen to share their
 * first bits make it no slower than comparing.
 * Hot while a segment is built.
 */
import { digestId, type IdDigestFunction, idDigestWords } from './id-digest.ts';

const wordBits = 32;
/** 64 MB of counts. */
const bucketBitsMax = 24;
/** Longer buckets are not sorted by insertion. */
const insertedMax = 16;

/** Positions 0 to count - 1 in the order of their hashes; equal hashes keep the order of their positions. */
export function orderByHash(digests: Uint32Array, count: number): Uint32Array {
  const order = new Uint32Array(count);
  const bits = Math.min(Math.max(1, Math.ceil(Math.log2(count))), bucketBitsMax);
  const shift = wordBits - bits;
  // Where each bucket begins; once it is filled, where the next one does.
  const starts = new Uint32Array(2 ** bits + 1);
  for (let at = 0; at < count; at++) {
    const bucket = ((digests[at * idDigestWords] as number) >>> shift) + 1;
    starts[bucket] = (starts[bucket] as number) + 1;
  }
  for (let bucket = 1; bucket < starts.length; bucket++)
    starts[bucket] = (starts[bucket] as number) + (starts[bucket - 1] as number);
  for (let position = 0; position < count; position++) {
    const bucket = (digests[position * idDigestWords] as number) >>> shift;
    const slot = starts[bucket] as number;
    starts[bucket] = slot + 1;
    order[slot] = position;
  }
  for (let bucket = 0, from = 0; from < count; bucket++) {
    const end = starts[bucket] as number;
    if (end - from > insertedMax)
      order.subarray(from, end).sort((a, b) => compareHashes(digests, a, b) || a - b);
    else insertSorted(order, from, end, digests);
    from = end;
  }
  return order;
}

function insertSorted(order: Uint32Array, from: number, end: number, digests: Uint32Array): void {
  for (let next = from + 1; next < end; next++) {
    const position = order[next] as number;
    let at = next;
    for (; at > from; at--) {
      const before = order[at - 1] as number;
      if (compareHashes(digests, before, position) <= 0) break;
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
