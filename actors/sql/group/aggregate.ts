import {
  type Column,
  compareBytes,
  type Dictionary,
  type Nulls,
  type PackedIntegers,
} from '../frame/column.ts';
import { asTexts, asValues } from '../frame/column-forms.ts';
import { allRows } from '../frame/frame.ts';
import { type Interner, PairInterner } from '../intern/interner.ts';
import { LazyInterner } from '../intern/lazy-interner.ts';
import type { Bound, BoundAggregate, SqlType } from '../plan/bound.ts';
import type { Room } from '../room.ts';
import { SqlError } from '../sql-error.ts';

/**
 * One aggregate of all groups, by their numbers. Integers are summed exactly: as doubles while these are, and what grows beyond
 * is carried over to big integers. Sums of integers that leave 64 bits are refused.
 */
export interface Aggregate {
  readonly bytes: number;
  /** `groups[i]` is the group of row `rows[i]`; there are `groupCount` of them so far. Null: rows alone are counted. */
  add(
    column: Column | null,
    rows: Int32Array,
    rowCount: number,
    groups: Int32Array,
    groupCount: number,
  ): void;
  /** What is left to do when all rows are in, before the first `values`: in steps. */
  finish?(): Generator<undefined, void, void>;
  /** Values of groups from `from` to before `end`, when all rows are in. */
  values(from: number, end: number): Column;
}

/** In the same order. Sums of the same values are added up once. `room`: for as many groups as can come. */
export function newAggregates(bounds: readonly BoundAggregate[], room: Room, hasKeys: boolean): Aggregate[] {
  const sums = new Map<Bound, Sum>();
  return bounds.map((bound) => {
    const { name, argument, distinct, plus } = bound;
    if (name !== 'sum' || distinct || argument?.type !== 'int') return newAggregate(bound, room, hasKeys);
    const known = sums.get(argument);
    const sum = known ?? new Sum(bound, 'int', room);
    sums.set(argument, sum);
    return new SumPlus(sum, { bound, plus, isFirst: known === undefined });
  });
}

function newAggregate(bound: BoundAggregate, room: Room, hasKeys: boolean): Aggregate {
  const { name, argument, distinct } = bound;
  const type = argument?.type ?? 'null';
  if (argument === null) return new ValueCount(room);
  if (distinct) {
    const counted = new DistinctValues(type, room, hasKeys);
    return name === 'count' ? counted : new DistinctSum(counted, { bound, type, room });
  }
  if (name === 'count') return new ValueCount(room);
  if (name === 'min' || name === 'max')
    return type === 'text' ? new TextExtreme(name) : new NumberExtreme(name, room);
  return new Sum(bound, type, room);
}

/** One number for each group, 0 at first. */
class GroupNumbers {
  values: Float64Array = new Float64Array(0);
  #count = 0;
  readonly #room: Room;

  constructor(room: Room) {
    this.#room = room;
  }

  get bytes(): number {
    return this.#count * 8;
  }

  makeRoom(groupCount: number): void {
    if (groupCount <= this.#count) return;
    this.values = this.#room.grown(this.values, groupCount);
    this.values.fill(0, this.#count, groupCount);
    this.#count = groupCount;
  }

  /** Of groups from `from` to before `end`; of those that nothing came of, too. */
  part(from: number, end: number): Float64Array {
    this.makeRoom(end);
    return this.values.subarray(from, end);
  }
}

function nullsOf(column: Column, rowCount: number): Nulls {
  if (column.kind === 'texts' || column.kind === 'numbers' || column.kind === 'wide') return column.nulls;
  if (column.kind === 'constant' && column.value !== null) return null;
  return asValues(column, rowCount).nulls;
}

/** Of rows, where there is no column. */
class ValueCount implements Aggregate {
  readonly #counts: GroupNumbers;

  constructor(room: Room) {
    this.#counts = new GroupNumbers(room);
  }

  get bytes(): number {
    return this.#counts.bytes;
  }

  add(
    column: Column | null,
    rows: Int32Array,
    rowCount: number,
    groups: Int32Array,
    groupCount: number,
  ): void {
    this.#counts.makeRoom(groupCount);
    const held = this.#counts.values;
    const nulls = column === null ? null : nullsOf(column, rowCount);
    if (nulls === null && groupCount === 1) {
      held[0] = (held[0] as number) + rows.length;
      return;
    }
    for (let i = 0; i < rows.length; i++)
      if (nulls === null || nulls[rows[i] as number] === 0) (held[groups[i] as number] as number)++;
  }

  values(from: number, end: number): Column {
    return { kind: 'numbers', values: this.#counts.part(from, end), nulls: null };
  }
}

/** 1 where a number is 0. */
function zeros(numbers: Float64Array): Uint8Array {
  const nulls = new Uint8Array(numbers.length);
  for (let i = 0; i < nulls.length; i++) nulls[i] = Number(numbers[i] === 0);
  return nulls;
}

/** Below it two doubles of whole numbers add up exactly. */
const exactMax = 2 ** 52;

/** Values whose halves add up to a safe integer. */
const halvesMax = 2 ** 20;
/** With more it is not worth looking whether a frame's rows are all of one. */
const groupsFew = 64;

function isOneGroup(groups: Int32Array, count: number): boolean {
  for (let i = 1; i < count; i++) if (groups[i] !== groups[0]) return false;
  return true;
}

class Sum implements Aggregate {
  readonly #bound: BoundAggregate;
  readonly #isInt: boolean;
  readonly #sums: GroupNumbers;
  readonly #counts: GroupNumbers;
  /** Of integers: what the sums don't hold. */
  readonly #carried = new Map<number, bigint>();

  constructor(bound: BoundAggregate, type: SqlType, room: Room) {
    this.#bound = bound;
    this.#isInt = type === 'int';
    this.#sums = new GroupNumbers(room);
    this.#counts = new GroupNumbers(room);
  }

  get bytes(): number {
    return this.#sums.bytes * 2 + this.#carried.size * 80;
  }

  add(
    column: Column | null,
    rows: Int32Array,
    rowCount: number,
    groups: Int32Array,
    groupCount: number,
  ): void {
    if (column === null) return;
    this.makeRoom(groupCount);
    const packed = column.kind === 'numbers' ? column.packed : undefined;
    if (groupCount === 1 && rows.length === rowCount && packed !== undefined && this.#addPacked(packed))
      return;
    const { kind, values, nulls } = asValues(column, rowCount);
    if (kind === 'wide') this.#addWide(values as BigInt64Array, nulls, rows, groups);
    else if (groupCount === 1) this.#addToOne(values as Float64Array, nulls, rows);
    else this.#addNumbers(values as Float64Array, nulls, rows, groups);
  }

  /** All rows of a frame, of one group. Answers whether it could be done exactly. */
  #addPacked(packed: PackedIntegers): boolean {
    const { length } = packed.integers;
    const largest = Math.abs(packed.base) + 2 ** (packed.integers.BYTES_PER_ELEMENT * 8);
    if (largest * length + Math.abs(this.#sums.values[0] as number) > exactMax) return false;
    this.#sums.values[0] =
      (this.#sums.values[0] as number) + packedTotal(packed.integers) + packed.base * length;
    this.#counts.values[0] = (this.#counts.values[0] as number) + length;
    return true;
  }

  /** Of one group: in one number, which is carried over when it grows too large. */
  #addToOne(values: Float64Array, nulls: Nulls, rows: Int32Array): void {
    const isInt = this.#isInt;
    let sum = this.#sums.values[0] as number;
    let count = 0;
    if (nulls === null && rows.length === values.length) {
      const { total, size } = totalOf(values);
      // So no step on the way was larger, nor rounded.
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

  /** One number for one group. */
  addOne(value: number, group: number): void {
    const sum = (this.#sums.values[group] as number) + value;
    if (this.#isInt && (sum > exactMax || sum < -exactMax)) this.#carry(group, BigInt(value));
    else this.#sums.values[group] = sum;
    (this.#counts.values[group] as number)++;
  }

  makeRoom(groupCount: number): void {
    this.#sums.makeRoom(groupCount);
    this.#counts.makeRoom(groupCount);
  }

  addBig(value: bigint, group: number): void {
    this.#carry(group, value);
    (this.#counts.values[group] as number)++;
  }

  #addNumbers(values: Float64Array, nulls: Nulls, rows: Int32Array, groups: Int32Array): void {
    const [sums, held] = [this.#sums.values, this.#counts.values];
    const isInt = this.#isInt;
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i] as number;
      if (nulls !== null && nulls[row] === 1) continue;
      const group = groups[i] as number;
      const value = values[row] as number;
      const sum = (sums[group] as number) + value;
      (held[group] as number)++;
      if (isInt && (sum > exactMax || sum < -exactMax)) this.#carry(group, BigInt(value));
      else sums[group] = sum;
    }
  }

  #addWide(values: BigInt64Array, nulls: Nulls, rows: Int32Array, groups: Int32Array): void {
    if (rows.length <= halvesMax && this.#counts.values.length <= groupsFew) {
      if (isOneGroup(groups, rows.length)) return this.#addHalves(values, nulls, rows, groups[0] ?? 0);
    }
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i] as number;
      if (nulls === null || nulls[row] === 0) this.addBig(values[row] as bigint, groups[i] as number);
    }
  }

  /** By halves, each of which adds up exactly. */
  #addHalves(values: BigInt64Array, nulls: Nulls, rows: Int32Array, group: number): void {
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

  values(from: number, end: number): Column {
    if (this.#isInt && this.#bound.name !== 'avg')
      return this.valuesPlus(from, end, { plus: 0n, at: this.#bound.at });
    const nulls = zeros(this.#counts.part(from, end));
    const totals = this.#sums.part(from, end).slice();
    if (this.#bound.name === 'avg')
      for (let i = 0; i < totals.length; i++)
        totals[i] = Number(this.#total(from + i)) / (this.#counts.values[from + i] as number);
    return { kind: 'numbers', values: totals, nulls };
  }

  /** Of integers: with as much more for each value. */
  valuesPlus(
    from: number,
    end: number,
    { plus, at }: { readonly plus: bigint; readonly at: number },
  ): Column {
    this.makeRoom(end);
    const count = end - from;
    const nulls = zeros(this.#counts.values.subarray(from, end));
    const totals = new Float64Array(count);
    let largest = Math.abs(Number(plus));
    for (let i = 0; i < count; i++) {
      const total =
        (this.#sums.values[from + i] as number) + Number(plus) * (this.#counts.values[from + i] as number);
      totals[i] = total;
      largest = Math.max(largest, Math.abs(total));
    }
    if (this.#carried.size === 0 && largest <= exactMax) return { kind: 'numbers', values: totals, nulls };
    const wide = new BigInt64Array(count);
    for (let i = 0; i < count; i++) {
      const total = BigInt(this.#total(from + i)) + plus * BigInt(this.#counts.values[from + i] as number);
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
}

function fitting(total: bigint, at: number): bigint {
  if (BigInt.asIntN(64, total) === total) return total;
  throw new SqlError(at, `the sum ${total} does not fit 64 bits`);
}

/** A sum of values each of which is greater by the same number. */
class SumPlus implements Aggregate {
  readonly #sum: Sum;
  readonly #of: { readonly bound: BoundAggregate; readonly plus: bigint; readonly isFirst: boolean };

  constructor(
    sum: Sum,
    of: { readonly bound: BoundAggregate; readonly plus: bigint; readonly isFirst: boolean },
  ) {
    this.#sum = sum;
    this.#of = of;
  }

  get bytes(): number {
    return this.#of.isFirst ? this.#sum.bytes : 0;
  }

  add(
    column: Column | null,
    rows: Int32Array,
    rowCount: number,
    groups: Int32Array,
    groupCount: number,
  ): void {
    if (this.#of.isFirst) this.#sum.add(column, rows, rowCount, groups, groupCount);
  }

  values(from: number, end: number): Column {
    const { bound, plus } = this.#of;
    return this.#sum.valuesPlus(from, end, { plus, at: bound.at });
  }
}

/** A loop for each width: one that takes them all is several times as slow. */
function packedTotal(integers: PackedIntegers['integers']): number {
  if (integers instanceof Uint8Array) return totalOfBytes(integers);
  return integers instanceof Uint16Array ? totalOfShorts(integers) : totalOfWords(integers);
}

/** Of a frame: they add up within 32 bits. */
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

/** Of all values, and of their sizes. */
function totalOf(values: Float64Array): { readonly total: number; readonly size: number } {
  let total = 0;
  let size = 0;
  for (let i = 0; i < values.length; i++) {
    const value = values[i] as number;
    total += value;
    size += Math.abs(value);
  }
  return { total, size };
}

function greatestOf(values: Float64Array, rows: Int32Array, held: number): number {
  let best = held;
  for (let i = 0; i < rows.length; i++) {
    const value = values[rows[i] as number] as number;
    if (value > best) best = value;
  }
  return best;
}

function leastOf(values: Float64Array, rows: Int32Array, held: number): number {
  let best = held;
  for (let i = 0; i < rows.length; i++) {
    const value = values[rows[i] as number] as number;
    if (value < best) best = value;
  }
  return best;
}

const aDouble = 1;
const aWide = 2;

class NumberExtreme implements Aggregate {
  readonly #isMax: boolean;
  readonly #held: GroupNumbers;
  /** Integers beyond 2^53, where a group's greatest or least is one. */
  readonly #wide = new Map<number, bigint>();
  /** By groups: 0 where nothing came, `aDouble`, or `aWide` where only such integers did. */
  readonly #seen: GroupNumbers;

  constructor(name: 'min' | 'max', room: Room) {
    this.#isMax = name === 'max';
    this.#held = new GroupNumbers(room);
    this.#seen = new GroupNumbers(room);
  }

  get bytes(): number {
    return this.#held.bytes * 2 + this.#wide.size * 80;
  }

  add(
    column: Column | null,
    rows: Int32Array,
    rowCount: number,
    groups: Int32Array,
    groupCount: number,
  ): void {
    if (column === null) return;
    this.#makeRoom(groupCount);
    const { kind, values, nulls } = asValues(column, rowCount);
    if (kind === 'wide') return this.#addWide(values as BigInt64Array, nulls, rows, groups);
    if (groupCount === 1 && nulls === null) return this.#addToOne(values as Float64Array, rows);
    const [held, seen, isMax] = [this.#held.values, this.#seen.values, this.#isMax];
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i] as number;
      if (nulls !== null && nulls[row] === 1) continue;
      const group = groups[i] as number;
      const value = (values as Float64Array)[row] as number;
      const best = held[group] as number;
      if (seen[group] === aDouble && !(isMax ? value > best : value < best)) continue;
      seen[group] = aDouble;
      held[group] = value;
    }
  }

  #addToOne(values: Float64Array, rows: Int32Array): void {
    if (rows.length === 0) return;
    const [held, seen] = [this.#held.values, this.#seen.values];
    const best = (seen[0] === aDouble ? held[0] : values[rows[0] as number]) as number;
    seen[0] = aDouble;
    held[0] = this.#isMax ? greatestOf(values, rows, best) : leastOf(values, rows, best);
  }

  #addWide(values: BigInt64Array, nulls: Nulls, rows: Int32Array, groups: Int32Array): void {
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i] as number;
      if (nulls !== null && nulls[row] === 1) continue;
      const group = groups[i] as number;
      const value = values[row] as bigint;
      if (this.#seen.values[group] === 0) this.#seen.values[group] = aWide;
      const held = this.#wide.get(group);
      if (held === undefined || (this.#isMax ? value > held : value < held)) this.#wide.set(group, value);
    }
  }

  values(from: number, end: number): Column {
    const nulls = zeros(this.#seen.part(from, end));
    const values = this.#held.part(from, end).slice();
    if (this.#wide.size === 0) return { kind: 'numbers', values, nulls };
    const best = BigInt64Array.from(values, BigInt);
    for (let i = 0; i < best.length; i++) {
      const value = this.#wide.get(from + i);
      if (value === undefined) continue;
      const isAlone = this.#seen.values[from + i] === aWide;
      const held = best[i] as bigint;
      if (isAlone || (this.#isMax ? value > held : value < held)) best[i] = value;
    }
    return { kind: 'wide', values: best, nulls };
  }

  #makeRoom(groupCount: number): void {
    this.#held.makeRoom(groupCount);
    this.#seen.makeRoom(groupCount);
  }
}

class TextExtreme implements Aggregate {
  readonly #isMax: boolean;
  readonly #held: (Dictionary | null)[] = [];
  #bytes = 0;

  constructor(name: 'min' | 'max') {
    this.#isMax = name === 'max';
  }

  get bytes(): number {
    return this.#bytes + this.#held.length * 8;
  }

  add(
    column: Column | null,
    rows: Int32Array,
    rowCount: number,
    groups: Int32Array,
    groupCount: number,
  ): void {
    if (column === null) return;
    while (this.#held.length < groupCount) this.#held.push(null);
    const { codes, dictionary, nulls } = asTexts(column, rowCount);
    // Of this chunk, by codes: a string is copied once it is known to stay.
    const best = new Int32Array(groupCount).fill(-1);
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i] as number;
      if (nulls !== null && nulls[row] === 1) continue;
      const group = groups[i] as number;
      const code = codes[row] as number;
      const before = best[group] as number;
      if (before === code) continue;
      if (before < 0 || this.#isBetter(dictionary, code, dictionary, before)) best[group] = code;
    }
    for (let group = 0; group < groupCount; group++) {
      const code = best[group] as number;
      const before = this.#held[group] ?? null;
      if (code < 0 || (before !== null && !this.#isBetter(dictionary, code, before, 0))) continue;
      this.#held[group] = copied(dictionary, code);
      this.#bytes += 100 + (this.#held[group]?.bytes.length ?? 0) - (before?.bytes.length ?? 0);
    }
  }

  #isBetter(a: Dictionary, codeA: number, b: Dictionary, codeB: number): boolean {
    const order = compareBytes(a, codeA, b, codeB);
    return this.#isMax ? order > 0 : order < 0;
  }

  values(from: number, end: number): Column {
    const count = end - from;
    const codes = allRows(count);
    const nulls = new Uint8Array(count);
    const ends = new Uint32Array(count);
    const parts: Buffer[] = [];
    let bytes = 0;
    for (let i = 0; i < count; i++) {
      const held = this.#held[from + i] ?? null;
      if (held === null) nulls[i] = 1;
      else parts.push(held.bytes);
      bytes += held?.bytes.length ?? 0;
      ends[i] = bytes;
    }
    return {
      kind: 'texts',
      codes,
      nulls,
      dictionary: { count, bytes: Buffer.concat(parts), ends },
    };
  }
}

function copied({ bytes, ends }: Dictionary, code: number): Dictionary {
  const own = Buffer.from(bytes.subarray(code === 0 ? 0 : ends[code - 1], ends[code]));
  return { count: 1, bytes: own, ends: Uint32Array.of(own.length) };
}

/** How many distinct values each group has. */
class DistinctValues implements Aggregate {
  readonly #values: Interner;
  /** Of a value's number and a group. */
  readonly #pairs: PairInterner;
  readonly #counts: GroupNumbers;
  #numbers = new Int32Array(0);
  /** There is one group, without keys: its pairs are made at the end, if anybody needs them. */
  #isAlone: boolean;

  /** There are no more pairs than rows, of which there are no fewer than groups. */
  constructor(type: SqlType, room: Room, hasKeys: boolean) {
    this.#isAlone = !hasKeys;
    this.#values = new LazyInterner(type === 'text', room);
    this.#pairs = new PairInterner(room);
    this.#counts = new GroupNumbers(room);
  }

  get bytes(): number {
    return this.#values.bytes + this.#pairs.bytes + this.#counts.bytes;
  }

  get interned(): Interner {
    return this.#values;
  }

  /** After `pairAll`. */
  get pairs(): PairInterner {
    return this.#pairs;
  }

  add(
    column: Column | null,
    rows: Int32Array,
    rowCount: number,
    groups: Int32Array,
    groupCount: number,
  ): void {
    if (column === null) return;
    this.#counts.makeRoom(groupCount);
    if (this.#numbers.length < rows.length) this.#numbers = new Int32Array(rows.length);
    const numbers = this.#numbers;
    this.#values.intern(column, rows, rowCount, numbers);
    const { nullNumber } = this.#values;
    const [held, pairs] = [this.#counts.values, this.#pairs];
    if (this.#isAlone) {
      // Of one group each value is its own pair.
      const { count } = this.#values;
      held[0] = count - (nullNumber < 0 ? 0 : 1);
      return;
    }
    for (let i = 0; i < rows.length; i++) {
      if (numbers[i] === nullNumber) continue;
      const before = pairs.count;
      const group = groups[i] as number;
      if (pairs.intern(numbers[i] as number, group) === before) (held[group] as number)++;
    }
  }

  values(from: number, end: number): Column {
    return { kind: 'numbers', values: this.#counts.part(from, end), nulls: null };
  }

  /** Makes the pairs of the only group, unless there are. */
  *pairAll(): Generator<undefined, void, void> {
    if (!this.#isAlone) return;
    const { nullNumber } = this.#values;
    const known = this.#counts.values[0] as number;
    const count = known + (nullNumber >= 0 && nullNumber <= known ? 1 : 0);
    for (let number = 0; number < count; number++) {
      if (number !== nullNumber) this.#pairs.intern(number, 0);
      if (number % pairsAtOnce === pairsAtOnce - 1) yield;
    }
    this.#isAlone = false;
  }
}

const pairsAtOnce = 8_192;

/** SUM and AVG of distinct values: those that came first are added at the end. */
class DistinctSum implements Aggregate {
  readonly #distinct: DistinctValues;
  readonly #sum: Sum;

  constructor(
    distinct: DistinctValues,
    of: { readonly bound: BoundAggregate; readonly type: SqlType; readonly room: Room },
  ) {
    this.#distinct = distinct;
    this.#sum = new Sum(of.bound, of.type, of.room);
  }

  get bytes(): number {
    return this.#distinct.bytes + this.#sum.bytes;
  }

  add(
    column: Column | null,
    rows: Int32Array,
    rowCount: number,
    groups: Int32Array,
    groupCount: number,
  ): void {
    this.#distinct.add(column, rows, rowCount, groups, groupCount);
  }

  *finish(): Generator<undefined, void, void> {
    yield* this.#distinct.pairAll();
    const { pairs, interned } = this.#distinct;
    for (let from = 0; from < pairs.count; from += pairsAtOnce) {
      const end = Math.min(from + pairsAtOnce, pairs.count);
      const numbers = Int32Array.from({ length: end - from }, (_, at) => pairs.firstOf(from + at));
      const { kind, values } = asValues(interned.valuesOf(numbers), numbers.length);
      for (let pair = from; pair < end; pair++) {
        const value = values[pair - from] as number | bigint;
        const group = pairs.secondOf(pair);
        this.#sum.makeRoom(group + 1);
        if (kind === 'wide') this.#sum.addBig(value as bigint, group);
        else this.#sum.addOne(value as number, group);
      }
      yield;
    }
  }

  values(from: number, end: number): Column {
    return this.#sum.values(from, end);
  }
}
