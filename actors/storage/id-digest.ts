/**
 * What a segment knows an id by: the first 128 bits of its SHA-256.
 *
 * Two ids with one digest would be one document to us, and the tombstone of one would delete the other. So the digest must
 * stand against whoever chooses ids: to hit one of the 2^24 ids of a large segment takes 2^104 tries. A fast hash such as
 * xxh64 does not stand: colliding ids can be written down, with its seed unknown too. In return a look-up needs no more
 * than the index: nobody reads a document to see whether it has the id.
 */
import { sha256Latin1 } from '../../src/base/hash.ts';

export const idDigestWords = 4;

/** Writes the four words of an id's digest at `at`. */
export type IdDigestFunction = (id: string | Uint8Array, words: Uint32Array, at: number) => void;

/** Hot: once a row of a segment that is built, once an id that is looked up. */
export const digestId: IdDigestFunction = (id, words, at) => {
  const digest = sha256Latin1(id);
  for (let word = 0; word < idDigestWords; word++) {
    const from = word * 4;
    words[at + word] =
      (digest.charCodeAt(from) << 24) |
      (digest.charCodeAt(from + 1) << 16) |
      (digest.charCodeAt(from + 2) << 8) |
      digest.charCodeAt(from + 3);
  }
};
