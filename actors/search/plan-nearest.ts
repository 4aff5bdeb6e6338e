/**
 * How the nearest of a segment's rows are found, from how many there are. Pure.
 *
 * - `exact`: every vector of the rows that are looked at.
 * - `graph`: the nearest of all rows as the graph tells, as many as have enough of those rows among them.
 */
export type NearestPlan = { readonly kind: 'exact' } | { readonly kind: 'graph'; readonly ask: number };

export interface NearestRowsWanted {
  /** Hits. */
  readonly count: number;
  /** Rows of the segment that may be hits, and all of them. */
  readonly selected: number;
  readonly rows: number;
  readonly dims: number;
  /** Blocks of vectors. */
  readonly blocks: number;
  readonly hasGraphs: boolean;
}

/** Measured: numbers of vectors compared in a millisecond, a block found, and a vector that a graph names. */
const numbersPerMs = 800_000;
const blockMs = 0.005;
const namedMs = 0.006;
/** A call of the graph can't be interrupted: some 12 ms. */
export const askMax = 2_048;

/** Vectors that a graph names beyond those that are wanted: its numbers are rounded. */
export function withSpare(count: number): number {
  return count + Math.max(16, count >>> 1);
}

export function planNearest(wanted: NearestRowsWanted): NearestPlan {
  const { count, selected, rows, dims, blocks, hasGraphs } = wanted;
  if (!hasGraphs || selected <= count) return { kind: 'exact' };
  // Of what lies far down a graph misses more: where a filter reaches down there, more are named than should be enough.
  const reach = rows / selected;
  const ask = Math.ceil(withSpare(count) * reach * Math.min(3, reach));
  const exactMs = (selected * dims) / numbersPerMs + Math.min(blocks, selected) * blockMs;
  const graphMs = ask * namedMs + withSpare(count) * blockMs;
  return ask > askMax || exactMs <= graphMs ? { kind: 'exact' } : { kind: 'graph', ask };
}
