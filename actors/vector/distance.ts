/**
 * How far two vectors are from each other, in doubles over their float32 numbers, so that every way to an answer ends with
 * the same number.
 *
 * - `cosine`: 1 less the cosine of their angle, 0 to 2. A vector of zeros has no direction: it is 1 from every other.
 * - `euclidean`: the length of their difference.
 */
import type { VectorConfig } from '../../protocol/namespace.ts';

export type Metric = VectorConfig['metric'];

/** Distances from one vector. */
export class DistanceFrom {
  readonly metric: Metric;
  readonly #query: Float32Array;
  readonly #squares: number;

  constructor(query: Float32Array, metric: Metric) {
    this.metric = metric;
    this.#query = query;
    this.#squares = squaredLength(query);
  }

  get dims(): number {
    return this.#query.length;
  }

  get query(): Float32Array {
    return this.#query;
  }

  /** A query without a direction: every vector is equally far, and the newest are the nearest. */
  get isUndirected(): boolean {
    return this.metric === 'cosine' && this.#squares === 0;
  }

  /** To the vector of as many numbers that begins at `start`. Hot: a search without a graph is this loop. */
  to(values: Float32Array, start = 0): number {
    return this.metric === 'cosine' ? this.#cosineTo(values, start) : this.#euclideanTo(values, start);
  }

  /** As `to`, for numbers that stand at any address: the vector's bytes begin at `start`. */
  toBytes(view: DataView, start: number): number {
    return this.metric === 'cosine' ? this.#cosineToBytes(view, start) : this.#euclideanToBytes(view, start);
  }

  #cosineToBytes(view: DataView, start: number): number {
    const query = this.#query;
    let dot = 0;
    let squares = 0;
    for (let i = 0; i < query.length; i++) {
      const value = view.getFloat32(start + i * 4, true);
      dot += (query[i] as number) * value;
      squares += value * value;
    }
    return this.#cosineDistance(dot, squares);
  }

  #euclideanToBytes(view: DataView, start: number): number {
    const query = this.#query;
    let squares = 0;
    for (let i = 0; i < query.length; i++) {
      const difference = (query[i] as number) - view.getFloat32(start + i * 4, true);
      squares += difference * difference;
    }
    return Math.sqrt(squares);
  }

  #cosineTo(values: Float32Array, start: number): number {
    const query = this.#query;
    let dot = 0;
    let squares = 0;
    for (let i = 0; i < query.length; i++) {
      const value = values[start + i] as number;
      dot += (query[i] as number) * value;
      squares += value * value;
    }
    return this.#cosineDistance(dot, squares);
  }

  #cosineDistance(dot: number, squares: number): number {
    // One root of the product: the same from either side, and exact more often than a product of roots.
    const lengths = Math.sqrt(this.#squares * squares);
    if (lengths === 0) return 1;
    // A rounded quotient may be a little over 1.
    return 1 - Math.max(-1, Math.min(1, dot / lengths));
  }

  #euclideanTo(values: Float32Array, start: number): number {
    const query = this.#query;
    let squares = 0;
    for (let i = 0; i < query.length; i++) {
      const difference = (query[i] as number) - (values[start + i] as number);
      squares += difference * difference;
    }
    return Math.sqrt(squares);
  }
}

/** Higher is better: the cosine, or 1 / (1 + distance). */
export function scoreOf(metric: Metric, distance: number): number {
  return metric === 'cosine' ? 1 - distance : 1 / (1 + distance);
}

/** The square of the length of the vector of `dims` numbers that begins at `start`. */
export function squaredLength(values: Float32Array, start = 0, dims = values.length): number {
  let sum = 0;
  for (let i = start; i < start + dims; i++) sum += (values[i] as number) * (values[i] as number);
  return sum;
}
