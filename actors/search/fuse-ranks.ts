/** The constant of the formula, as in the paper that named reciprocal rank fusion, and in most systems since. */
const rankOffset = 60;

export interface Fused<T> {
  readonly item: T;
  readonly score: number;
}

/**
 * Reciprocal rank fusion: each list that has an item adds 1 / (60 + its place there, from 1). The best first; of equal ones
 * the newer. Items are told apart by their sequence.
 */
export function fuseRanks<T extends { readonly sequence: number }>(
  lists: readonly (readonly T[])[],
): Fused<T>[] {
  const fused = new Map<number, Fused<T>>();
  for (const list of lists) {
    for (const [at, item] of list.entries()) {
      const score = (fused.get(item.sequence)?.score ?? 0) + 1 / (rankOffset + at + 1);
      fused.set(item.sequence, { item, score });
    }
  }
  return [...fused.values()].sort((a, b) => b.score - a.score || b.item.sequence - a.item.sequence);
}
