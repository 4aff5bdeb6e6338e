import { assert } from '../../../../src/base/assert.ts';
import type { Column, Nulls, PackedIntegers } from '../../frame/column.ts';
import { asValues } from '../../frame/column-forms.ts';
import type { BoundAggregate, SqlType } from '../../plan/bound.ts';
import type { Room } from '../../room.ts';
import { SqlError } from '../../sql-error.ts';
import type { Aggregate, GroupedRows } from '../aggregate.ts';
import { boundOf, totalOf, totalOfPacked, totalsOfHalves } from './column-totals.ts';
import { GroupNumbers, nullsOfCounts } from './group-numbers.ts';

/** Whole numbers up to it add up exactly in pairs, as doubles. */
const exactMax = 2 ** 52;
/** Halves of 32 bits that add up to a safe integer. */
const halvesMax = 2 ** 20;
/** Groups up to which it takes less to look at their sums than at a frame's rows. */
const measuredGroupsMax = 4_096;
/** Groups up to which it is worth looking whether a frame's rows are all of one. */
const fewGroupsMax = 64;

/**
 * SUM(x) and AVG(x), which is NULL for a group without a value. Integers are summed exactly: as doubles while these hold them
 * exactly, and what would leave them is carried over to big integers. A sum of integers that leaves 64 bits is refused.
 */
export class Sum implements Aggregate {
  readonly #bound: BoundAggregate;
  readonly #isInt: boolean;
  readonly #sums: GroupNumbers;
  /** How many values each group has. */
  readonly #counts: GroupNumbers;
  /** No double of `#sums` is farther from 0 than that, where integers are summed; infinite where it is not known. */
  #size = 0;
  /** What the exact sum is more than the double in `#sums`, by group. */
  readonly #carried = new Map<number, bigint>();

  /** `type`: the argument's. `room`: for as many groups as can come. */
  constructor(bound: BoundAggregate, type: SqlType, room: Room) {
    this.#bound = bound;
    this.#isInt = type === 'int';
    this.#sums = new GroupNumbers(room);
    this.#counts = new GroupNumbers(room);
  }

  get bytes(): number {
    return this.#sums.bytes * 2 + this.#carried.size * 80;
  }

  add({ column, rows, rowCount, groups, groupCount }: GroupedRows): void {
    if (column === null) return;
    this.makeRoom(groupCount);
    const packed = column.kind === 'numbers' ? column.packed : undefined;
    const isWhole = groupCount === 1 && rows.length === rowCount;
    if (
      packed !== undefined &&
      ((!this.#isInt && !isWhole) || this.#areExactWith(packed, rows.length, groupCount))
    ) {
      if (isWhole) this.#addAll(packed);
      else addPacked(packed, { rows, groups, sums: this.#sums.values, counts: this.#counts.values });
      return;
    }
    this.#size = Number.POSITIVE_INFINITY;
    const { kind, values, nulls } = asValues(column, rowCount);
    if (kind === 'wide') this.#addWide(values as BigInt64Array, nulls, rows, groups);
    else if (groupCount === 1) this.#addToOne(values as Float64Array, nulls, rows);
    else this.#addNumbers(values as Float64Array, nulls, rows, groups);
  }

  /** Adds one number to a group that there is room for. */
  addOne(value: number, group: number): void {
    this.#size = Number.POSITIVE_INFINITY;
    const sum = (this.#sums.values[group] as number) + value;
    if (this.#isInt && (sum > exactMax || sum < -exactMax)) this.#carry(group, BigInt(value));
    else this.#sums.values[group] = sum;
    (this.#counts.values[group] as number)++;
  }

  /** Adds one integer of 64 bits to a group that there is room for. */
  addBig(value: bigint, group: number): void {
    this.#carry(group, value);
    (this.#counts.values[group] as number)++;
  }

  makeRoom(groupCount: number): void {
    this.#sums.makeRoom(groupCount);
    this.#counts.makeRoom(groupCount);
  }

  values(from: number, end: number): Column {
    if (this.#isInt && this.#bound.name !== 'avg')
      return this.shiftedValues(from, end, { shift: 0n, at: this.#bound.at });
    const nulls = nullsOfCounts(this.#counts.part(from, end));
    const totals = this.#sums.part(from, end).slice();
    if (this.#bound.name === 'avg')
      for (let i = 0; i < totals.length; i++)
        totals[i] = Number(this.#total(from + i)) / (this.#counts.values[from + i] as number);
    return { kind: 'numbers', values: totals, nulls };
  }

  /** Makes the sums that groups would have if each of their values, integers, were greater by `shift`. */
  shiftedValues(
    from: number,
    end: number,
    { shift, at }: { readonly shift: bigint; readonly at: number },
  ): Column {
    assert(this.#isInt, () => 'sums of integers alone are shifted');
    this.makeRoom(end);
    const count = end - from;
    const nulls = nullsOfCounts(this.#counts.values.subarray(from, end));
    const totals = new Float64Array(count);
    let largest = Math.abs(Number(shift));
    for (let i = 0; i < count; i++) {
      const total =
        (this.#sums.values[from + i] as number) + Number(shift) * (this.#counts.values[from + i] as number);
      totals[i] = total;
      largest = Math.max(largest, Math.abs(total));
    }
    if (this.#carried.size === 0 && largest <= exactMax) return { kind: 'numbers', values: totals, nulls };
    const wide = new BigInt64Array(count);
    for (let i = 0; i < count; i++) {
      const total = BigInt(this.#total(from + i)) + shift * BigInt(this.#counts.values[from + i] as number);
      wide[i] = fitting(total, at);
    }
    return { kind: 'wide', values: wide, nulls };
  }

  #total(group: number): number | bigint {
    const carried = this.#carried.get(group);
    return carried === undefined
      ? (this.#sums.values[group] as number)
      : carried + BigInt(this.#sums.values[group] as number);
  }

  /** Whether all doubles of `#sums` stay exact when so many of these integers are added. If so, that is counted. */
  #areExactWith({ integers, base }: PackedIntegers, count: number, groupCount: number): boolean {
    const more = (Math.abs(base) + boundOf(integers)) * count;
    if (this.#size + more > exactMax && groupCount <= measuredGroupsMax)
      this.#size = largestOf(this.#sums.values, groupCount);
    if (this.#size + more > exactMax) return false;
    this.#size += more;
    return true;
  }

  /** Adds all rows of a frame to the only group. */
  #addAll({ integers, base }: PackedIntegers): void {
    const { length } = integers;
    // What the frame adds is a whole number, whatever its parts are: a sum of floats is rounded once.
    const total = totalOfPacked(integers) + base * length;
    this.#sums.values[0] = (this.#sums.values[0] as number) + total;
    this.#counts.values[0] = (this.#counts.values[0] as number) + length;
  }

  /** Adds to the only group: in a local number, which is quicker than in an array. */
  #addToOne(values: Float64Array, nulls: Nulls, rows: Int32Array): void {
    const isInt = this.#isInt;
    let sum = this.#sums.values[0] as number;
    let count = 0;
    if (nulls === null && rows.length === values.length) {
      const { total, size } = totalOf(values);
      // No sum on the way was larger than that, so none was rounded.
      if (!isInt || size + Math.abs(sum) <= exactMax) {
        this.#sums.values[0] = sum + total;
        this.#counts.values[0] = (this.#counts.values[0] as number) + values.length;
        return;
      }
    }
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i] as number;
      if (nulls !== null && nulls[row] === 1) continue;
      const value = values[row] as number;
      const next = sum + value;
      count++;
      if (isInt && (next > exactMax || next < -exactMax)) this.#carry(0, BigInt(value));
      else sum = next;
    }
    this.#sums.values[0] = sum;
    this.#counts.values[0] = (this.#counts.values[0] as number) + count;
  }

  #addNumbers(values: Float64Array, nulls: Nulls, rows: Int32Array, groups: Int32Array): void {
    const [sums, counts] = [this.#sums.values, this.#counts.values];
    const isInt = this.#isInt;
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i] as number;
      if (nulls !== null && nulls[row] === 1) continue;
      const group = groups[i] as number;
      const value = values[row] as number;
      const sum = (sums[group] as number) + value;
      (counts[group] as number)++;
      if (isInt && (sum > exactMax || sum < -exactMax)) this.#carry(group, BigInt(value));
      else sums[group] = sum;
    }
  }

  #addWide(values: BigInt64Array, nulls: Nulls, rows: Int32Array, groups: Int32Array): void {
    if (rows.length <= halvesMax && this.#counts.values.length <= fewGroupsMax) {
      if (isOneGroup(groups, rows.length)) return this.#addHalves(values, nulls, rows, groups[0] ?? 0);
    }
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i] as number;
      if (nulls === null || nulls[row] === 0) this.addBig(values[row] as bigint, groups[i] as number);
    }
  }

  /** Adds integers of 64 bits to one group by their halves of 32 bits: a big integer for each would be an object. */
  #addHalves(values: BigInt64Array, nulls: Nulls, rows: Int32Array, group: number): void {
    if (nulls === null && rows.length === values.length) {
      const { low, high } = totalsOfHalves(values);
      this.#carry(group, BigInt(low) + (BigInt(high) << 32n));
      this.#counts.values[group] = (this.#counts.values[group] as number) + rows.length;
      return;
    }
    const halves = new Int32Array(values.buffer, values.byteOffset, values.length * 2);
    let low = 0;
    let high = 0;
    let count = 0;
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i] as number;
      if (nulls !== null && nulls[row] === 1) continue;
      low += (halves[row * 2] as number) >>> 0;
      high += halves[row * 2 + 1] as number;
      count++;
    }
    this.#carry(group, BigInt(low) + (BigInt(high) << 32n));
    this.#counts.values[group] = (this.#counts.values[group] as number) + count;
  }

  #carry(group: number, value: bigint): void {
    this.#carried.set(group, (this.#carried.get(group) ?? 0n) + value);
  }
}

/** What a loop over packed integers reads and writes. */
interface ByGroup {
  readonly rows: Int32Array;
  readonly groups: Int32Array;
  readonly sums: Float64Array;
  readonly counts: Float64Array;
}

/** Adds packed integers to the sums of groups. There is a loop for each width: one loop for all of them is several times as slow. */
function addPacked({ integers, base }: PackedIntegers, to: ByGroup): void {
  if (integers instanceof Uint8Array) addBytes(integers, base, to);
  else if (integers instanceof Uint16Array) addShorts(integers, base, to);
  else addWords(integers, base, to);
}

function addBytes(integers: Uint8Array, base: number, { rows, groups, sums, counts }: ByGroup): void {
  for (let i = 0; i < rows.length; i++) {
    const group = groups[i] as number;
    sums[group] = (sums[group] as number) + ((integers[rows[i] as number] as number) + base);
    (counts[group] as number)++;
  }
}

function addShorts(integers: Uint16Array, base: number, { rows, groups, sums, counts }: ByGroup): void {
  for (let i = 0; i < rows.length; i++) {
    const group = groups[i] as number;
    sums[group] = (sums[group] as number) + ((integers[rows[i] as number] as number) + base);
    (counts[group] as number)++;
  }
}

function addWords(integers: Uint32Array, base: number, { rows, groups, sums, counts }: ByGroup): void {
  for (let i = 0; i < rows.length; i++) {
    const group = groups[i] as number;
    sums[group] = (sums[group] as number) + ((integers[rows[i] as number] as number) + base);
    (counts[group] as number)++;
  }
}

function largestOf(sums: Float64Array, count: number): number {
  let largest = 0;
  for (let group = 0; group < count; group++) largest = Math.max(largest, Math.abs(sums[group] as number));
  return largest;
}

function isOneGroup(groups: Int32Array, count: number): boolean {
  for (let i = 1; i < count; i++) if (groups[i] !== groups[0]) return false;
  return true;
}

function fitting(total: bigint, at: number): bigint {
  if (BigInt.asIntN(64, total) === total) return total;
  throw new SqlError(at, `the sum ${total} does not fit 64 bits`);
}
