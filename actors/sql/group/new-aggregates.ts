import type { Bound, BoundAggregate } from '../plan/bound.ts';
import type { Room } from '../room.ts';
import type { Aggregate } from './aggregate.ts';
import { Count } from './aggregates/count.ts';
import { DistinctCount } from './aggregates/distinct-count.ts';
import { DistinctSum } from './aggregates/distinct-sum.ts';
import { NumberExtreme } from './aggregates/number-extreme.ts';
import { ShiftedSum } from './aggregates/shifted-sum.ts';
import { Sum } from './aggregates/sum.ts';
import { TextExtreme } from './aggregates/text-extreme.ts';

interface Surroundings {
  /** Makes aggregates for as many rows, and so groups, as can come. */
  readonly room: Room;
  /** Whether the statement has GROUP BY; without it there is one group. */
  readonly hasKeys: boolean;
}

/** How many MIN and MAX of texts of a statement note the groups of strings: a statement may have a thousand of them. */
const notedExtremesMax = 4;

/** Makes the aggregates of a plan, in its order. Sums of the same integers share one sum. */
export function newAggregates(bounds: readonly BoundAggregate[], surroundings: Surroundings): Aggregate[] {
  const sums = new Map<Bound, Sum>();
  let extremes = 0;
  return bounds.map((bound) => {
    const { name, argument, distinct, plus, at } = bound;
    if (argument?.type === 'text' && (name === 'min' || name === 'max'))
      return new TextExtreme(name, extremes++ < notedExtremesMax ? surroundings.room : null);
    if (name !== 'sum' || distinct || argument?.type !== 'int') return newAggregate(bound, surroundings);
    const known = sums.get(argument);
    const sum = known ?? new Sum(bound, 'int', surroundings.room);
    sums.set(argument, sum);
    return new ShiftedSum(sum, { shift: plus, at, isFirst: known === undefined });
  });
}

function newAggregate(bound: BoundAggregate, surroundings: Surroundings): Aggregate {
  const { room } = surroundings;
  const { name, argument, distinct } = bound;
  const type = argument?.type ?? 'null';
  if (argument === null) return new Count(room);
  const distinctValues = (needsPairs: boolean) => new DistinctCount(type, surroundings, needsPairs);
  switch (name) {
    case 'count':
      return distinct ? distinctValues(false) : new Count(room);
    case 'min':
    case 'max':
      return new NumberExtreme(name, room);
    case 'sum':
    case 'avg': {
      const sum = new Sum(bound, type, room);
      return distinct ? new DistinctSum(distinctValues(true), sum) : sum;
    }
  }
}
