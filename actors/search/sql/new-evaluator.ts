import { Evaluator } from '../../sql/expression/evaluate.ts';
import type { NewReplacer, Replacer } from '../../sql/expression/replacer.ts';
import type { SelectPlan } from '../../sql/plan/bound.ts';
import type { Room } from '../../sql/room.ts';
import { MatchReplacer } from '../../text/replace-matches.ts';
import type { QueryContext } from '../query.ts';
import { blamed, rethrow } from './blamed.ts';
import { hasManyParts } from './frame-sizes.ts';

/** Makes what evaluates a plan's expressions, with RE2 for REGEXP_REPLACE. `room`: for as many rows as can come. */
export function newEvaluator(context: QueryContext, plan: SelectPlan, room: Room): Evaluator {
  const { slice, match, patterns } = context;
  const surroundings = { elsewhere: match, turns: slice };
  const newReplacer: NewReplacer = ({ pattern, replacement, at }) =>
    blamed(at, () =>
      replacerOf(new MatchReplacer({ query: pattern, replacement, patterns }, surroundings), at),
    );
  return new Evaluator(newReplacer, room, {
    repeated: plan.repeated,
    hasManyParts: hasManyParts(plan),
    turns: slice,
  });
}

/** Makes a replacer for expressions; what is refused for a text is wrong with the statement. */
function replacerOf(replacer: MatchReplacer, at: number): Replacer {
  return {
    quickly: (text) => replacer.quickly(text),
    nanosecondsFor: (length) => replacer.nanosecondsFor(length),
    slowly: (text) => replacer.slowly(text).catch((error: unknown) => blamed(at, () => rethrow(error))),
  };
}
