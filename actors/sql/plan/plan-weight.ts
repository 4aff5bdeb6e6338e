import type { Bound, BoundAggregate } from './bound.ts';

/** What a plan's expressions cost for a row: how many rows may be looked at before others have their turn follows from it. */

/** Expressions that stand in several places, so that a frame of rows has them evaluated once. What costs nothing is not among them. */
export function repeatedIn(roots: readonly Bound[]): ReadonlySet<Bound> {
  const seen = new Set<Bound>();
  const repeated = new Set<Bound>();
  visitEach(roots, seen, (bound) => {
    if (weightOf(bound) > 0) repeated.add(bound);
  });
  return repeated;
}

/** In steps of a few nanoseconds a row: of each expression once, and of what groups do with keys and aggregates. */
export function weighed(
  roots: readonly Bound[],
  keys: readonly Bound[],
  aggregates: readonly BoundAggregate[],
): number {
  const seen = new Set<Bound>();
  visitEach(roots, seen, () => {});
  let weight = keys.length * keyWeight;
  for (const { distinct } of aggregates) weight += distinct ? keyWeight : 1;
  for (const bound of seen) weight += weightOf(bound);
  return weight;
}

/** A look-up in a table that the processor's caches may not hold. */
const keyWeight = 8;

function visitEach(roots: readonly Bound[], seen: Set<Bound>, again: (bound: Bound) => void): void {
  for (const bound of roots) {
    if (seen.has(bound)) {
      again(bound);
      continue;
    }
    seen.add(bound);
    visitEach(boundParts(bound), seen, again);
  }
}

function weightOf(bound: Bound): number {
  switch (bound.kind) {
    case 'literal':
    case 'column':
    case 'slot':
    case 'textMatch':
      return 0;
    case 'logic':
      return bound.operands.length;
    // A row's truth is looked at for each branch, and its value chosen.
    case 'case':
      return 2 * (bound.branches.length + 1);
    case 'coalesce':
      return 4 * bound.operands.length;
    case 'in':
    case 'like':
    case 'truncate':
    case 'replace':
      return 4;
    default:
      return 1;
  }
}

/** Whether evaluating the expression may take longer than a turn, and so throw an Interruption. Looks at each part once. */
export function mayInterrupt(bound: Bound): boolean {
  const seen = new Set<Bound>([bound]);
  // A set's iterator comes to what is added meanwhile.
  for (const part of seen) {
    if (part.kind === 'replace' || part.kind === 'like') return true;
    for (const each of boundParts(part)) seen.add(each);
  }
  return false;
}

/** The expressions that one is made of, without theirs. */
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
