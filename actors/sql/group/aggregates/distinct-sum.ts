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
