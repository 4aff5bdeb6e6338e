import { assert } from '../../../../src/base/assert.ts';
import type { Column } from '../../frame/column.ts';
import { allRows } from '../../frame/frame.ts';
import type { Interner } from '../../intern/interner.ts';
import { LazyInterner } from '../../intern/lazy-interner.ts';
import { PairInterner } from '../../intern/pair-interner.ts';
import type { SqlType } from '../../plan/bound.ts';
import type { Room } from '../../room.ts';
import type { Aggregate, GroupedRows } from '../aggregate.ts';
import { GroupNumbers } from './group-numbers.ts';
import { PairsByGroup } from './pairs-by-group.ts';

/** Pairs that `pairAll`, or who reads all pairs at the end, looks at in one step: less than a millisecond. */
export const pairsAtOnce = 8_192;

/** Pairs that were asked for when it is decided how the others are counted, as a multiple of those from which on a table is worth its memory. */
const decisionFactor = 8;
/** The part of the first pairs that must be new, at least, so that all are sorted at the end: fewer are found in a small table faster. */
const newShareMin = 1 / 4;
/** Rows of a query whose pairs are kept to be sorted, at most: of more, a table takes less memory, because it has each pair but once. */
const sortedPairsMax = 4_194_304;

/**
 * COUNT(DISTINCT x): values get numbers, and a group counts a value when their pair comes for the first time. Where many of the first pairs are new,
 * all of them are kept, and counted at the end.
 */
export class DistinctCount implements Aggregate {
  readonly #values: Interner;
  /** A value's number and its group. */
  readonly #pairs: PairInterner;
  readonly #counts: GroupNumbers;
  #numbers = new Int32Array(0);
  /** The groups of a frame's rows that have a value: the next frame uses them again. */
  #groups = new Int32Array(0);
  /** All pairs, once it is decided that they are counted at the end. */
  #kept: PairsByGroup | null = null;
  /** How many pairs were asked for, until it is decided how they are counted. */
  #asked = 0;
  #mayKeep: boolean;
  readonly #room: Room;
  /**
   * Whether there is one group: without GROUP BY each value is its own pair, and pairs are made at the end, if anybody needs
   * them.
   */
  #isAlone: boolean;

  /**
   * `type`: the argument's. `room`: for as many rows as can come; there are no more groups, values and pairs than rows. `needsPairs`: whether `pairs` is
   * asked for at the end.
   */
  constructor(
    type: SqlType,
    { room, hasKeys }: { readonly room: Room; readonly hasKeys: boolean },
    needsPairs: boolean,
  ) {
    this.#isAlone = !hasKeys;
    this.#mayKeep = hasKeys && !needsPairs && room.countMax <= sortedPairsMax;
    this.#room = room;
    this.#values = new LazyInterner(type === 'text', room);
    this.#pairs = new PairInterner(room);
    this.#counts = new GroupNumbers(room);
  }

  get bytes(): number {
    return this.#values.bytes + (this.#kept ?? this.#pairs).bytes + this.#counts.bytes;
  }

  /** The values of the numbers that are first in `pairs`. */
  get interned(): Interner {
    return this.#values;
  }

  /** Each value's number, with each group that has the value; complete after `pairAll`, where they are needed. */
  get pairs(): PairInterner {
    return this.#pairs;
  }

  add({ column, rows, rowCount, groups, groupCount }: GroupedRows): void {
    if (column === null) return;
    this.#counts.makeRoom(groupCount);
    if (this.#numbers.length < rows.length) this.#numbers = new Int32Array(rows.length);
    const numbers = this.#numbers;
    this.#values.intern(column, rows, rowCount, numbers);
    const { nullNumber } = this.#values;
    if (this.#isAlone) {
      this.#counts.values[0] = this.#values.count - (nullNumber < 0 ? 0 : 1);
      return;
    }
    const all = numbers.subarray(0, rows.length);
    if (nullNumber < 0) this.#countPairs(all, groups);
    else this.#countSome(all, groups, nullNumber);
  }

  /** Counts the values that are not NULL; numbers are replaced. */
  #countSome(numbers: Int32Array, groups: Int32Array, nullNumber: number): void {
    if (this.#groups.length < numbers.length) this.#groups = new Int32Array(numbers.length);
    let count = 0;
    for (let i = 0; i < numbers.length; i++) {
      const number = numbers[i] as number;
      numbers[count] = number;
      this.#groups[count] = groups[i] as number;
      count += Number(number !== nullNumber);
    }
    this.#countPairs(numbers.subarray(0, count), this.#groups);
  }

  /** Counts the pairs that come for the first time, which get the next numbers; numbers are replaced. */
  #countPairs(numbers: Int32Array, groups: Int32Array): void {
    if (this.#mayKeep) this.#decide(numbers.length);
    if (this.#kept !== null) return this.#kept.add(numbers, groups);
    const counts = this.#counts.values;
    let next = this.#pairs.count;
    this.#pairs.internAll(numbers, groups);
    for (let i = 0; i < numbers.length; i++) {
      if (numbers[i] !== next) continue;
      next++;
      (counts[groups[i] as number] as number)++;
    }
    assert(
      next === this.#pairs.count,
      () => `${next} pairs were counted, and there are ${this.#pairs.count}`,
    );
  }

  /** Decides whether all pairs are kept, once enough of them were asked for. */
  #decide(more: number): void {
    this.#asked += more;
    if (!this.#room.wantsTable(this.#asked / decisionFactor)) return;
    this.#mayKeep = false;
    const { count } = this.#pairs;
    if (count < this.#asked * newShareMin) return;
    this.#kept = new PairsByGroup(this.#room);
    const all = allRows(count);
    this.#kept.add(this.#pairs.firsts(all), this.#pairs.seconds(all));
  }

  *finish(): Generator<undefined, void, void> {
    if (this.#kept === null) return;
    yield* this.#kept.count(this.#counts.all, this.#values.count);
    this.#kept = null;
  }

  values(from: number, end: number): Column {
    return { kind: 'numbers', values: this.#counts.part(from, end), nulls: null };
  }

  /** Makes the pairs of the only group, unless there are some, in steps. */
  *pairAll(): Generator<undefined, void, void> {
    if (!this.#isAlone) return;
    const { count, nullNumber } = this.#values;
    const group = new Int32Array(pairsAtOnce);
    for (let from = 0; from < count; from += pairsAtOnce) {
      const numbers = Int32Array.from({ length: Math.min(pairsAtOnce, count - from) }, (_, at) => from + at);
      this.#pairs.internAll(
        numbers.filter((number) => number !== nullNumber),
        group,
      );
      yield;
    }
    this.#isAlone = false;
    const [counted] = this.#counts.part(0, 1);
    assert(this.#pairs.count === counted, () => `${this.#pairs.count} pairs of ${counted} distinct values`);
  }
}
