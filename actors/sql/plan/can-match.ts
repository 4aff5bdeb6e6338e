import { type Comparison, flipped } from '../parse/syntax.ts';
import type { Bound } from './bound.ts';
import type { SqlValue } from './value-list.ts';

/** What is known of a column's values in a chunk without reading them. */
export type ColumnRange =
  /** No row has a value. */
  | 'none'
  | 'unknown'
  /** All values are numbers between these two, both included. */
  | {
      readonly least: number;
      readonly greatest: number;
      /** Whether every row has a value. */
      readonly isEveryRow: boolean;
    };

/** Whether a condition can be true in some row of a chunk; true where that is not known. Pure. */
export function canMatch(condition: Bound, rangeOf: (column: number) => ColumnRange): boolean {
  switch (condition.kind) {
    case 'logic': {
      const can = (operand: Bound) => canMatch(operand, rangeOf);
      return condition.operator === 'and' ? condition.operands.every(can) : condition.operands.some(can);
    }
    case 'compare': {
      const { operator, left, right } = condition;
      if (left.kind === 'literal') return holdsSomewhere(flipped[operator], right, left, rangeOf);
      return holdsSomewhere(operator, left, right, rangeOf);
    }
    case 'in': {
      if (condition.negated) return true;
      const { operand, list } = condition;
      const isIn = (value: SqlValue) =>
        holdsSomewhere('=', operand, { kind: 'literal', value, type: operand.type }, rangeOf);
      return list.values.some(isIn);
    }
    case 'isNull':
      return (
        !condition.negated ||
        condition.operand.kind !== 'column' ||
        rangeOf(condition.operand.index) !== 'none'
      );
    default:
      return true;
  }
}

/** Whether a term of a condition is surely true in every row of a chunk; false where that is not known. Pure. */
export function mustMatch(term: Bound, rangeOf: (column: number) => ColumnRange): boolean {
  if (term.kind !== 'compare') return false;
  const { operator, left, right } = term;
  const [compared, literal, as] =
    left.kind === 'literal' ? [right, left, flipped[operator]] : [left, right, operator];
  const known = knownOf(compared, literal, rangeOf);
  if (known === 'none' || known === 'unknown' || !known.isEveryRow) return false;
  return !holdsWithin(opposites[as], known, known.value);
}

const opposites: Readonly<Record<Comparison, Comparison>> = {
  '=': '<>',
  '<>': '=',
  '<': '>=',
  '<=': '>',
  '>': '<=',
  '>=': '<',
};

function holdsSomewhere(
  operator: Comparison,
  compared: Bound,
  literal: Bound,
  rangeOf: (column: number) => ColumnRange,
): boolean {
  const known = knownOf(compared, literal, rangeOf);
  if (known === 'none' || known === 'unknown') return known === 'unknown';
  return holdsWithin(operator, known, known.value);
}

type Range = Exclude<ColumnRange, string>;

/** Answers a column's range beside the number that it is compared with. */
function knownOf(
  compared: Bound,
  literal: Bound,
  rangeOf: (column: number) => ColumnRange,
): 'none' | 'unknown' | (Range & { readonly value: number }) {
  // An int beside a float is the same number.
  const column = compared.kind === 'convert' && compared.type === 'float' ? compared.operand : compared;
  if (column.kind !== 'column' || literal.kind !== 'literal') return 'unknown';
  const range = rangeOf(column.index);
  if (typeof range === 'string') return range;
  const value = Number(literal.value);
  if (literal.value === null || typeof literal.value === 'string' || !Number.isSafeInteger(Math.trunc(value)))
    return 'unknown';
  return { ...range, value };
}

function holdsWithin(operator: Comparison, { least, greatest }: Range, value: number): boolean {
  switch (operator) {
    case '=':
      return least <= value && value <= greatest;
    case '<>':
      return least !== value || greatest !== value;
    case '<':
      return least < value;
    case '<=':
      return least <= value;
    case '>':
      return greatest > value;
    case '>=':
      return greatest >= value;
  }
}
