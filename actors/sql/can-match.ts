import type { Bound } from './bound.ts';
import { type Comparison, flipped } from './syntax.ts';

/**
 * Whether a condition can be true in any row of a chunk, from what is known of its columns without reading them. Pure; true where
 * it is not known.
 */
export type ColumnRange =
  /** No row has a value. */
  | 'none'
  | 'unknown'
  /** Of numbers, both included. */
  | { readonly least: number; readonly greatest: number };

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
      const { operand, values } = condition;
      const isIn = (value: (typeof values)[number]) =>
        holdsSomewhere('=', operand, { kind: 'literal', value, type: operand.type }, rangeOf);
      return values.some(isIn);
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

function holdsSomewhere(
  operator: Comparison,
  compared: Bound,
  literal: Bound,
  rangeOf: (column: number) => ColumnRange,
): boolean {
  // An int beside a float is the same number.
  const column = compared.kind === 'convert' && compared.type === 'float' ? compared.operand : compared;
  if (column.kind !== 'column' || literal.kind !== 'literal') return true;
  const range = rangeOf(column.index);
  if (range === 'none') return false;
  const value = Number(literal.value);
  if (range === 'unknown' || typeof literal.value === 'string' || !Number.isSafeInteger(Math.trunc(value)))
    return true;
  const { least, greatest } = range;
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
