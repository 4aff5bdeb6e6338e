import type { GraphPrecision } from '../storage/segment-graph.ts';
import { type Metric, squaredLength } from './distance.ts';

/**
 * What a graph's numbers are, made of those of the vectors: they are halved to 16 bits where that is enough, so they are
 * brought to a size at which these tell the most. Distances of answers never come from them.
 *
 * - `cosine`: each vector has the length 1. One of zeros has no direction and is in no graph.
 * - `euclidean`: all are multiplied by the same number, so that they are about 1.
 */
export interface GraphShape {
  readonly dims: number;
  readonly metric: Metric;
  readonly precision: GraphPrecision;
  /** Of `euclidean`; 1 for `cosine`. */
  readonly scale: number;
}

/** The factor that brings these numbers to about 1. */
export function scaleOf(values: Float32Array): number {
  const size = Math.sqrt(squaredLength(values) / Math.max(1, values.length));
  return size > 0 && Number.isFinite(1 / size) ? 1 / size : 1;
}

/** The numbers of vectors, one after the other, as a graph of this shape has them. */
export function inShape(values: Float32Array, { dims, metric, scale }: GraphShape): Float32Array {
  if (metric === 'euclidean') return scale === 1 ? values : values.map((value) => value * scale);
  const shaped = new Float32Array(values.length);
  for (let start = 0; start < values.length; start += dims) {
    const length = Math.sqrt(squaredLength(values, start, dims));
    const factor = length === 0 ? 0 : 1 / length;
    for (let i = start; i < start + dims; i++) shaped[i] = (values[i] as number) * factor;
  }
  return shaped;
}

/** Whether the graph can be asked for the neighbours of these: 16 bits hold no number over 65,504. */
export function fitsShape(shaped: Float32Array): boolean {
  return shaped.every((value) => Math.abs(value) <= largestHalf);
}

const largestHalf = 65_504;
