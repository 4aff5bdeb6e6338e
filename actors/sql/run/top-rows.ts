import { limits } from '../../../protocol/limits.ts';
import { assert } from '../../../src/base/assert.ts';
import type { Evaluator } from '../expression/evaluate.ts';
import { type Column, type Dictionary, isNullAt, jsonAt, startOf, type Texts } from '../frame/column.ts';
import type { Frame } from '../frame/frame.ts';
import { ByCodes } from '../intern/by-codes.ts';
import { evaluated, type Step } from '../interruption.ts';
import type { BoundOrder, Output } from '../plan/bound.ts';
import type { Room } from '../room.ts';
import { SqlError } from '../sql-error.ts';
import { sortedInSteps } from './sorted-in-steps.ts';

/** What a row is ordered by. */
type Key = number | bigint | Buffer | null;

interface Kept {
  readonly keys: readonly Key[];
  readonly number: number;
  readonly json: string;
  readonly bytes: number;
}

/** What a kept row takes beside its JSON and its keys. */
const rowBytes = 200;
/** How many bytes of JSON are made in one step: a millisecond or so. */
const jsonBytesAtOnce = 262_144;

function keyBytes(keys: readonly Key[]): number {
  let bytes = keys.length * 16;
  for (const key of keys) if (key instanceof Buffer) bytes += key.length + 100;
  return bytes;
}

/**
 * Keeps the first rows of an answer, in the order that was asked for; among rows that are alike, those that came first. A row is made
 * into JSON when it is known to be among the first of those seen so far, and twice as many are kept as are wanted, so that they are
 * seldom sorted.
 */
export class TopRows {
  readonly #outputs: readonly Output[];
  readonly #orderBy: readonly BoundOrder[];
  readonly #evaluator: Evaluator;
  /** How many rows are kept: where there is an order, those that are left out too. */
  readonly #wanted: number;
  /** How many of the next rows are left out, where there is no order. */
  #skipped: number;
  /** How many of the kept rows are left out, where there is an order. */
  readonly #offset: number;
  #kept: Kept[] = [];
  #bytes = 0;
  /** How many bytes of JSON were made so far. */
  #made = 0;
  /** The last of the wanted rows, once there are enough. */
  #worst: Kept | null = null;
  #seen = 0;
  readonly #late: ByCodes;
  readonly #memory: Room;
  /** The frame's outputs, once a row of it is kept. */
  #shown: readonly Column[] | null = null;
  /** Memory for the rows that `#notWorse` picks: those of one key are picked from those of the key before. */
  readonly #same: [Int32Array, Int32Array] = [new Int32Array(0), new Int32Array(0)];

  /** `wanted`: how many rows, after `offset` others. */
  constructor(
    {
      outputs,
      orderBy,
      offset,
    }: {
      readonly outputs: readonly Output[];
      readonly orderBy: readonly BoundOrder[];
      readonly offset: number;
    },
    wanted: number,
    evaluator: Evaluator,
    room: Room,
  ) {
    this.#late = new ByCodes(room);
    this.#memory = room;
    this.#outputs = outputs;
    this.#orderBy = orderBy;
    const isOrdered = orderBy.length > 0;
    this.#offset = isOrdered ? offset : 0;
    this.#skipped = isOrdered ? 0 : offset;
    this.#wanted = wanted === 0 ? 0 : wanted + this.#offset;
    this.#evaluator = evaluator;
  }

  get bytes(): number {
    return this.#bytes + this.#late.bytes;
  }

  /** Whether no further row can be among the first. */
  get isComplete(): boolean {
    return this.#orderBy.length === 0 && this.#kept.length >= this.#wanted;
  }

  /** How many further rows can be among the first. */
  get room(): number {
    return this.#orderBy.length === 0
      ? this.#skipped + this.#wanted - this.#kept.length
      : Number.POSITIVE_INFINITY;
  }

  /** Leaves out the first of the next rows, as far as OFFSET says; answers how many. */
  skip(count: number): number {
    const skipped = Math.min(this.#skipped, count);
    this.#skipped -= skipped;
    return skipped;
  }

  /** Adds rows of a frame, in steps of some JSON or some sorting; between two of them others may have their turn. */
  *add(frame: Frame, rows: Int32Array): Generator<Step, void, void> {
    if (this.#wanted === 0) return;
    const from = this.skip(rows.length);
    if (from === rows.length) return;
    const orders: Column[] = [];
    let left = rows.subarray(from);
    const isFirst = this.#worst === null && this.#kept.length === 0;
    let isAnyBetter = this.#worst === null;
    for (const [at, { expression }] of this.#orderBy.entries()) {
      const order = yield* evaluated(() => this.#evaluator.evaluate(expression, frame));
      orders.push(order);
      if (isFirst && at === 0) left = this.#bestOfFirst(order, left);
      if (isAnyBetter || this.#worst === null) continue;
      const other = this.#worst.keys[at] as Key;
      ({ rows: left, isAnyBetter } = this.#notWorse(order, at, { rows: left, other }));
      // Later keys are not even evaluated: of a million groups that are ordered by their counts, few are looked at further.
      if (left.length === 0) return;
    }
    if (!isAnyBetter) return;
    this.#shown = null;
    for (let next = 0; next < left.length && !this.isComplete; ) {
      const start = next;
      // A frame's outputs are evaluated before a row of it is kept, so that an interruption may begin it once more.
      next = yield* evaluated(() => this.#addSome(orders, frame, left, start));
      if (this.#orderBy.length > 0 && this.#kept.length >= 2 * this.#wanted + 100) yield* this.#cut();
      if (next < left.length) yield;
    }
    this.#shown = null;
    // What comes next is held against the last wanted row as soon as there is one.
    if (isFirst && this.#orderBy.length > 0 && this.#kept.length >= this.#wanted) yield* this.#cut();
  }

  /**
   * Leaves out the rows of a first frame whose first key comes after that of as many rows as are wanted: they can't be in the answer, and would
   * be made into JSON. Answers all rows where the keys are no doubles, or where some are NULL or NaN.
   */
  #bestOfFirst(column: Column, rows: Int32Array): Int32Array {
    if (column.kind !== 'numbers' || column.nulls !== null || rows.length <= this.#wanted) return rows;
    const { values } = column;
    const sorted = new Float64Array(rows.length);
    for (let i = 0; i < rows.length; i++) sorted[i] = values[rows[i] as number] as number;
    sorted.sort();
    // NaN stands last, and is neither before nor after anything.
    if (Number.isNaN(sorted.at(-1))) return rows;
    const order = this.#orderBy[0] as BoundOrder;
    const other = sorted[order.descending ? rows.length - this.#wanted : this.#wanted - 1] as number;
    return notWorseNumbers(column, { rows, other, order, picked: this.#otherThan(rows) }).rows;
  }

  /** Picks the rows whose key is the same as that of the last wanted row or comes before it, of rows whose earlier keys are the same as that row's. */
  #notWorse(
    column: Column,
    at: number,
    { rows, other }: { readonly rows: Int32Array; readonly other: Key },
  ): NotWorse {
    const order = this.#orderBy[at] as BoundOrder;
    if (column.kind === 'constant') {
      const compared = compareKeys(keyAt(column, 0), other, order);
      return { rows: compared > 0 ? rows.subarray(0, 0) : rows, isAnyBetter: compared < 0 };
    }
    const picked = this.#otherThan(rows);
    if (column.kind === 'numbers' && typeof other === 'number')
      return notWorseNumbers(column, { rows, other, order, picked });
    if (column.kind === 'wide' && typeof other === 'bigint')
      return notWorseWide(column, { rows, other, order, picked });
    if (column.kind === 'texts' && other instanceof Buffer && at === 0)
      return this.#notWorseTexts(column, { rows, other, order, picked });
    let count = 0;
    let isAnyBetter = false;
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i] as number;
      const compared = this.#compareAt(column, row, { other, at, order });
      picked[count] = row;
      count += Number(compared <= 0);
      if (compared < 0) isAnyBetter = true;
    }
    return { rows: picked.subarray(0, count), isAnyBetter };
  }

  /** Picks as `#notWorse` does, by texts that are the first key. One that once came too late always does: the last wanted row only moves up. */
  #notWorseTexts(
    { codes, dictionary, nulls }: Texts,
    { rows, other, order, picked }: Picking<Buffer>,
  ): NotWorse {
    const late = this.#late.of(dictionary, dictionary.count);
    let count = 0;
    let isAnyBetter = false;
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i] as number;
      if (nulls !== null && nulls[row] === 1) {
        if (!order.nullsFirst) continue;
        isAnyBetter = true;
        picked[count++] = row;
        continue;
      }
      const code = codes[row] as number;
      if (late[code] === 1) continue;
      const compared = compareText(dictionary, code, other, order);
      if (compared > 0) late[code] = 1;
      else picked[count++] = row;
      if (compared < 0) isAnyBetter = true;
    }
    return { rows: picked.subarray(0, count), isAnyBetter };
  }

  #otherThan(rows: Int32Array): Int32Array {
    const at = Number(this.#same[0].buffer === rows.buffer);
    this.#same[at] = this.#memory.grown(this.#same[at] as Int32Array, rows.length, rows.length);
    return this.#same[at] as Int32Array;
  }

  /** Adds rows from `from` on, until enough JSON was made for one step. Answers where the next step begins. */
  #addSome(orders: readonly Column[], frame: Frame, rows: Int32Array, from: number): number {
    const madeMax = this.#made + jsonBytesAtOnce;
    const keptMax = this.#orderBy.length === 0 ? this.#wanted : 2 * this.#wanted + 100;
    for (let i = from; i < rows.length; i++) {
      const row = rows[i] as number;
      this.#seen++;
      if (this.#worst !== null && !this.#isBetterThan(orders, row, this.#worst)) continue;
      this.#shown ??= this.#outputs.map(({ expression }) => this.#evaluator.evaluate(expression, frame));
      this.#keep(orders, this.#shown, row);
      if (this.#made >= madeMax || this.#kept.length >= keptMax) return i + 1;
    }
    return rows.length;
  }

  /** Puts the rows in order, when all are in. */
  *finish(): Generator<Step, void, void> {
    yield* this.#cut();
  }

  /** Answers the rows in order, each a JSON array; after `finish`. */
  rows(): readonly string[] {
    assert(this.#kept.length <= this.#wanted, () => `${this.#kept.length} rows are kept, of ${this.#wanted}`);
    return this.#kept.slice(this.#offset).map(({ json }) => json);
  }

  #keep(orders: readonly Column[], outputs: readonly Column[], row: number): void {
    const cells: string[] = [];
    let length = 0;
    for (let at = 0; at < outputs.length; at++) {
      const { type } = (this.#outputs[at] as Output).expression;
      const cell = jsonAt(outputs[at] as Column, row, type);
      length += cell.length + 1;
      if (length > limits.sqlRowBytesMax)
        throw new SqlError(
          null,
          `a row of the answer takes more than ${limits.sqlRowBytesMax / 2 ** 20} MB: select fewer columns`,
        );
      cells.push(cell);
    }
    const json = `[${cells.join(',')}]`;
    const keys = orders.map((column) => keyAt(column, row));
    const bytes = rowBytes + json.length + keyBytes(keys);
    this.#made += bytes;
    this.#bytes += bytes;
    this.#kept.push({ keys, number: this.#seen, json, bytes });
  }

  *#cut(): Generator<Step, void, void> {
    if (this.#orderBy.length > 0)
      this.#kept = yield* sortedInSteps(this.#kept, (a, b) => this.#compare(a, b));
    if (this.#kept.length < this.#wanted) return;
    this.#kept.length = this.#wanted;
    this.#worst = this.#orderBy.length > 0 ? (this.#kept.at(-1) ?? null) : null;
    this.#bytes = this.#kept.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  #compare(a: Kept, b: Kept): number {
    for (let at = 0; at < this.#orderBy.length; at++) {
      const order = this.#orderBy[at] as BoundOrder;
      const compared = compareKeys(a.keys[at] as Key, b.keys[at] as Key, order);
      if (compared !== 0) return compared;
    }
    return a.number - b.number;
  }

  /** Compares a text with another row's. One that once came too late as the first key always does: the last wanted row only moves up. */
  #compareText(
    { dictionary }: Extract<Column, { kind: 'texts' }>,
    code: number,
    { other, at, order }: { readonly other: Buffer; readonly at: number; readonly order: BoundOrder },
  ): number {
    if (at > 0) return compareText(dictionary, code, other, order);
    const late = this.#late.of(dictionary, dictionary.count);
    if (late[code] === 1) return 1;
    const compared = compareText(dictionary, code, other, order);
    if (compared > 0) late[code] = 1;
    return compared;
  }

  /** Whether a row comes before another. Hot: the first key says of most rows that they do not; an iterator would be garbage for each row. */
  #isBetterThan(orders: readonly Column[], row: number, worst: Kept): boolean {
    for (let at = 0; at < this.#orderBy.length; at++) {
      const order = this.#orderBy[at] as BoundOrder;
      const column = orders[at] as Column;
      const other = worst.keys[at] as Key;
      if (
        column.kind === 'numbers' &&
        typeof other === 'number' &&
        (column.nulls === null || column.nulls[row] === 0)
      ) {
        const value = column.values[row] as number;
        if (value !== other) return order.descending ? value > other : value < other;
        continue;
      }
      const compared = this.#compareAt(column, row, { other, at, order });
      if (compared !== 0) return compared < 0;
    }
    // Rows that are alike stand in the order in which they came.
    return false;
  }

  /** Compares a row's key with another row's. */
  #compareAt(
    column: Column,
    row: number,
    { other, at, order }: { readonly other: Key; readonly at: number; readonly order: BoundOrder },
  ): number {
    const isText = column.kind === 'texts' && (column.nulls === null || column.nulls[row] === 0);
    return isText && other instanceof Buffer
      ? this.#compareText(column, column.codes[row] as number, { other, at, order })
      : compareKeys(keyAt(column, row), other, order);
  }
}

/** Rows whose key is the same as that of the last wanted row or comes before it, and whether any does. */
interface NotWorse {
  readonly rows: Int32Array;
  readonly isAnyBetter: boolean;
}

/** What a loop over rows needs to pick those that are not worse than the last wanted row. */
interface Picking<Other> {
  readonly rows: Int32Array;
  /** The key of the last wanted row. */
  readonly other: Other;
  readonly order: BoundOrder;
  /** Where rows are put that are picked. */
  readonly picked: Int32Array;
}

/** Picks as `#notWorse` does, by doubles. */
function notWorseNumbers(
  { values, nulls }: Extract<Column, { kind: 'numbers' }>,
  { rows, other, order: { descending, nullsFirst }, picked }: Picking<number>,
): NotWorse {
  let count = 0;
  let better = 0;
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i] as number;
    if (nulls !== null && nulls[row] === 1) {
      if (!nullsFirst) continue;
      better++;
      picked[count++] = row;
      continue;
    }
    const value = values[row] as number;
    const isBefore = descending ? value > other : value < other;
    picked[count] = row;
    count += Number(isBefore || value === other);
    better += Number(isBefore);
  }
  return { rows: picked.subarray(0, count), isAnyBetter: better > 0 };
}

/** Picks as `#notWorse` does, by halves of 32 bits, of which the lower ones have no sign: a big integer that stands alone is an object. */
function notWorseWide(
  { values, nulls }: Extract<Column, { kind: 'wide' }>,
  { rows, other, order: { descending, nullsFirst }, picked }: Picking<bigint>,
): NotWorse {
  const halves = new Int32Array(values.buffer, values.byteOffset, values.length * 2);
  const [otherLow, otherHigh] = [Number(BigInt.asUintN(32, other)), Number(other >> 32n)];
  let count = 0;
  let better = 0;
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i] as number;
    if (nulls !== null && nulls[row] === 1) {
      if (!nullsFirst) continue;
      better++;
      picked[count++] = row;
      continue;
    }
    const high = halves[row * 2 + 1] as number;
    const difference = high === otherHigh ? ((halves[row * 2] as number) >>> 0) - otherLow : high - otherHigh;
    const isBefore = descending ? difference > 0 : difference < 0;
    picked[count] = row;
    count += Number(isBefore || difference === 0);
    better += Number(isBefore);
  }
  return { rows: picked.subarray(0, count), isAnyBetter: better > 0 };
}

function keyAt(column: Column, row: number): Key {
  if (isNullAt(column, row)) return null;
  switch (column.kind) {
    case 'constant':
      return typeof column.value === 'string' ? Buffer.from(column.value) : column.value;
    case 'numbers':
    case 'truths':
      return column.values[row] as number;
    case 'wide':
      return column.values[row] as bigint;
    case 'texts': {
      const { dictionary, codes } = column;
      const code = codes[row] as number;
      return Buffer.from(dictionary.bytes.subarray(startOf(dictionary, code), dictionary.ends[code]));
    }
  }
}

/** Bytes up to which texts are compared by a loop: most differ there, and a native call takes longer to begin. */
const loopBytesMax = 16;

function compareText(
  dictionary: Dictionary,
  code: number,
  other: Buffer,
  { descending }: BoundOrder,
): number {
  const { bytes, ends } = dictionary;
  const start = startOf(dictionary, code);
  const near = Math.min(loopBytesMax, other.length, (ends[code] as number) - start);
  for (let at = 0; at < near; at++) {
    const difference = (bytes[start + at] as number) - (other[at] as number);
    if (difference !== 0) return descending ? -difference : difference;
  }
  const order = bytes.compare(other, 0, other.length, start, ends[code]);
  return descending ? -order : order;
}

function compareKeys(a: Key, b: Key, { descending, nullsFirst }: BoundOrder): number {
  if (a === null || b === null) {
    if (a === b) return 0;
    return (a === null) === nullsFirst ? -1 : 1;
  }
  const order =
    a instanceof Buffer ? a.compare(b as Buffer) : compareNumbers(a as number | bigint, b as number | bigint);
  return descending ? -order : order;
}

function compareNumbers(a: number | bigint, b: number | bigint): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
