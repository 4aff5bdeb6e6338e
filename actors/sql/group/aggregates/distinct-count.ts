import { assert } from '../../../../src/base/assert.ts';
import type { Column } from '../../frame/column.ts';
import type { Interner } from '../../intern/interner.ts';
import { LazyInterner } from '../../intern/lazy-interner.ts';
import { PairInterner } from '../../intern/pair-interner.ts';
import type { SqlType } from '../../plan/bound.ts';
import type { Room } from '../../room.ts';
import type { Aggregate, GroupedRows } from '../aggregate.ts';
import { GroupNumbers } from './group-numbers.ts';

/** Pairs that are looked at in one step of `finish`: less than a millisecond. */
export const pairsAtOnce = 8_192;

/** COUNT(DISTINCT x): values get numbers, and a group counts a value when their pair comes for the first time. */
export class DistinctCount implements Aggregate {
  readonly #values: Interner;
  /** A value's number and its group. */
  readonly #pairs: PairInterner;
  readonly #counts: GroupNumbers;
  #numbers = new Int32Array(0);
  /**
   * Whether there is one group: without GROUP BY each value is its own pair, and pairs are made at the end, if anybody needs
   * them.
   */
  #isAlone: boolean;

  /** `type`: the argument's. `room`: for as many rows as can come; there are no more groups, values and pairs than rows. */
  constructor(type: SqlType, { room, hasKeys }: { readonly room: Room; readonly hasKeys: boolean }) {
    this.#isAlone = !hasKeys;
    this.#values = new LazyInterner(type === 'text', room);
    this.#pairs = new PairInterner(room);
    this.#counts = new GroupNumbers(room);
  }

  get bytes(): number {
    return this.#values.bytes + this.#pairs.bytes + this.#counts.bytes;
  }

  /** The values of the numbers that are first in `pairs`. */
  get interned(): Interner {
    return this.#values;
  }

  /** Each value's number, with each group that has the value; complete after `pairAll`. */
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
    const [counts, pairs] = [this.#counts.values, this.#pairs];
    if (this.#isAlone) {
      counts[0] = this.#values.count - (nullNumber < 0 ? 0 : 1);
      return;
    }
    for (let i = 0; i < rows.length; i++) {
      if (numbers[i] === nullNumber) continue;
      const before = pairs.count;
      const group = groups[i] as number;
      if (pairs.intern(numbers[i] as number, group) === before) (counts[group] as number)++;
    }
  }

  values(from: number, end: number): Column {
    return { kind: 'numbers', values: this.#counts.part(from, end), nulls: null };
  }

  /** Makes the pairs of the only group, unless there are some, in steps. */
  *pairAll(): Generator<undefined, void, void> {
    if (!this.#isAlone) return;
    const { count, nullNumber } = this.#values;
    for (let number = 0; number < count; number++) {
      if (number !== nullNumber) this.#pairs.intern(number, 0);
      if (number % pairsAtOnce === pairsAtOnce - 1) yield;
    }
    this.#isAlone = false;
    const [counted] = this.#counts.part(0, 1);
    assert(this.#pairs.count === counted, () => `${this.#pairs.count} pairs of ${counted} distinct values`);
  }
}
