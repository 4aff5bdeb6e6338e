import type { Bound, BoundAggregate } from './bound.ts';
import { boundParts } from './bound-parts.ts';

/**
 * Answers what a row costs, in steps of a few nanoseconds: each of the expressions once, however often it stands in them, and what
 * groups do with keys and aggregates. How many rows may be looked at before others have their turn follows from it.
 */
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

/** Finds expressions that stand in several places, so that a frame of rows has them evaluated once; not those that cost nothing. */
export function repeatedIn(roots: readonly Bound[]): ReadonlySet<Bound> {
  const seen = new Set<Bound>();
  const repeated = new Set<Bound>();
  visitEach(roots, seen, (bound) => {
    if (weightOf(bound) > 0) repeated.add(bound);
  });
  return repeated;
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
