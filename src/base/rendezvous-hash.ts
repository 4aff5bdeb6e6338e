import { xxh64Text } from './hash.ts';

/**
 * The member that a key belongs to, by highest random weight: when a member leaves, only its own keys move.
 * Answers an index into `members`, which must not be empty.
 */
export function rendezvousPick(key: string, members: readonly string[]): number {
  let best = 0;
  let bestWeight = -1n;
  for (const [index, member] of members.entries()) {
    const weight = xxh64Text(`${member}/${key}`);
    if (weight > bestWeight) {
      best = index;
      bestWeight = weight;
    }
  }
  return best;
}
