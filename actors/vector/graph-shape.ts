/**
 * What a graph's numbers are, made of those of the vectors: they are as small as finds what should be found, and brought to a
 * size at which they tell the most. Distances of answers never come from them.
 *
 * 1. Of `cosine`, vectors get the length 1: then the nearest in angle are the nearest, and a graph of either metric compares
 *    by differences, which takes two thirds of what a comparison of angles does.
 * 2. All are multiplied by `scale`: numbers of `i8` fill a byte, but for one in a thousand that is cut to what a byte holds;
 *    those of `f16` and `f32` are about 1.
 *
 * A vector of zeros has no direction and is in no graph of `cosine`.
 */
import type { GraphPrecision } from '../storage/segment-graph.ts';
import { type Metric, squaredLength } from './distance.ts';

export interface GraphShape {
  readonly dims: number;
  readonly metric: Metric;
  readonly precision: GraphPrecision;
  readonly scale: number;
}

export type ShapedNumbers = Float32Array | Int8Array;

/** The smallest first. */
export const precisions: readonly GraphPrecision[] = ['i8', 'f16', 'f32'];

const largestByte = 127;
const largestHalf = 65_504;
/** The share of a sample's numbers that a byte need not hold. */
const cutShare = 1 / 1_000;

/** The scale for vectors like those of the sample, `dims` numbers each, one after the other. */
export function scaleOf(sample: Float32Array, shape: Omit<GraphShape, 'scale'>): number {
  const values = shape.metric === 'cosine' ? withLengthOne(sample, shape.dims) : sample;
  const scale =
    shape.precision === 'i8'
      ? largestByte / largestButFew(values)
      : 1 / Math.sqrt(squaredLength(values) / Math.max(1, values.length));
  return scale > 0 && Number.isFinite(scale) ? scale : 1;
}

function largestButFew(values: Float32Array): number {
  const sizes = values.map(Math.abs).sort();
  const kept = sizes[Math.floor((sizes.length - 1) * (1 - cutShare))] ?? 0;
  // Of mostly zeros the largest is what there is.
  return kept > 0 ? kept : (sizes.at(-1) ?? 0);
}

/** The numbers of vectors, one after the other, as a graph of this shape has them. */
export function inShape(values: Float32Array, { dims, metric, precision, scale }: GraphShape): ShapedNumbers {
  const shaped = precision === 'i8' ? new Int8Array(values.length) : new Float32Array(values.length);
  for (let start = 0; start < values.length; start += dims) {
    const factor = scale * (metric === 'cosine' ? toLengthOne(values, start, dims) : 1);
    for (let i = start; i < start + dims; i++) {
      const value = (values[i] as number) * factor;
      shaped[i] =
        precision === 'i8' ? Math.max(-largestByte, Math.min(largestByte, Math.round(value))) : value;
    }
  }
  return shaped;
}

function withLengthOne(values: Float32Array, dims: number): Float32Array {
  return inShape(values, { dims, metric: 'cosine', precision: 'f32', scale: 1 }) as Float32Array;
}

/** What the vector's numbers are multiplied by; 0 where it has no direction. */
function toLengthOne(values: Float32Array, start: number, dims: number): number {
  const length = Math.sqrt(squaredLength(values, start, dims));
  return length === 0 ? 0 : 1 / length;
}

/** The distance that a graph's squared one stands for. */
export function distanceOf(squared: number, { metric, scale }: GraphShape): number {
  // Between vectors of length 1 the square is twice what the cosine lacks.
  return metric === 'cosine' ? squared / (2 * scale * scale) : Math.sqrt(squared) / scale;
}

/** Whether the graph can hold these: 16 bits hold no number over 65,504. */
export function fitsShape(shaped: ShapedNumbers, { precision }: GraphShape): boolean {
  return precision !== 'f16' || shaped.every((value) => Math.abs(value) <= largestHalf);
}

/**
 * Whether the graph tells which vectors are near this one. Seen from far away all of them are about equally far, and
 * what makes the difference is lost where distances are rounded or cut: of a query a million times as long none of the ten
 * nearest is found, of one ten times as long nearly all.
 */
export function isInSight(query: Float32Array, { dims, metric, precision, scale }: GraphShape): boolean {
  if (metric === 'cosine') return true;
  return squaredLength(query) * scale * scale <= dims * sightMax[precision] ** 2;
}

/** Typical numbers in shape, at most: those of a graph's own vectors are about 1, or 40 to 75 in a byte. */
const sightMax = { i8: 100, f16: 4, f32: 4 };
