import { assert } from '../../../src/base/assert.ts';
import type { Evaluator } from '../expression/evaluate.ts';
import { type Texts, truthy } from '../frame/column.ts';
import { takenFrame } from '../frame/column-forms.ts';
import { allRows, type Frame } from '../frame/frame.ts';
import { rowsAmong, rowsBetween, rowsInRange, wholeRange } from '../frame/packed-rows.ts';
import { rowsInWideRange, wideRange } from '../frame/wide-rows.ts';
import { type Comparison, flipped } from '../parse/syntax.ts';
import type { Bound } from '../plan/bound.ts';
import { collectColumns } from '../plan/bound-parts.ts';
import { type ColumnRange, mustMatch } from '../plan/can-match.ts';
import type { Room } from '../room.ts';

/**
 * Evaluates WHERE, as terms all of which must be true. Each term looks at the rows that those before it left. A term that a chunk's
 * statistics say is true of all rows is not looked at, numbers are not unpacked where the packed ones tell enough, and where few rows
 * are left the next terms see a frame of these alone.
 */
export class RowFilter {
  readonly #terms: readonly Bound[];
  /** The columns that each term reads, by index. */
  readonly #columns = new Map<Bound, ReadonlySet<number>>();
  readonly #evaluator: Evaluator;
  readonly #room: Room;
  /** The rows that pass in the frame that is looked at. */
  #passing = new Int32Array(0);
  /** The last frame of few rows: after an interruption the same is evaluated again. */
  #few: FewRows | null = null;

  /** `room`: for the rows that pass. */
  constructor(where: Bound | null, evaluator: Evaluator, room: Room) {
    this.#room = room;
    this.#terms = where === null ? [] : termsOf(where);
    for (const term of this.#terms) {
      const columns = new Set<number>();
      collectColumns(term, columns);
      this.#columns.set(term, columns);
    }
    this.#evaluator = evaluator;
  }

  /** Answers the terms that are not surely true in all rows of a chunk. */
  termsOf(rangeOf: (column: number) => ColumnRange): readonly Bound[] {
    return this.#terms.filter((term) => !mustMatch(term, rangeOf));
  }

  /** Answers the columns that some of its terms read, by index. */
  columnsOf(terms: readonly Bound[]): ReadonlySet<number> {
    const columns = new Set<number>();
    for (const term of terms) for (const column of this.#columns.get(term) ?? []) columns.add(column);
    return columns;
  }

  /** Picks the rows for which terms are true; the array lasts until the next call. */
  passing(terms: readonly Bound[], frame: Frame, rows: Int32Array): Int32Array {
    if (terms.length === 0) return rows;
    this.#passing = this.#room.grown(this.#passing, rows.length, rows.length);
    let left = rows;
    for (const [at, term] of terms.entries()) {
      if (left.length === 0) break;
      const quick = this.#quickly(term, frame, left);
      if (quick !== null) left = quick;
      else if (left.length * sparseness < frame.rowCount)
        return this.#sparsely(terms.slice(at), this.#fewOf(frame, left));
      else left = rowsWhere(this.#evaluator.truths(term, frame), left, this.#passing);
    }
    assert(left.length <= rows.length, () => `${left.length} of ${rows.length} rows pass`);
    return left;
  }

  /** Picks rows by comparing a column with a literal, or with those of a list, without evaluating it; null where its form does not allow that. */
  #quickly(term: Bound, frame: Frame, rows: Int32Array): Int32Array | null {
    if (term.kind === 'in') return this.#amongList(term, frame, rows);
    const asked = columnWithLiteral(term);
    if (asked === null) return null;
    const { operator, index, literal } = asked;
    const column = frame.column(index);
    if (column.kind === 'numbers' && column.packed !== undefined && typeof literal.value !== 'string') {
      const range = wholeRange(operator, Number(literal.value));
      return range === null ? null : rowsInRange(column.packed, range, rows, this.#passing);
    }
    if (column.kind === 'wide' && typeof literal.value === 'bigint') {
      const range = wideRange(operator, literal.value);
      const found = rowsInWideRange(column.values, range, { rows, passing: this.#passing });
      return column.nulls === null ? found : withValues(found, column.nulls, this.#passing);
    }
    if (column.kind === 'texts' && typeof literal.value === 'string')
      return rowsOfText(column, operator, { text: literal.value, rows, passing: this.#passing });
    return null;
  }

  /** Picks rows whose column is in a list, or is not, without evaluating it; null where its form does not allow that. */
  #amongList(term: Extract<Bound, { kind: 'in' }>, frame: Frame, rows: Int32Array): Int32Array | null {
    const { operand, list, hasNull, negated } = term;
    if (hasNull || operand.kind !== 'column') return null;
    const column = frame.column(operand.index);
    if (column.kind !== 'numbers' || column.packed === undefined) return null;
    return rowsAmong(column.packed, { wanted: list.exact, isOutside: negated }, rows, this.#passing);
  }

  /** Picks rows by evaluating terms over a frame of the rows that are left. */
  #sparsely(terms: readonly Bound[], { frame, rows }: FewRows): Int32Array {
    let left = allRows(rows.length);
    for (const term of terms) left = rowsWhere(this.#evaluator.truths(term, frame), left, this.#passing);
    for (let i = 0; i < left.length; i++) left[i] = rows[left[i] as number] as number;
    this.#few = null;
    return left;
  }

  /** Makes a frame of some rows; of the same frame they are the same rows each time. */
  #fewOf(of: Frame, rows: Int32Array): FewRows {
    if (this.#few?.of === of) return this.#few;
    const own = rows.slice();
    this.#few = { of, frame: takenFrame(of, own), rows: own };
    return this.#few;
  }
}

/** A frame of the rows that are left of another. */
interface FewRows {
  readonly of: Frame;
  readonly frame: Frame;
  /** Which rows of the other they are. */
  readonly rows: Int32Array;
}

/** Rows of a frame for each that is left, above which the rest is taken out of it. */
const sparseness = 4;

function termsOf(where: Bound): readonly Bound[] {
  return where.kind === 'logic' && where.operator === 'and' ? where.operands.flatMap(termsOf) : [where];
}

interface ColumnWithLiteral {
  readonly operator: Comparison;
  readonly index: number;
  readonly literal: Extract<Bound, { kind: 'literal' }>;
}

function columnWithLiteral(term: Bound): ColumnWithLiteral | null {
  if (term.kind !== 'compare') return null;
  const { operator, left, right } = term;
  const [compared, literal, as] =
    left.kind === 'literal' ? [right, left, flipped[operator]] : [left, right, operator];
  // An int beside a float is the same number.
  const column = compared.kind === 'convert' && compared.type === 'float' ? compared.operand : compared;
  if (column.kind !== 'column' || literal.kind !== 'literal' || literal.value === null) return null;
  return { operator: as, index: column.index, literal };
}

/** Picks the rows whose code is that of a string, or is not; null for other comparisons, and for dictionaries that can not find a string. */
function rowsOfText(
  { codes, dictionary, nulls }: Texts,
  operator: Comparison,
  { text, rows, passing }: { readonly text: string; readonly rows: Int32Array; readonly passing: Int32Array },
): Int32Array | null {
  if (dictionary.codeOf === undefined || !(codes instanceof Int32Array)) return null;
  if (operator !== '=' && operator !== '<>') return null;
  const wanted = dictionary.codeOf(Buffer.from(text));
  const isOutside = operator === '<>';
  const found =
    wanted < 0
      ? isOutside
        ? rows
        : rows.subarray(0, 0)
      : rowsBetween(wholeNumbersOf(codes), { from: wanted, to: wanted, isOutside }, { rows, passing });
  return nulls === null ? found : withValues(found, nulls, passing);
}

/** Codes are never negative: they are the same numbers without a sign. */
function wholeNumbersOf({ buffer, byteOffset, length }: Int32Array): Uint32Array {
  return new Uint32Array(buffer, byteOffset, length);
}

/** Picks the rows that are not NULL. */
function withValues(rows: Int32Array, nulls: Uint8Array, passing: Int32Array): Int32Array {
  return rowsBetween(nulls, { from: 0, to: 0, isOutside: false }, { rows, passing });
}

/** Picks the rows whose truth is `truthy`. */
export function rowsWhere(
  truths: Uint8Array,
  rows: Int32Array,
  passing = new Int32Array(rows.length),
): Int32Array {
  return rowsBetween(truths, { from: truthy, to: truthy, isOutside: false }, { rows, passing });
}
