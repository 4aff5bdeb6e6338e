import { DistanceFrom, type Metric } from './distance.ts';
import type { Graph } from './hnsw.ts';
import { Nearest, type Ranked } from './nearest.ts';

/** Neighbours that are looked for of each vector of the sample. */
const neighbours = 10;
/** Neighbours that are known exactly: among vectors that are all the same any of them will do. */
const known = 64;
/** How many neighbours a search that wants ten asks a graph for. */
const asked = 26;

type Neighbour = Ranked & { readonly row: number };

/** Vectors whose true neighbours are found by looking at all vectors once, while a graph is made of them. */
export class GraphSample {
  readonly #queries: readonly { readonly from: DistanceFrom; readonly nearest: Nearest<Neighbour> }[];
  readonly #dims: number;

  /** `queries`: vectors of `dims` numbers, one after the other. */
  constructor(queries: Float32Array, metric: Metric, dims: number) {
    this.#dims = dims;
    this.#queries = Array.from({ length: queries.length / dims }, (_, at) => ({
      from: new DistanceFrom(queries.subarray(at * dims, (at + 1) * dims), metric),
      nearest: new Nearest<Neighbour>(known),
    }));
  }

  /** Some more of all vectors. */
  see(rows: readonly number[], values: Float32Array): void {
    for (const { from, nearest } of this.#queries) {
      for (let at = 0; at < rows.length; at++) {
        const row = rows[at] as number;
        const candidate = { distance: from.to(values, at * this.#dims), sequence: row };
        if (nearest.wants(candidate)) nearest.add({ ...candidate, row });
      }
    }
  }

  /** The share of the true neighbours of all that were seen that a graph finds. */
  recallOf({ nearest: ask }: Graph): number {
    let found = 0;
    let wanted = 0;
    for (const { from, nearest } of this.#queries) {
      const truth = nearest.sorted();
      const needed = Math.min(neighbours, truth.length);
      const farthest = truth[needed - 1]?.distance ?? 0;
      const good = new Set(truth.filter(({ distance }) => distance <= farthest).map(({ row }) => row));
      // More are equally near than are known by row: which of them come is not to be judged.
      const isCrowded = truth.length === known && truth.at(-1)?.distance === farthest;
      const { rows } = ask(from.query, asked);
      const right = isCrowded ? rows.length : rows.filter((row) => good.has(row)).length;
      wanted += needed;
      found += Math.min(needed, right);
    }
    return wanted === 0 ? 1 : found / wanted;
  }
}
