/**
 * The model of several servers holds, and each of its rules is needed: without it the search finds a violation.
 * TIDEBASE_TEST_CLUSTER_MODEL=traces prints the shortest way to each violation; =full searches the larger variants as well,
 * as `npm run prove -- cluster-model` does.
 */
import { testModel } from '../support/model-tests.ts';
import {
  allStepNames,
  type BrokenRule,
  type ClusterVariant,
  clusterModel,
  describeStep,
  stepName,
  type ViewChange,
} from './cluster-model.ts';

const wanted = process.env.TIDEBASE_TEST_CLUSTER_MODEL ?? '';
const statesMax = 8_000_000;

const [serverA, serverC] = [0, 2];
const joins: ViewChange = { kind: 'joins', server: serverC };
const leaves = (server: number): ViewChange => ({ kind: 'leaves', server });
const suspected = (server: number): ViewChange => ({ kind: 'is suspected', server });
const restarts: ViewChange = { kind: 'starts again', server: serverC, before: serverA };

interface Searched {
  readonly name: string;
  readonly variant: ClusterVariant;
  /** How many states it has at least: fewer, and the model has lost some. */
  readonly statesMin: number;
}

function searched(
  name: string,
  statesMin: number,
  writes: readonly [number, number],
  ...changes: readonly ViewChange[]
): Searched {
  return { name, statesMin, variant: { writes, changes, broken: [] } };
}

/** Kept whole: searched until nothing is left. */
const whole: readonly Searched[] = [
  searched('one joins', 20_000, [1, 1], joins),
  searched('one is evicted that lives', 45_000, [1, 1], suspected(serverA)),
  searched('one joins and is evicted', 80_000, [1, 0], joins, suspected(serverC)),
  searched('one joins and leaves', 70_000, [1, 0], joins, leaves(serverC)),
  searched('one starts again and is evicted meanwhile', 200_000, [1, 0], restarts, suspected(serverA)),
];

const larger: readonly Searched[] = [
  searched('one joins, two writes', 170_000, [2, 1], joins),
  searched('one joins while another is evicted', 300_000, [1, 0], joins, suspected(serverA)),
  searched('one is evicted that lives, two writes', 450_000, [2, 1], suspected(serverA)),
  searched('one joins and is evicted, two writes', 570_000, [2, 0], joins, suspected(serverC)),
  searched('one joins and leaves, two writes', 470_000, [2, 0], joins, leaves(serverC)),
  searched('one joins while another is evicted, two writes', 2_600_000, [2, 0], joins, suspected(serverA)),
];

const joinAndEviction: ClusterVariant = { writes: [1, 0], changes: [joins, suspected(serverC)], broken: [] };
const joinAndLeave: ClusterVariant = { writes: [1, 0], changes: [joins, leaves(serverC)], broken: [] };
const eviction: ClusterVariant = { writes: [1, 1], changes: [suspected(serverA)], broken: [] };
const restart: ClusterVariant = { writes: [1, 0], changes: [restarts, suspected(serverA)], broken: [] };

const lost = /misses an acknowledged write/;
const back = /misses what was read before/;
const broken: readonly (readonly [BrokenRule, ClusterVariant, RegExp])[] = [
  ['records that moved away are not refused by the log', joinAndLeave, lost],
  ['a new owner waits for nobody', joinAndLeave, back],
  ['a member that leaves is not waited for', joinAndLeave, back],
  ['a later barrier counts for an earlier view', joinAndLeave, lost],
  ['reads stop when the barrier is stored', joinAndLeave, lost],
  ['a slot is collected when its namespace has a new owner', joinAndEviction, lost],
  ['only the log of the last owner is read', joinAndEviction, lost],
  ['the manifest is loaded before the barrier', joinAndLeave, lost],
  ['a refused commit is sent again over the new version', joinAndEviction, lost],
  ['a member is removed before its log is sealed', eviction, back],
  ['an eviction is tried again by server', restart, back],
  ['reads are not waited out after a seal', eviction, back],
  ['only writes wait after a seal', eviction, back],
  ['evidence of an append dates from its answer', eviction, lost],
];

testModel({
  model: clusterModel,
  breaking: (variant, rule) => ({ ...variant, broken: [rule] }),
  describeStep,
  stepName,
  allStepNames,
  statesMax,
  whole: wanted === 'full' ? [...whole, ...larger] : whole,
  broken,
  never: ['is taken for the process before it and removed with view'],
  titles: {
    whole: 'several servers are one in every state',
    broken: 'several servers are not one where this is done',
  },
  printsTraces: wanted === 'traces',
});
