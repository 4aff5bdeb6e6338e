import type { GraphPrecision } from '../storage/segment-graph.ts';
import { type Metric, squaredLength } from './distance.ts';

/**
 * What a graph's numbers are, made of those of the vectors: they are as small as finds what should be found, and brought to a
 * size at which they tell the most. Distances of answers never come from them.
 *
 * - `i8`, for `cosine` alone: the largest number of each vector becomes 127. Directions stay, lengths don't matter.
 * - `f16` and `f32` of `cosine`: each vector has the length 1.
 * - `f16` and `f32` of `euclidean`: all are multiplied by the same number, so that they are about 1.
 *
 * A vector of zeros has no direction and is in no graph of `cosine`.
 */
export interface GraphShape {
  readonly dims: number;
  readonly metric: Metric;
  readonly precision: GraphPrecision;
  /** Of `euclidean`; 1 for `cosine`. */
  readonly scale: number;
}

export type ShapedNumbers = Float32Array | Int8Array;

/** The smallest first. */
export function precisionsOf(metric: Metric): readonly GraphPrecision[] {
  return metric === 'cosine' ? ['i8', 'f16', 'f32'] : ['f16', 'f32'];
}

/** The factor that brings these numbers to about 1. */
export function scaleOf(values: Float32Array): number {
  const size = Math.sqrt(squaredLength(values) / Math.max(1, values.length));
  return size > 0 && Number.isFinite(1 / size) ? 1 / size : 1;
}

/** The numbers of vectors, one after the other, as a graph of this shape has them. */
export function inShape(values: Float32Array, shape: GraphShape): ShapedNumbers {
  const { metric, precision, scale } = shape;
  if (metric === 'euclidean') return scale === 1 ? values : values.map((value) => value * scale);
  return precision === 'i8' ? asBytes(values, shape) : withLengthOne(values, shape);
}

const largestByte = 127;

function asBytes(values: Float32Array, { dims }: GraphShape): Int8Array {
  const shaped = new Int8Array(values.length);
  for (let start = 0; start < values.length; start += dims) {
    let largest = 0;
    for (let i = start; i < start + dims; i++) largest = Math.max(largest, Math.abs(values[i] as number));
    const factor = largest === 0 ? 0 : largestByte / largest;
    for (let i = start; i < start + dims; i++) shaped[i] = Math.round((values[i] as number) * factor);
  }
  return shaped;
}

function withLengthOne(values: Float32Array, { dims }: GraphShape): Float32Array {
  const shaped = new Float32Array(values.length);
  for (let start = 0; start < values.length; start += dims) {
    const length = Math.sqrt(squaredLength(values, start, dims));
    const factor = length === 0 ? 0 : 1 / length;
    for (let i = start; i < start + dims; i++) shaped[i] = (values[i] as number) * factor;
  }
  return shaped;
}

/** Whether the graph can hold these: 16 bits hold no number over 65,504. */
export function fitsShape(shaped: ShapedNumbers, { precision }: GraphShape): boolean {
  return precision !== 'f16' || shaped.every((value) => Math.abs(value) <= largestHalf);
}

const largestHalf = 65_504;

/**
 * Whether the graph tells which vectors are near this one. Seen from far away all of them are about equally far, and
 * what makes the difference is lost where distances are rounded: of a query a million times as long none of the ten nearest
 * is found, of one ten times as long nearly all.
 */
export function isInSight(shaped: ShapedNumbers, { dims, metric }: GraphShape): boolean {
  return metric === 'cosine' || squaredLength(shaped as Float32Array) <= dims * sightMax * sightMax;
}

/** As the vectors' numbers are about 1. */
const sightMax = 4;
