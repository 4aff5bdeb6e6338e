import { expressionParts } from './expression-parts.ts';
import type { Expression, Select } from './syntax.ts';

/** Collects the names of columns, and of aliases, that a SELECT asks for, in lower case; null where it asks for all columns. */
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
