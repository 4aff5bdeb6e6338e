import type { Index, IndexConfig } from 'usearch';
import { type GraphShape, inShape } from './graph-shape.ts';

/**
 * The door to usearch: graphs (HNSW) over vectors, built in memory, saved to a file, and searched where a file is mapped.
 *
 * usearch believes its files: it reads out of bounds where one is damaged. Who calls `viewGraph` has checked the file's checksum.
 * Keys are rows of the segment.
 */
type Usearch = typeof import('usearch');

let loading: Promise<Usearch> | null = null;

/** Rejects on a platform for which the package has no binary. */
function usearch(): Promise<Usearch> {
  loading ??= import('usearch');
  return loading;
}

/** Neighbours of a vector; twice as many on the lowest level. */
const connectivity = 16;
/** Vectors that building looks at to choose neighbours, and that searching keeps: measured, see README's decisions. */
const expansionAdd = 128;
const expansionSearch = 96;

/** Bytes of a graph's neighbours and levels, for each vector, about. */
export const linkBytesPerVector = 2 * connectivity * 4 + 64;
/** What an open graph takes in memory beside its file, for each vector: its place, and its key in a table. */
export const openGraphBytesPerVector = 64;

export interface GraphMatches {
  /** The nearest first, as far as the graph tells. */
  readonly rows: Uint32Array;
  /** As the graph's numbers tell, which are rounded. */
  readonly distances: Float32Array;
}

export interface Graph {
  /** At most `count` of the nearest. Takes some 5 µs for each. */
  nearest(query: Float32Array, count: number): GraphMatches;
}

export interface GraphBuilder {
  /** `shaped`: the vectors' numbers in the graph's shape, those of the first row, of the second one, and so on. */
  add(rows: readonly number[], shaped: Float32Array): void;
  readonly count: number;
  nearest: Graph['nearest'];
  save(path: string): void;
}

export async function graphBuilder(shape: GraphShape): Promise<GraphBuilder> {
  const { Index } = await usearch();
  const index = new Index(await configOf(shape));
  return {
    add(rows, shaped) {
      // One thread: builds go on behind everything else.
      if (rows.length > 0) index.add(BigUint64Array.from(rows, BigInt), shaped, 1);
    },
    get count() {
      return index.size();
    },
    nearest: (query, count) => nearestIn(index, shape, query, count),
    save: (path) => index.save(path),
  };
}

/** A file that `save` wrote, as it was then: see above. */
export async function viewGraph(path: string, shape: GraphShape): Promise<Graph> {
  const { Index } = await usearch();
  const index = new Index(await configOf(shape));
  index.view(path);
  return { nearest: (query, count) => nearestIn(index, shape, query, count) };
}

async function configOf({ dims, metric, precision }: GraphShape): Promise<IndexConfig> {
  const { MetricKind, ScalarKind } = await usearch();
  return {
    dimensions: dims,
    metric: metric === 'cosine' ? MetricKind.Cos : MetricKind.L2sq,
    quantization: precision === 'f16' ? ScalarKind.F16 : ScalarKind.F32,
    connectivity,
    expansion_add: expansionAdd,
    expansion_search: expansionSearch,
    multi: false,
  };
}

function nearestIn(index: Index, shape: GraphShape, query: Float32Array, count: number): GraphMatches {
  const { keys, distances } = index.search(inShape(query, shape), Math.min(count, index.size()), 1);
  const { metric, scale } = shape;
  const rows = new Uint32Array(keys.length);
  for (let at = 0; at < rows.length; at++) {
    rows[at] = Number(keys[at]);
    // usearch leaves the root to us.
    if (metric === 'euclidean') distances[at] = Math.sqrt(distances[at] as number) / scale;
  }
  return { rows, distances };
}
