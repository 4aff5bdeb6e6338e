import { frameNumbers, type WholeNumbers } from '../../../kernels/frame-numbers.ts';

/** Adds up packed integers, without their base. A frame has so few rows that they add up to an integer that a double holds exactly. */
export function totalOfPacked(integers: WholeNumbers): number {
  const { rowsMax } = frameNumbers();
  let total = 0;
  for (let from = 0; from < integers.length; from += rowsMax)
    total += frameNumbers().total(integers.subarray(from, from + rowsMax));
  return total;
}

/** Answers a number that none of the integers exceeds: of wide ones all bits that some of them has. */
export function boundOf(integers: WholeNumbers): number {
  if (!(integers instanceof Uint32Array)) return 2 ** (integers.BYTES_PER_ELEMENT * 8);
  let bits = 0;
  for (let i = 0; i < integers.length; i++) bits |= integers[i] as number;
  return bits >>> 0;
}

/** Adds up integers of 64 bits by their halves of 32, of which the lower ones have no sign: a big integer for each would be an object. */
export function totalsOfHalves(integers: BigInt64Array): { readonly low: number; readonly high: number } {
  const { rowsMax } = frameNumbers();
  const totals = { low: 0, high: 0 };
  for (let from = 0; from < integers.length; from += rowsMax) {
    const { low, high } = frameNumbers().totalsOfHalves(integers.subarray(from, from + rowsMax));
    totals.low += low;
    totals.high += high;
  }
  return totals;
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
