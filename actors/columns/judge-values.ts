/**
 * Loops over the values of one kind of a column: a verdict each, yes or no, into the caller's array. Hot: 65,536 values a
 * call, some tens to hundreds of microseconds. Comparisons are sums: a branch that nobody can predict takes ten times as
 * long.
 */
import type { ColumnValues } from './column-block.ts';
import type { NumberTest } from './filter-terms.ts';
import { hashBytes } from './hash-bytes.ts';
import { stringBytesMax } from './string-table.ts';
import { no, yes } from './verdicts.ts';

const tableMax = 0x1_0000;
const int64Min = -(2n ** 63n);
const int64Max = 2n ** 63n - 1n;

export function judgeIntegersByRange(
  column: ColumnValues,
  least: bigint,
  greatest: bigint,
  target: Uint8Array,
): void {
  if (column.integerBytes === 8) {
    if (least > int64Max || greatest < int64Min) target.fill(no, 0, column.wideIntegers.length / 2);
    else judgeWideRange(column.wideIntegers, { least: asInt64(least), greatest: asInt64(greatest) }, target);
    return;
  }
  const bound = 1n << BigInt(column.integerBytes * 8);
  const from = least - column.integerBase;
  const to = greatest - column.integerBase;
  const { integers } = column;
  if (to < 0n || from >= bound || from > to) target.fill(no, 0, integers.length);
  else judgeNarrowRange(integers, from < 0n ? 0 : Number(from), Number(to < bound ? to : bound - 1n), target);
}

function judgeNarrowRange(
  integers: ColumnValues['integers'],
  from: number,
  to: number,
  target: Uint8Array,
): void {
  for (let i = 0; i < integers.length; i++) {
    const value = integers[i] as number;
    target[i] = (Number(value >= from) & Number(value <= to)) * yes;
  }
}

function asInt64(value: bigint): bigint {
  return value < int64Min ? int64Min : value > int64Max ? int64Max : value;
}

/** By halves: a bigint for each value would take ten times as long. */
function judgeWideRange(
  halves: Int32Array,
  { least, greatest }: { readonly least: bigint; readonly greatest: bigint },
  target: Uint8Array,
): void {
  const leastHigh = Number(least >> 32n);
  const leastLow = Number(least & 0xffff_ffffn);
  const greatestHigh = Number(greatest >> 32n);
  const greatestLow = Number(greatest & 0xffff_ffffn);
  for (let i = 0; i < halves.length; i += 2) {
    const low = (halves[i] as number) >>> 0;
    const high = halves[i + 1] as number;
    const isHigh = Number(high > leastHigh) | (Number(high === leastHigh) & Number(low >= leastLow));
    const isLow = Number(high < greatestHigh) | (Number(high === greatestHigh) & Number(low <= greatestLow));
    target[i >> 1] = (isHigh & isLow) * yes;
  }
}

export function judgeIntegers(column: ColumnValues, values: readonly bigint[], target: Uint8Array): void {
  const [only] = values;
  if (only !== undefined && values.length === 1) {
    judgeIntegersByRange(column, only, only, target);
    return;
  }
  if (column.integerBytes === 8) {
    judgeWideValues(column.wideIntegers, values, target);
    return;
  }
  const { integers, integerBase } = column;
  const bound = 1n << BigInt(column.integerBytes * 8);
  const deltas = values.map((value) => value - integerBase).filter((delta) => delta >= 0n && delta < bound);
  if (column.integerBytes === 4) {
    const wanted = new Set(deltas.map(Number));
    for (let i = 0; i < integers.length; i++) target[i] = wanted.has(integers[i] as number) ? yes : no;
    return;
  }
  const table = new Uint8Array(tableMax);
  for (const delta of deltas) table[Number(delta)] = yes;
  for (let i = 0; i < integers.length; i++) target[i] = table[integers[i] as number] as number;
}

/** By the low half, which tells most apart. */
function judgeWideValues(halves: Int32Array, values: readonly bigint[], target: Uint8Array): void {
  const highsOfLow = new Map<number, number[]>();
  for (const value of values) {
    const low = Number(BigInt.asIntN(32, value));
    const high = Number(value >> 32n);
    const highs = highsOfLow.get(low);
    if (highs === undefined) highsOfLow.set(low, [high]);
    else highs.push(high);
  }
  for (let i = 0; i < halves.length; i += 2) {
    const highs = highsOfLow.get(halves[i] as number);
    target[i >> 1] = highs?.includes(halves[i + 1] as number) ? yes : no;
  }
}

export function judgeWith(floats: Float64Array, test: NumberTest<number>, target: Uint8Array): void {
  const [only] = test.kind === 'values' ? test.values : [];
  if (test.kind === 'range' || test.values.length === 1) {
    const least = test.kind === 'range' ? test.least : (only as number);
    const greatest = test.kind === 'range' ? test.greatest : (only as number);
    for (let i = 0; i < floats.length; i++) {
      const value = floats[i] as number;
      target[i] = (Number(value >= least) & Number(value <= greatest)) * yes;
    }
    return;
  }
  // A set takes 0 and -0 for one, as a comparison does.
  const wanted = new Set(test.values);
  for (let i = 0; i < floats.length; i++) target[i] = wanted.has(floats[i] as number) ? yes : no;
}

/** A string of the dictionary is compared once, however many rows have it. */
export function judgeStrings(column: ColumnValues, wanted: readonly Buffer[], target: Uint8Array): void {
  const { codes } = column;
  const verdicts = dictionaryVerdicts(column, wanted);
  for (let i = 0; i < codes.length; i++) target[i] = verdicts[codes[i] as number] as number;
}

/** Until so many wanted strings each is compared with each of its length. */
const comparedMax = 4;

function dictionaryVerdicts(column: ColumnValues, wanted: readonly Buffer[]): Uint8Array {
  const verdicts = new Uint8Array(column.stringEnds.length);
  if (wanted.length > comparedMax) lookUpStrings(column, wanted, verdicts);
  else for (const each of wanted) compareStrings(column, each, verdicts);
  return verdicts;
}

/** From behind: what differs is mostly there. */
function compareStrings(
  { stringEnds, stringBytes }: ColumnValues,
  wanted: Buffer,
  verdicts: Uint8Array,
): void {
  const { length } = wanted;
  let start = 0;
  for (let string = 0; string < stringEnds.length; string++) {
    const end = stringEnds[string] as number;
    if (end - start === length) {
      let left = length;
      while (left > 0 && stringBytes[start + left - 1] === wanted[left - 1]) left--;
      if (left === 0) verdicts[string] = yes;
    }
    start = end;
  }
}

/** By a hash of their bytes: a JavaScript string for each of the dictionary would take ten times as long. */
function lookUpStrings(
  { stringEnds, stringBytes }: ColumnValues,
  wanted: readonly Buffer[],
  verdicts: Uint8Array,
): void {
  const table = new WantedStrings(wanted);
  const view = new DataView(stringBytes.buffer, stringBytes.byteOffset, stringBytes.length);
  let start = 0;
  for (let string = 0; string < stringEnds.length; string++) {
    const end = stringEnds[string] as number;
    if (table.hasLength(end - start) && table.has(view, start, end)) verdicts[string] = yes;
    start = end;
  }
}

class WantedStrings {
  readonly #wanted: readonly Buffer[];
  readonly #slots: Int32Array;
  readonly #isLength = new Uint8Array(stringBytesMax + 1);

  constructor(wanted: readonly Buffer[]) {
    this.#wanted = wanted.filter(({ length }) => length <= stringBytesMax);
    this.#slots = new Int32Array(2 ** Math.ceil(Math.log2(this.#wanted.length * 4 + 4)));
    this.#wanted.forEach((bytes, at) => {
      this.#isLength[bytes.length] = 1;
      const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
      let slot = this.#slotOf(view, 0, bytes.length);
      while (this.#slots[slot] !== 0) slot = this.#after(slot);
      this.#slots[slot] = at + 1;
    });
  }

  hasLength(length: number): boolean {
    return length <= stringBytesMax && this.#isLength[length] === 1;
  }

  has(view: DataView, start: number, end: number): boolean {
    let slot = this.#slotOf(view, start, end);
    for (let at = this.#slots[slot] as number; at !== 0; at = this.#slots[slot] as number) {
      if (equals(this.#wanted[at - 1] as Buffer, view, start, end)) return true;
      slot = this.#after(slot);
    }
    return false;
  }

  #slotOf(view: DataView, start: number, end: number): number {
    return hashBytes(view, start, end, 0) & (this.#slots.length - 1);
  }

  #after(slot: number): number {
    return (slot + 1) & (this.#slots.length - 1);
  }
}

function equals(wanted: Buffer, view: DataView, start: number, end: number): boolean {
  if (wanted.length !== end - start) return false;
  for (let i = 0; i < wanted.length; i++) if (wanted[i] !== view.getUint8(start + i)) return false;
  return true;
}
