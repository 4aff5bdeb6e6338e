import { systemRandom } from '../../../src/base/random.ts';

const chance = Buffer.from(systemRandom.bytes(8));

/**
 * What each thread's hashes begin with, chosen by chance: who does not know it can hardly choose many values that have one hash, each of
 * which would be compared with all before it. No answer depends on it, because values get their numbers in the order in which they come.
 */
export const hashSecret = chance.readInt32LE(0);

/** What the first word is multiplied by: odd. Differences of first words that no carry reaches could be undone by second words without it. */
export const secretFactor = chance.readInt32LE(4) | 1;

/** Answers a hash of two words of 32 bits, such as the halves of a double. `secret` and `factor` are given by tests alone. */
export function hashWords(first: number, second: number, secret = hashSecret, factor = secretFactor): number {
  let hash = Math.imul(first ^ secret, 0x9e3779b1);
  hash = Math.imul(hash ^ (hash >>> 15), factor);
  hash = Math.imul(hash ^ (hash >>> 13) ^ second, 0x85ebca6b);
  return hash ^ (hash >>> 15);
}
