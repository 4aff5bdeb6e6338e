/**
 * The model of the log holds, and each of its rules is needed: without it the search finds a violation.
 * TIDEBASE_TEST_LOG_MODEL=traces prints the shortest way to each violation, =full searches the larger variants as well.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exploreStates } from '../support/explore-states.ts';
import { testModel } from '../support/model-tests.ts';
import {
  allStepNames,
  type BrokenRule,
  describeStep,
  type LogVariant,
  logModel,
  stepName,
} from './log-model.ts';

const wanted = process.env.TIDEBASE_TEST_LOG_MODEL ?? '';
const statesMax = 5_000_000;

/** Kept whole: searched until nothing is left, some seconds in all. */
const whole: readonly { readonly name: string; readonly variant: LogVariant; readonly statesMin: number }[] =
  [
    {
      name: 'a successor whose sealing is cut off and begun again, PUTs sent twice',
      variant: { writes: [2, 0], resends: 1, reopens: 0, restarts: 1, broken: [] },
      statesMin: 70_000,
    },
    {
      name: 'a successor that writes too, PUTs and commits sent twice',
      variant: { writes: [2, 1], resends: 1, reopens: 0, restarts: 0, broken: [] },
      statesMin: 120_000,
    },
    {
      name: 'actors that are deposed and open again on both sides',
      variant: { writes: [2, 1], resends: 0, reopens: 1, restarts: 1, broken: [] },
      statesMin: 120_000,
    },
    {
      name: 'everything at once, with one write on each side',
      variant: { writes: [1, 1], resends: 1, reopens: 1, restarts: 1, broken: [] },
      statesMin: 70_000,
    },
    {
      name: 'a successor of the successor',
      variant: { writes: [1, 1, 0], resends: 0, reopens: 1, restarts: 0, broken: [] },
      statesMin: 140_000,
    },
  ];

const larger: typeof whole = [
  {
    name: 'three writes, a late seal',
    variant: { writes: [3, 0], resends: 1, reopens: 0, restarts: 1, broken: [] },
    statesMin: 800_000,
  },
  {
    name: 'everything at once, with two writes before the successor',
    variant: { writes: [2, 1], resends: 1, reopens: 1, restarts: 1, broken: [] },
    statesMin: 2_000_000,
  },
  {
    name: 'a successor of the successor, PUTs and commits sent twice',
    variant: { writes: [1, 1, 0], resends: 1, reopens: 0, restarts: 0, broken: [] },
    statesMin: 600_000,
  },
];

const two: LogVariant = { writes: [2, 1], resends: 1, reopens: 1, restarts: 1, broken: [] };
const three: LogVariant = { writes: [1, 1, 0], resends: 0, reopens: 1, restarts: 0, broken: [] };

const broken: readonly (readonly [BrokenRule, LogVariant, RegExp])[] = [
  ['acknowledged when sent', two, /acknowledged write is lost/],
  ['a refused PUT counts as not written', two, /"nothing written"/],
  ['a refused PUT counts as stored', two, /acknowledged write is lost/],
  ['a time-out counts as not written', two, /"nothing written"/],
  ['a slot gets other bytes after a time-out', two, /bytes of another write/],
  ['a seal counts without a look at the slot above', two, /"nothing written"/],
  ['a seal within the log ends its replay', two, /is lost/],
  ['the log is not sealed', two, /acknowledged write is lost/],
  ['the seal replaces what its slot holds', two, /acknowledged write is lost/],
  ['the floor is not read again after sealing', two, /acknowledged write is lost/],
  ['seals are collected', two, /acknowledged write is lost/],
  ['the floor rises before the commit', two, /acknowledged write is lost/],
  ['slots are collected before the floor has risen', two, /a slot is missing/],
  ['a log is done before the flush', three, /that was read is gone/],
  ['the manifest is loaded before the log is read', two, /acknowledged write is lost/],
  ['only the last log is replayed', three, /acknowledged write is lost/],
  ['the own log is not replayed', three, /acknowledged write is lost/],
  ['a successor commits without comparing', two, /segment that was deleted/],
  ['a refused commit counts as committed', three, /acknowledged write is lost/],
  ['a segment is deleted when its commit is unknown', two, /segment that was deleted/],
  ['orphans are collected before owning', two, /segment that was deleted/],
];

testModel({
  model: logModel,
  breaking: (variant, rule) => ({ ...variant, broken: [rule] }),
  describeStep,
  stepName,
  allStepNames,
  statesMax,
  whole: wanted === 'full' ? [...whole, ...larger] : whole,
  broken,
  never: ['takes a time-out for "not written", write', 'after a time-out sends into the same slot write'],
  titles: { whole: 'the protocol holds in every state', broken: 'the protocol fails where this is done' },
  printsTraces: wanted === 'traces',
});

test('an acknowledgement that does not wait for ownership is found again, because every log is replayed', () => {
  const variant: LogVariant = { ...three, broken: ['acknowledged before owning'] };

  assert.equal(exploreStates(logModel(variant), statesMax).violation, null);

  const forgetful: LogVariant = {
    ...three,
    writes: [1, 1],
    broken: ['acknowledged before owning', 'the own log is not replayed'],
  };
  assert.match(exploreStates(logModel(forgetful), statesMax).violation?.problem ?? '', /is lost/);
});
