import type { PackedIntegers } from '../../frame/column.ts';

/**
 * Adds up packed integers, without their base. A frame has so few rows that bytes add up within 32 bits, all others within the
 * integers that a double holds exactly. There is a loop for each width: one loop for all of them is several times as slow.
 */
export function totalOfPacked(integers: PackedIntegers['integers']): number {
  if (integers instanceof Uint8Array) return totalOfBytes(integers);
  return integers instanceof Uint16Array ? totalOfShorts(integers) : totalOfWords(integers);
}

function totalOfBytes(integers: Uint8Array): number {
  let total = 0;
  for (let i = 0; i < integers.length; i++) total = (total + (integers[i] as number)) | 0;
  return total;
}

function totalOfShorts(integers: Uint16Array): number {
  let total = 0;
  for (let i = 0; i < integers.length; i++) total += integers[i] as number;
  return total;
}

function totalOfWords(integers: Uint32Array): number {
  let total = 0;
  for (let i = 0; i < integers.length; i++) total += integers[i] as number;
  return total;
}

/** Adds up all values, and their absolute values as `size`: no sum on the way was larger than that. */
export function totalOf(values: Float64Array): { readonly total: number; readonly size: number } {
  let total = 0;
  let size = 0;
  for (let i = 0; i < values.length; i++) {
    const value = values[i] as number;
    total += value;
    size += Math.abs(value);
  }
  return { total, size };
}
