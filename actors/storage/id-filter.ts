/**
 * Which ids a segment may hold: a Bloom filter in blocks of 64 bytes, so that one id is judged by one block. `words` are
 * digests as in id-digest.ts. Of ids that are not there about 1 in 150 passes, none that is there fails.
 */
import { filterEntry } from './segment-format.ts';

const bitsPerId = 12;
const blockBits = filterEntry.bytes * 8;
const bitMask = blockBits - 1;
/** Bits that an id sets, nine bits of its digest each: three from each of the last two words, one from the second. */
const bitsOf = (words: Uint32Array, at: number, bits: Uint32Array): void => {
  const second = words[at + 1] as number;
  const third = words[at + 2] as number;
  const fourth = words[at + 3] as number;
  bits[0] = third & bitMask;
  bits[1] = (third >>> 9) & bitMask;
  bits[2] = (third >>> 18) & bitMask;
  bits[3] = fourth & bitMask;
  bits[4] = (fourth >>> 9) & bitMask;
  bits[5] = (fourth >>> 18) & bitMask;
  bits[6] = second & bitMask;
};
const bits = new Uint32Array(7);

export function filterBlockCount(idCount: number): number {
  return Math.max(1, Math.ceil((idCount * bitsPerId) / blockBits));
}

/** The block that judges an id: by the first word, so in the order of the ids index. */
export function filterBlockOf(words: Uint32Array, at: number, blockCount: number): number {
  return Math.floor(((words[at] as number) / 2 ** 32) * blockCount);
}

/** `block` begins at `offset` of `filter`. */
export function addToFilter(filter: Uint8Array, offset: number, words: Uint32Array, at: number): void {
  bitsOf(words, at, bits);
  for (let i = 0; i < bits.length; i++) {
    const bit = bits[i] as number;
    const byte = offset + (bit >>> 3);
    filter[byte] = (filter[byte] as number) | (1 << (bit & 7));
  }
}

export function mayHold(filter: Uint8Array, offset: number, words: Uint32Array, at: number): boolean {
  bitsOf(words, at, bits);
  for (const bit of bits)
    if (((filter[offset + (bit >>> 3)] as number) & (1 << (bit & 7))) === 0) return false;
  return true;
}
