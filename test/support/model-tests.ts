import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Exploration, exploreStates, type StateModel } from './explore-states.ts';

/** A model of a protocol, and what its tests say of it. `Rule` names what a broken variant does wrong. */
export interface TestedModel<Variant, Rule> {
  readonly model: (variant: Variant) => StateModel;
  /** The variant in which this rule is broken. */
  readonly breaking: (variant: Variant, rule: Rule) => Variant;
  /** A step in words, whole and without its numbers, and all steps that there are. */
  readonly describeStep: (label: number) => string;
  readonly stepName: (label: number) => string;
  readonly allStepNames: readonly string[];
  readonly statesMax: number;
  /** Searched until nothing is left. */
  readonly whole: readonly { readonly name: string; readonly variant: Variant; readonly statesMin: number }[];
  /** What each broken rule leads to. */
  readonly broken: readonly (readonly [rule: Rule, variant: Variant, problem: RegExp])[];
  /** Steps that are never taken where no rule is broken. */
  readonly never: readonly string[];
  /** How the tests of whole and of broken variants are called. */
  readonly titles: { readonly whole: string; readonly broken: string };
  /** Prints the shortest way to each violation. */
  readonly printsTraces: boolean;
}

/** Registers a test for each variant, and one that every step was taken. */
export function testModel<Variant, Rule>(tested: TestedModel<Variant, Rule>): void {
  const { model, stepName, statesMax, titles } = tested;
  const explored: Exploration[] = [];
  const traceOf = ({ violation, states }: Exploration) => {
    if (violation === null) return '';
    const steps = violation.trace.map(tested.describeStep).join('\n  ');
    return `${violation.problem}, found among ${states} states:\n  ${steps}`;
  };

  for (const { name, variant, statesMin } of tested.whole) {
    test(`${titles.whole}: ${name}`, (t) => {
      const found = exploreStates(model(variant), statesMax);
      explored.push(found);

      t.diagnostic(`${found.states} states, up to ${found.depth} steps deep`);
      assert.equal(found.violation, null, traceOf(found));
      assert.ok(found.states >= statesMin, `${found.states} states: the model has lost some`);
    });
  }

  test('every step that is modelled was taken where no rule is broken', () => {
    const taken = new Set(explored.flatMap((each) => [...each.taken.keys()].map(stepName)));

    const never = tested.allStepNames.filter((name) => !taken.has(name));
    assert.deepEqual(never, tested.never);
  });

  for (const [rule, variant, problem] of tested.broken) {
    test(`${titles.broken}: ${rule}`, (t) => {
      const found = exploreStates(model(tested.breaking(variant, rule)), statesMax);

      // A line at a time: the reporter escapes line ends.
      if (tested.printsTraces) for (const line of traceOf(found).split('\n')) t.diagnostic(line);
      assert.match(found.violation?.problem ?? 'no violation', problem);
    });
  }
}
