import { must } from '../../src/base/assert.ts';
import { type Aggregate, newAggregates } from './aggregate.ts';
import type { SelectPlan } from './bound.ts';
import type { Evaluator } from './evaluate.ts';
import { allRows, type Frame } from './frame.ts';
import { type Interner, NumberInterner, PairInterner, TextInterner } from './interner.ts';
import type { Vector } from './vector.ts';
import { taken } from './vector-forms.ts';

/**
 * Rows → groups. Each key's values become numbers; numbers of several keys are joined pair by pair, so that a group of any keys
 * is one number; aggregates are kept by it.
 */
export class Grouping {
  readonly #plan: NonNullable<SelectPlan['grouping']>;
  readonly #evaluator: Evaluator;
  readonly #keys: readonly Interner[];
  /** Of the first two keys, of that and the third, and so on. */
  readonly #pairs: readonly PairInterner[];
  readonly #aggregates: readonly Aggregate[];

  constructor(plan: NonNullable<SelectPlan['grouping']>, evaluator: Evaluator) {
    this.#plan = plan;
    this.#evaluator = evaluator;
    this.#keys = plan.keys.map(({ type }) => (type === 'text' ? new TextInterner() : new NumberInterner()));
    this.#pairs = plan.keys.slice(1).map(() => new PairInterner());
    this.#aggregates = newAggregates(plan.aggregates);
  }

  /** Without keys there is one group, of no rows too. */
  get count(): number {
    if (this.#keys.length === 0) return 1;
    return this.#pairs.at(-1)?.count ?? must(this.#keys[0], 'a key').count;
  }

  get bytes(): number {
    return [...this.#keys, ...this.#pairs, ...this.#aggregates].reduce((sum, { bytes }) => sum + bytes, 0);
  }

  add(frame: Frame, rows: Int32Array): void {
    const groups = this.#groupsOf(frame, rows);
    const count = this.count;
    for (const [at, aggregate] of this.#aggregates.entries()) {
      const { argument } = must(this.#plan.aggregates[at], 'an aggregate');
      const vector = argument === null ? null : this.#evaluator.evaluate(argument, frame);
      aggregate.add(vector, rows, frame.rowCount, groups, count);
    }
  }

  /** Keys, then aggregates, of all groups. */
  frame(): Frame {
    const { count } = this;
    // Made when they are asked for: of what is ordered by an aggregate, keys are needed of few groups.
    const slots: Vector[] = [];
    let keys: readonly Vector[] | null = null;
    const slotOf = (index: number): Vector => {
      if (index >= this.#keys.length)
        return must(this.#aggregates[index - this.#keys.length], 'an aggregate').values(count);
      keys ??= this.#keyVectors();
      return must(keys[index], 'a key');
    };
    const none = () => must<Vector>(undefined, 'groups have slots alone');
    return {
      rowCount: count,
      rows: null,
      column: none,
      slot: (index) => {
        const slot = slots[index] ?? slotOf(index);
        slots[index] = slot;
        return slot;
      },
      textMatch: () => must<Uint8Array>(undefined, 'groups have no text'),
    };
  }

  #groupsOf(frame: Frame, rows: Int32Array): Int32Array {
    const groups = new Int32Array(rows.length);
    for (const [at, key] of this.#plan.keys.entries()) {
      const numbers = at === 0 ? groups : new Int32Array(rows.length);
      const vector = this.#evaluator.evaluate(key, frame);
      must(this.#keys[at], 'a key').intern(vector, rows, frame.rowCount, numbers);
      if (at === 0) continue;
      const pairs = must(this.#pairs[at - 1], 'pairs');
      pairs.internAll(groups, numbers);
    }
    return groups;
  }

  #keyVectors(): Vector[] {
    const { count } = this;
    let groups = allRows(count);
    const vectors: Vector[] = [];
    for (let at = this.#keys.length - 1; at >= 0; at--) {
      const pairs = this.#pairs[at - 1];
      const numbers = pairs === undefined ? groups : pairs.seconds(groups);
      vectors.unshift(taken(must(this.#keys[at], 'a key').values(), numbers));
      if (pairs !== undefined) groups = pairs.firsts(groups);
    }
    return vectors;
  }
}
