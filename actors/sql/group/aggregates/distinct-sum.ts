import type { Column } from '../../frame/column.ts';
import { asValues } from '../../frame/column-forms.ts';
import type { Aggregate, GroupedRows } from '../aggregate.ts';
import { type DistinctCount, pairsAtOnce } from './distinct-count.ts';
import type { Sum } from './sum.ts';

/** SUM(DISTINCT x) and AVG(DISTINCT x): distinct values are collected as they are to be counted, and added up at the end. */
export class DistinctSum implements Aggregate {
  readonly #distinct: DistinctCount;
  readonly #sum: Sum;

  constructor(distinct: DistinctCount, sum: Sum) {
    this.#distinct = distinct;
    this.#sum = sum;
  }

  get bytes(): number {
    return this.#distinct.bytes + this.#sum.bytes;
  }

  add(grouped: GroupedRows): void {
    this.#distinct.add(grouped);
  }

  *finish(): Generator<undefined, void, void> {
    yield* this.#distinct.pairAll();
    const { pairs, interned } = this.#distinct;
    for (let from = 0; from < pairs.count; from += pairsAtOnce) {
      const end = Math.min(from + pairsAtOnce, pairs.count);
      const some = Int32Array.from({ length: end - from }, (_, at) => from + at);
      const groups = pairs.seconds(some);
      const { kind, values } = asValues(interned.valuesOf(pairs.firsts(some)), some.length);
      for (let at = 0; at < some.length; at++) {
        const value = values[at] as number | bigint;
        const group = groups[at] as number;
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
