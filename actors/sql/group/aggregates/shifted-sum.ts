import type { Column } from '../../frame/column.ts';
import type { Aggregate, GroupedRows } from '../aggregate.ts';
import type { Sum } from './sum.ts';

/**
 * SUM(x + 3), told from SUM(x): it is SUM(x) and three times COUNT(x), both of which a `Sum` of x has. A statement with ninety
 * sums of x plus something adds up x once. SUM(x) itself is the one whose `shift` is 0.
 */
export class ShiftedSum implements Aggregate {
  readonly #sum: Sum;
  readonly #shift: bigint;
  readonly #at: number;
  readonly #isFirst: boolean;

  /** `at`: where it stands in the statement. `isFirst`: of those that share the sum, this one adds rows to it. */
  constructor(
    sum: Sum,
    { shift, at, isFirst }: { readonly shift: bigint; readonly at: number; readonly isFirst: boolean },
  ) {
    this.#sum = sum;
    this.#shift = shift;
    this.#at = at;
    this.#isFirst = isFirst;
  }

  get bytes(): number {
    return this.#isFirst ? this.#sum.bytes : 0;
  }

  add(grouped: GroupedRows): void {
    if (this.#isFirst) this.#sum.add(grouped);
  }

  values(from: number, end: number): Column {
    return this.#sum.shiftedValues(from, end, { shift: this.#shift, at: this.#at });
  }
}
