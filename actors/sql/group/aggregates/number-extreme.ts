import type { Column, Nulls } from '../../frame/column.ts';
import { asValues } from '../../frame/column-forms.ts';
import type { Room } from '../../room.ts';
import type { Aggregate, GroupedRows } from '../aggregate.ts';
import { GroupNumbers, nullsOfCounts } from './group-numbers.ts';

const aDouble = 1;
const aWide = 2;

/** MIN(x) and MAX(x) of every type but text. */
export class NumberExtreme implements Aggregate {
  readonly #isMax: boolean;
  readonly #held: GroupNumbers;
  /** The least or greatest of the integers that came as 64 bits, by group. */
  readonly #wide = new Map<number, bigint>();
  /** What is known, by group: 0 where no value came, `aDouble` where `#held` has one, `aWide` where `#wide` alone does. */
  readonly #seen: GroupNumbers;

  /** `room`: for as many groups as can come. */
  constructor(name: 'min' | 'max', room: Room) {
    this.#isMax = name === 'max';
    this.#held = new GroupNumbers(room);
    this.#seen = new GroupNumbers(room);
  }

  get bytes(): number {
    return this.#held.bytes * 2 + this.#wide.size * 80;
  }

  add({ column, rows, rowCount, groups, groupCount }: GroupedRows): void {
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
    const nulls = nullsOfCounts(this.#seen.part(from, end));
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
