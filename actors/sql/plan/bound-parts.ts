import type { Bound } from './bound.ts';

/** The expressions that one is made of directly. */
export function boundParts(bound: Bound): readonly Bound[] {
  switch (bound.kind) {
    case 'literal':
    case 'column':
    case 'slot':
    case 'textMatch':
      return [];
    case 'compare':
    case 'arithmetic':
      return [bound.left, bound.right];
    case 'logic':
    case 'coalesce':
      return bound.operands;
    case 'case':
      return [...bound.branches.flatMap(({ when, result }) => [when, result]), bound.otherwise];
    default:
      return [bound.operand];
  }
}

/** Whether evaluating an expression may take longer than a turn, and so throw an Interruption. Looks at each part once. */
export function mayInterrupt(bound: Bound): boolean {
  const seen = new Set<Bound>([bound]);
  // A set's iterator comes to what is added meanwhile.
  for (const part of seen) {
    if (part.kind === 'replace' || part.kind === 'like') return true;
    for (const each of boundParts(part)) seen.add(each);
  }
  return false;
}

/** Adds the columns that an expression reads to `columns`; answers whether it depends on columns alone. Looks at each part once. */
export function collectColumns(bound: Bound, columns: Set<number>): boolean {
  const seen = new Set<Bound>([bound]);
  let isPure = true;
  // A set's iterator comes to what is added meanwhile.
  for (const part of seen) {
    if (part.kind === 'column') columns.add(part.index);
    else if (part.kind === 'slot' || part.kind === 'textMatch') isPure = false;
    else for (const each of boundParts(part)) seen.add(each);
  }
  return isPure;
}
