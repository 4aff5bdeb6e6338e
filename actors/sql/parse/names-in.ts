import type { Expression, Select } from './syntax.ts';

/** Names of columns, and of aliases, that a SELECT asks for, in lower case; null for all columns. */
export function namesIn({ items, where, groupBy, having, orderBy }: Select): ReadonlySet<string> | null {
  if (items === null) return null;
  const names = new Set<string>();
  const open: (Expression | null)[] = [where, having, ...groupBy];
  for (const { expression } of items) open.push(expression);
  for (const { expression } of orderBy) open.push(expression);
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (next === null) continue;
    if (next.kind === 'name') names.add(next.name.toLowerCase());
    else for (const part of expressionParts(next)) open.push(part);
  }
  return names;
}

/** The expressions that one is made of, without theirs. */
export function expressionParts(expression: Expression): readonly Expression[] {
  switch (expression.kind) {
    case 'aggregate':
      return expression.argument === null ? [] : [expression.argument];
    case 'compare':
    case 'arithmetic':
      return [expression.left, expression.right];
    case 'logic':
      return expression.operands;
    case 'not':
    case 'in':
    case 'like':
    case 'isNull':
      return [expression.operand];
    case 'case': {
      const { branches, otherwise } = expression;
      const parts = branches.flatMap(({ when, result }) => [when, result]);
      return otherwise === null ? parts : [...parts, otherwise];
    }
    case 'call':
      return expression.arguments;
    default:
      return [];
  }
}
