/**
 * The door to usearch: graphs (HNSW) over vectors, built in memory, saved to a file, and searched where a file is mapped.
 *
 * usearch believes its files: it reads out of bounds where one is damaged. Who calls `viewGraph` has checked the file's checksum.
 * Keys are rows of the segment.
 *
 * Its binary is asked without the package's JavaScript, which makes floats of 8-bit numbers: these are a third quicker to
 * search and to build than 16-bit floats, for half as many bytes come from memory.
 */
import { createRequire } from 'node:module';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { distanceOf, type GraphShape, inShape, isInSight, type ShapedNumbers } from './graph-shape.ts';

interface CompiledIndex {
  add(keys: BigUint64Array, vectors: ShapedNumbers, threads: number): void;
  search(
    vectors: ShapedNumbers,
    count: number,
    threads: number,
  ): [keys: BigUint64Array, distances: Float32Array, counts: BigUint64Array];
  size(): number;
  save(path: string): void;
  view(path: string): void;
}

type NewIndex = new (
  dims: number,
  metric: 'l2sq',
  precision: GraphShape['precision'],
  connectivity: number,
  expansionAdd: number,
  expansionSearch: number,
  multi: boolean,
) => CompiledIndex;

let compiled: NewIndex | null = null;

/** Throws on a platform for which the package has no binary. */
function newIndex({ dims, precision }: GraphShape, expansionSearch: number): CompiledIndex {
  if (compiled === null) {
    const entry = import.meta.resolve('usearch');
    const load = createRequire(entry)('node-gyp-build') as (folder: string) => { CompiledIndex: NewIndex };
    compiled = load(fileURLToPath(new URL('../../../', entry))).CompiledIndex;
  }
  return new compiled(dims, 'l2sq', precision, connectivity, expansionAdd, expansionSearch, false);
}

/** Neighbours of a vector; twice as many on the lowest level. */
const connectivity = 16;
/** Vectors that building looks at to choose neighbours. */
const expansionAdd = 64;
/** Candidates that a search may keep: real texts need half as many again as clusters do for the same recall. */
export const expansions: readonly number[] = [48, 64, 96, 128, 192];
/** All cores, behind everything else that they do: a build's threads have the low priority of the one that asks. */
const buildThreads = Math.min(4, availableParallelism());

/** Threads begin and end with each call. */
const addedAtOnceMax = 1_024;
/** Threads that begin an empty graph together don't see each other's vectors: some would be found by nobody. */
const addedAtOnceMin = 16;
const fewVectors = 4_096;

/** Bytes of a graph's neighbours and levels, for each vector, about. */
export const linkBytesPerVector = 2 * connectivity * 4 + 64;
/** What an open graph takes in memory beside its file, for each vector: its place, and its key in a table. */
export const openGraphBytesPerVector = 64;

export interface GraphMatches {
  /** The rows of the nearest vectors, the nearest first, as far as the graph tells. */
  readonly rows: Uint32Array;
  /** As the graph's numbers tell, which are rounded. */
  readonly distances: Float32Array;
}

export interface Graph {
  /** At most `count` of the nearest, and none of a query that is out of the graph's sight. Takes some 5 µs for each. */
  nearest(query: Float32Array, count: number): GraphMatches;
}

export interface GraphBuilder {
  /** `shaped`: the vectors' numbers in the graph's shape, those of the first row, of the second one, and so on. */
  add(rows: readonly number[], shaped: ShapedNumbers): void;
  readonly count: number;
  save(path: string): void;
}

export function graphBuilder(shape: GraphShape): GraphBuilder {
  const index = newIndex(shape, 0);
  const { dims, precision } = shape;
  const rows: bigint[] = [];
  const vectors =
    precision === 'i8' ? new Int8Array(addedAtOnceMax * dims) : new Float32Array(addedAtOnceMax * dims);
  let atOnce = addedAtOnceMin;
  const addAll = () => {
    if (rows.length === 0) return;
    index.add(BigUint64Array.from(rows), vectors.subarray(0, rows.length * dims), buildThreads);
    rows.length = 0;
    if (index.size() >= fewVectors) atOnce = addedAtOnceMax;
  };
  return {
    add(added, shaped) {
      for (const [at, row] of added.entries()) {
        vectors.set(shaped.subarray(at * dims, (at + 1) * dims), rows.length * dims);
        if (rows.push(BigInt(row)) === atOnce) addAll();
      }
    },
    get count() {
      return index.size() + rows.length;
    },
    save(path) {
      addAll();
      index.save(path);
    },
  };
}

/** A file that `save` wrote, as it was then: see above. */
export function viewGraph(path: string, shape: GraphShape, expansion: number): Graph {
  const index = newIndex(shape, expansion);
  index.view(path);
  return { nearest: (query, count) => nearestIn(index, shape, query, count) };
}

function nearestIn(
  index: CompiledIndex,
  shape: GraphShape,
  query: Float32Array,
  count: number,
): GraphMatches {
  if (!isInSight(query, shape)) return { rows: new Uint32Array(), distances: new Float32Array() };
  const shaped = inShape(query, shape);
  const [keys, distances, [found = 0n]] = index.search(shaped, Math.min(count, index.size()), 1);
  const rows = new Uint32Array(Number(found));
  for (let at = 0; at < rows.length; at++) {
    rows[at] = Number(keys[at]);
    distances[at] = distanceOf(distances[at] as number, shape);
  }
  return { rows, distances };
}
