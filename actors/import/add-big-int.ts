import type { KeyColumn } from '../columns/key-column.ts';
import { valueKinds } from '../columns/value-kinds.ts';

const int64Max = 2n ** 63n - 1n;

/** Adds a whole number of any size to the column of its key: beyond 64 bits as a double where that is exact, else as what no column holds. */
export function addBigInt(values: KeyColumn, row: number, value: bigint): void {
  const number = Number(value);
  if (value > int64Max) {
    const isExact = BigInt(number) === value;
    values.add(row, isExact ? valueKinds.float : valueKinds.other, number);
    return;
  }
  if (Number.isSafeInteger(number)) values.add(row, valueKinds.integer, number);
  else values.addWide(row, value);
}
