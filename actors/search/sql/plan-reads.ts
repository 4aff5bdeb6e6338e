import { must } from '../../../src/base/assert.ts';
import type { Bound, SelectPlan } from '../../sql/plan/bound.ts';
import { collectColumns } from '../../sql/plan/bound-parts.ts';
import { idColumn } from '../../sql/plan/column-types.ts';
import type { ColumnUse } from './kept-columns.ts';

/** Whether a plan asks for nothing but the least and the greatest values of columns, among all rows. */
export function asksForExtremes({ where, grouping }: SelectPlan): boolean {
  if (where !== null || grouping === null || grouping.keys.length > 0) return false;
  return grouping.aggregates.every(
    ({ name, argument }) => (name === 'min' || name === 'max') && argument?.kind === 'column',
  );
}

/** Tells what a plan does with columns whose distinct values it asks for, or makes keys of, by their names. */
export function keyColumns({ grouping, columns }: SelectPlan): Map<string, ColumnUse> {
  const uses = new Map<string, ColumnUse>();
  const distinct = (grouping?.aggregates ?? []).flatMap((one) =>
    one.distinct && one.argument !== null ? [one.argument] : [],
  );
  const keys = [...(grouping?.keys ?? []), ...distinct];
  for (const use of ['operand', 'key'] as const) {
    for (const key of keys) {
      if ((key.kind === 'column') !== (use === 'key')) continue;
      const found = new Set<number>();
      collectColumns(key, found);
      for (const index of found) uses.set(must(columns[index], 'a column'), use);
    }
  }
  return uses;
}

/** Lists ids of which a document must have one for a condition to be true; null where the condition does not say so. */
export function idsOf(where: Bound | null, columns: readonly string[]): readonly string[] | null {
  if (where === null) return null;
  const isId = (bound: Bound) => bound.kind === 'column' && columns[bound.index] === idColumn;
  switch (where.kind) {
    case 'logic': {
      if (where.operator === 'or') return null;
      for (const operand of where.operands) {
        const ids = idsOf(operand, columns);
        if (ids !== null) return ids;
      }
      return null;
    }
    case 'compare': {
      const { operator, left, right } = where;
      const [column, other] = isId(left) ? [left, right] : [right, left];
      if (operator !== '=' || !isId(column) || other.kind !== 'literal') return null;
      return typeof other.value === 'string' ? [other.value] : null;
    }
    case 'in':
      return where.negated || !isId(where.operand) ? null : where.list.values.map(String);
    default:
      return null;
  }
}
