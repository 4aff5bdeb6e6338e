import { limits } from '../../../protocol/limits.ts';
import type { Evaluator } from '../expression/evaluate.ts';
import type { Frame } from '../frame/frame.ts';
import { allRows } from '../frame/frame.ts';
import { Grouping } from '../group/grouping.ts';
import { evaluated, type Step } from '../interruption.ts';
import type { SelectPlan } from '../plan/bound.ts';
import type { Room } from '../room.ts';
import { RowFilter, rowsWhere } from './row-filter.ts';
import { TopRows } from './top-rows.ts';

/** The rows of an answer. */
export interface SelectAnswer {
  /** Each a JSON array. */
  readonly rows: readonly string[];
  /** Whether there are more rows than an answer may have. */
  readonly truncated: boolean;
}

/** Runs a SELECT: frames of rows go in one after the other, the rows of the answer come out at the end. */
export class SelectRun {
  readonly #plan: SelectPlan;
  readonly #evaluator: Evaluator;
  readonly #grouping: Grouping | null;
  readonly #top: TopRows;
  readonly filter: RowFilter;
  /** How many rows an answer has at most, after those that OFFSET leaves out. */
  readonly #rowsMax: number;
  readonly #groupsAtOnce: number;

  /** `room`: for as many rows as can come. */
  constructor(plan: SelectPlan, evaluator: Evaluator, room: Room) {
    this.#plan = plan;
    this.#evaluator = evaluator;
    this.filter = new RowFilter(plan.where, evaluator, room);
    this.#grouping = plan.grouping === null ? null : new Grouping(plan.grouping, evaluator, room);
    this.#rowsMax = Math.min(plan.limit, limits.sqlRowsMax);
    // One more than are shown tells whether there are more.
    const wanted = plan.limit > limits.sqlRowsMax ? this.#rowsMax + 1 : this.#rowsMax;
    this.#top = new TopRows(plan, this.#rowsMax === 0 ? 0 : wanted, evaluator, room);
    const most = plan.replaces ? replacingGroupsMax : groupsMax;
    this.#groupsAtOnce = Math.max(groupsMin, Math.min(most, Math.floor(stepsOfGroups / plan.weight)));
  }

  /** Bytes that it holds, about. */
  get bytes(): number {
    return this.#top.bytes + (this.#grouping?.bytes ?? 0) + this.#evaluator.bytes;
  }

  /** Nothing that comes can change the answer. */
  get isComplete(): boolean {
    return this.#rowsMax === 0 || (this.#grouping === null && this.#top.isComplete);
  }

  /** Cuts rows that pass to those that can be in the answer. Called once for each frame: it counts the rows that OFFSET leaves out. */
  wanted(rows: Int32Array): Int32Array {
    if (this.#grouping !== null) return rows;
    const from = this.#top.skip(rows.length);
    return rows.subarray(from, from + this.#top.room);
  }

  /** Adds the rows of a frame that pass WHERE. Between two steps others may have their turn. */
  *add(frame: Frame, rows: Int32Array): Generator<Step, void, void> {
    if (rows.length === 0) return;
    if (this.#grouping === null) yield* this.#top.add(frame, rows);
    else yield* evaluated(() => this.#grouping?.add(frame, rows));
  }

  /** Does what is left when all rows are in, some groups at a time. Between two steps others may have their turn. */
  *finish(): Generator<Step, void, void> {
    if (this.#grouping !== null) yield* this.#addGroups(this.#grouping);
    yield* this.#top.finish();
  }

  *#addGroups(grouping: Grouping): Generator<Step, void, void> {
    yield* grouping.finish();
    const { count } = grouping;
    const { having } = this.#plan;
    for (let from = 0; from < count; from += this.#groupsAtOnce) {
      const some = grouping.frame(from, Math.min(from + this.#groupsAtOnce, count));
      const truths = having === null ? null : yield* evaluated(() => this.#evaluator.truths(having, some));
      const all = allRows(some.rowCount);
      yield* this.#top.add(some, truths === null ? all : rowsWhere(truths, all));
      yield;
    }
  }

  /** Answers the rows; after `finish`. */
  answer(): SelectAnswer {
    const rows = this.#top.rows();
    return {
      rows: rows.slice(0, this.#rowsMax),
      truncated: rows.length > this.#rowsMax && this.#rowsMax > 0,
    };
  }
}

const groupsMax = 2_048;
/** What REGEXP_REPLACE makes of some groups at once is bounded, as of a frame. */
const replacingGroupsMax = 512;
const groupsMin = 64;
/** How much may be evaluated of some groups in one step: a few milliseconds. */
const stepsOfGroups = 262_144;
