/**
 * Sorts by a stable merge sort that gives way: between two steps, of a millisecond or so each, others may have their turn. It may use
 * the memory of `items`.
 */
export function* sortedInSteps<T>(
  items: T[],
  compare: (a: T, b: T) => number,
): Generator<undefined, T[], void> {
  if (items.length <= runLength) return items.sort(compare);
  let runs: T[][] = [];
  for (let from = 0; from < items.length; from += runLength) {
    runs.push(items.slice(from, from + runLength).sort(compare));
    yield;
  }
  while (runs.length > 1) {
    const merged: T[][] = [];
    for (let at = 0; at < runs.length; at += 2) {
      const [first, second] = [runs[at] as T[], runs[at + 1]];
      merged.push(second === undefined ? first : yield* mergedInSteps(first, second, compare));
    }
    runs = merged;
  }
  return runs[0] as T[];
}

/** How many items a run has, and one step of a merge. */
const runLength = 2_048;

function* mergedInSteps<T>(a: T[], b: T[], compare: (a: T, b: T) => number): Generator<undefined, T[], void> {
  const merged: T[] = [];
  let [i, j] = [0, 0];
  while (i < a.length && j < b.length) {
    // Where two are equal, the first run's came first.
    merged.push(compare(a[i] as T, b[j] as T) <= 0 ? (a[i++] as T) : (b[j++] as T));
    if (merged.length % runLength === 0) yield;
  }
  while (i < a.length) merged.push(a[i++] as T);
  while (j < b.length) merged.push(b[j++] as T);
  return merged;
}
