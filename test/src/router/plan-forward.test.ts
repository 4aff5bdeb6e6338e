import assert from 'node:assert/strict';
import { test } from 'node:test';
import { limits } from '../../../protocol/limits.ts';
import { type FailedTry, type NextStep, planForward, type Tried } from '../../../src/router/plan-forward.ts';

const first: Tried = {
  does: 'write',
  placement: 5,
  moves: 0,
  losses: 0,
  wentByThird: false,
  hasThird: false,
  waitMsLeft: 2_000,
  isRepeatable: true,
  isWanted: true,
};
const read = { does: 'read' } as const;
const fail: NextStep = { kind: 'fail' };
const direct: NextStep = { kind: 'send', byThird: false };
const third: NextStep = { kind: 'send', byThird: true };
const again: NextStep = { kind: 'wait', placement: 6, ms: limits.forwardAgainMs, otherwise: 'send' };
const moved = (placement: number): FailedTry => ({ kind: 'moved', placement });

const rows: readonly (readonly [string, FailedTry, Partial<Tried>, NextStep])[] = [
  ['a write that may have been begun is never sent again', { kind: 'lost' }, {}, fail],
  ['nor where a third could be asked', { kind: 'lost' }, { hasThird: true }, fail],
  ['a read whose answer was lost is sent once more', { kind: 'lost' }, read, direct],
  ['and not twice', { kind: 'lost' }, { ...read, losses: 1 }, fail],
  [
    'a newer placement is waited for as long as a hand-over takes',
    moved(6),
    {},
    { kind: 'wait', placement: 6, ms: 2_000, otherwise: 'fail' },
  ],
  ['once', moved(7), { moves: 1 }, fail],
  ['and not where the other server is behind', moved(5), {}, fail],
  ['nor where the wait is over', moved(6), { waitMsLeft: 0 }, fail],
  ['who is not reached is reached through a third', { kind: 'unreachable' }, { hasThird: true }, third],
  ['but once a round', { kind: 'unreachable' }, { hasThird: true, wentByThird: true }, again],
  ['then, and where there is no third, it is tried again', { kind: 'unreachable' }, {}, again],
  [
    'not longer than there is time',
    { kind: 'unreachable' },
    { waitMsLeft: 30 },
    { kind: 'wait', placement: 6, ms: 30, otherwise: 'send' },
  ],
  ['and then no more', { kind: 'unreachable' }, { waitMsLeft: 0 }, fail],
  ['who leaves is asked through nobody', { kind: 'refused' }, { hasThird: true }, again],
  ['who has too much to do is let be', { kind: 'full' }, { ...read, hasThird: true }, fail],
  ['nothing is done for nobody', { kind: 'lost' }, { ...read, isWanted: false }, fail],
  ['a file is sent once', { kind: 'unreachable' }, { hasThird: true, isRepeatable: false }, fail],
  ['nor waited for', { kind: 'unreachable' }, { hasThird: true, isWanted: false }, fail],
];

for (const [name, failed, tried, next] of rows)
  test(`${failed.kind}: ${name}`, () => {
    assert.deepEqual(planForward(failed, { ...first, ...tried }), next);
  });

test('no write that may have been begun is sent again, whatever else is known of it', () => {
  for (const does of ['read', 'write'] as const)
    for (const losses of [0, 1])
      for (const hasThird of [true, false])
        for (const wentByThird of [true, false])
          for (const moves of [0, 1]) {
            const next = planForward(
              { kind: 'lost' },
              { ...first, does, losses, hasThird, wentByThird, moves },
            );
            if (does === 'write' || losses > 0) assert.equal(next.kind, 'fail');
          }
});
