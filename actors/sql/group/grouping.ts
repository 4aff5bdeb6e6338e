import { assert, must } from '../../../src/base/assert.ts';
import type { Evaluator } from '../expression/evaluate.ts';
import { type Column, ofFrame } from '../frame/column.ts';
import { allRows, type Frame } from '../frame/frame.ts';
import { PairInterner } from '../intern/pair-interner.ts';
import type { Bound, BoundAggregate, SelectPlan } from '../plan/bound.ts';
import { mayInterrupt } from '../plan/bound-parts.ts';
import { bytesOfAll, type Holder, type Room } from '../room.ts';
import type { Aggregate, GroupedRows } from './aggregate.ts';
import { type KeyGroup, keyGroups } from './key-groups.ts';
import { newAggregates } from './new-aggregates.ts';

/**
 * GROUP BY: rows go in, groups come out.
 *
 * 1. The values of each key become numbers (key-groups.ts).
 * 2. The numbers of several keys are joined pair by pair, so that a group is one number however many keys there are.
 * 3. Aggregates are kept by that number (aggregate.ts).
 */
export class Grouping {
  readonly #plan: NonNullable<SelectPlan['grouping']>;
  readonly #evaluator: Evaluator;
  readonly #keys: readonly KeyGroup[];
  /** The keys that tell groups apart, in the order in which they are joined. */
  readonly #telling: KeyGroup[];
  /** Pairs of the first and the second of `#telling`, of these pairs and the third, and so on. */
  readonly #pairs: readonly PairInterner[];
  readonly #aggregates: readonly Aggregate[];
  readonly #longArguments: readonly Bound[];
  readonly #room: Room;
  /** Keys, pairs and aggregates: everything here that holds memory. */
  readonly #parts: readonly Holder[];
  /** The groups of a frame's rows, and the numbers of one of its keys: the next frame uses them again. */
  #groups = new Int32Array(0);
  #numbers = new Int32Array(0);

  /** `room`: for as many rows as can come. */
  constructor(plan: NonNullable<SelectPlan['grouping']>, evaluator: Evaluator, room: Room) {
    this.#plan = plan;
    this.#evaluator = evaluator;
    this.#room = room;
    this.#keys = keyGroups(evaluator, plan.keys, room);
    const telling = this.#keys.filter(({ isConstant }) => !isConstant);
    this.#telling = telling.length === 0 ? this.#keys.slice(0, 1) : telling;
    this.#pairs = this.#telling.slice(1).map(() => new PairInterner(room));
    this.#aggregates = newAggregates(plan.aggregates, { room, hasKeys: plan.keys.length > 0 });
    this.#parts = [...this.#keys, ...this.#pairs, ...this.#aggregates];
    this.#longArguments = plan.aggregates.flatMap(({ argument }) =>
      argument !== null && (evaluator.hasManyParts || mayInterrupt(argument)) ? [argument] : [],
    );
  }

  /** How many groups there are so far. Without keys there is one, although no row may come. */
  get count(): number {
    if (this.#keys.length === 0) return 1;
    return this.#pairs.at(-1)?.count ?? must(this.#telling[0], 'a key').count;
  }

  get bytes(): number {
    return bytesOfAll(this.#parts);
  }

  /** Adds rows of a frame. Throws an Interruption before anything of them is counted, so that they may be added once more. */
  add(frame: Frame, rows: Int32Array): void {
    const groups = this.#groupsOf(frame, rows);
    const groupCount = this.count;
    const { rowCount } = frame;
    assert(groups.length === rows.length, () => `${groups.length} groups of ${rows.length} rows`);
    // The last row stands for all: to look at each of them is as much work as counting it.
    const last = groups.at(-1);
    assert(last === undefined || (0 <= last && last < groupCount), () => `group ${last} of ${groupCount}`);
    for (const argument of this.#longArguments) this.#evaluator.evaluate(argument, frame);
    // Aggregates of one argument mostly stand beside each other, and are given the same object: a statement may have ninety.
    let grouped: GroupedRows | null = null;
    let argumentBefore: Bound | null = null;
    for (let at = 0; at < this.#aggregates.length; at++) {
      const { argument } = this.#plan.aggregates[at] as BoundAggregate;
      if (grouped === null || argument !== argumentBefore) {
        const column = argument === null ? null : this.#evaluator.evaluate(argument, frame);
        grouped = { column, rows, rowCount, groups, groupCount };
        argumentBefore = argument;
      }
      (this.#aggregates[at] as Aggregate).add(grouped);
    }
  }

  /** Does what aggregates have left to do when all rows are in, in steps between which others may have their turn. */
  *finish(): Generator<undefined, void, void> {
    for (const aggregate of this.#aggregates) if (aggregate.finish !== undefined) yield* aggregate.finish();
  }

  /** Makes a frame of the groups from `from` to before `end`; its slots are their keys, then their aggregates. */
  frame(from: number, end: number): Frame {
    assert(from <= end && end <= this.count, () => `groups ${from} to before ${end} of ${this.count}`);
    // Slots are made when they are asked for: where groups are ordered by an aggregate, keys are needed of few of them.
    const slots: Column[] = [];
    const slotOf = (index: number): Column =>
      index < this.#plan.keys.length
        ? this.#keyColumn(index, allRows(end).subarray(from))
        : must(this.#aggregates[index - this.#plan.keys.length], 'an aggregate').values(from, end);
    const none = () => must<Column>(undefined, 'groups have slots alone');
    return {
      rowCount: end - from,
      rows: null,
      column: none,
      slot: (index) => {
        const slot = slots[index] ?? ofFrame(slotOf(index), end - from);
        slots[index] = slot;
        return slot;
      },
      textMatch: () => must<Uint8Array>(undefined, 'groups have no text'),
    };
  }

  #groupsOf(frame: Frame, rows: Int32Array): Int32Array {
    if (this.#telling.length === 0) return oneGroup(rows.length);
    if (this.#pairs.length > 0 && this.count === 0) this.#order(frame, rows);
    this.#groups = this.#room.grown(this.#groups, rows.length, rows.length);
    this.#numbers = this.#room.grown(this.#numbers, rows.length, rows.length);
    const groups = this.#groups.subarray(0, rows.length);
    const ofKey = this.#numbers.subarray(0, rows.length);
    for (const [at, keys] of this.#telling.entries()) {
      const numbers = at === 0 ? groups : ofKey;
      keys.intern(frame, rows, numbers);
      if (at > 0) must(this.#pairs[at - 1], 'pairs').internAll(groups, numbers);
    }
    return groups;
  }

  /**
   * Decides by the first rows in which order keys are joined: those of many values first, because most pairs are then found by
   * their first number alone.
   */
  #order(frame: Frame, rows: Int32Array): void {
    const numbers = new Int32Array(rows.length);
    for (const keys of this.#telling) keys.intern(frame, rows, numbers);
    this.#telling.sort((a, b) => b.count - a.count);
  }

  #keyColumn(key: number, groups: Int32Array): Column {
    const group = must(
      this.#keys.find(({ keys }) => keys.includes(key)),
      'a group of keys',
    );
    const of = this.#telling.indexOf(group);
    let numbers = groups;
    // From the last pair, which all keys are joined in, down to the one that has these keys as its second.
    for (let at = this.#telling.length - 1; at > of && of >= 0; at--)
      numbers = must(this.#pairs[at - 1], 'pairs').firsts(numbers);
    if (of > 0) numbers = must(this.#pairs[of - 1], 'pairs').seconds(numbers);
    return group.keyColumn(group.keys.indexOf(key), numbers);
  }
}

let zeros = new Int32Array(0);

/** The groups of rows that are all in the only group. Shared, not to be changed. */
function oneGroup(rowCount: number): Int32Array {
  if (zeros.length < rowCount) zeros = new Int32Array(Math.max(rowCount, 16_384));
  return zeros.subarray(0, rowCount);
}
