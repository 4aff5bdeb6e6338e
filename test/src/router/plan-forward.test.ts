import assert from 'node:assert/strict';
import { test } from 'node:test';
import { limits } from '../../../protocol/limits.ts';
import { type FailedTry, type NextStep, planForward, type Tried } from '../../../src/router/plan-forward.ts';

const first: Tried = {
  does: 'write',
  placement: 5,
  copies: 0,
  isGone: false,
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
const lost: FailedTry = { kind: 'lost', isForgotten: false };
const copy = (byThird: boolean, afterMs: number): NextStep => ({ kind: 'copy', byThird, afterMs });
const moved = (placement: number): FailedTry => ({ kind: 'moved', placement });

const rows: readonly (readonly [string, FailedTry, Partial<Tried>, NextStep])[] = [
  ['of a write that may have been begun a copy is sent', lost, {}, copy(false, 0)],
  ['through a third where there is one', lost, { hasThird: true }, copy(true, 0)],
  ['and more of them, with pauses', lost, { copies: 3 }, copy(false, limits.forwardAgainMs)],
  ['until the wait is over', lost, { copies: 3, waitMsLeft: 0 }, fail],
  ['or its answer is known to be lost', { kind: 'lost', isForgotten: true }, { hasThird: true }, fail],
  ['none is sent to who has ended', lost, { isGone: true }, fail],
  ['but where a third may know better', lost, { isGone: true, hasThird: true }, copy(true, 0)],
  ['which is asked once', lost, { isGone: true, hasThird: true, copies: 1 }, fail],
  ['a read whose answer was lost is sent once more', lost, read, direct],
  ['and not twice', lost, { ...read, losses: 1 }, fail],
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
  ['nothing is done for nobody', lost, { ...read, isWanted: false }, fail],
  ['a file is sent once', { kind: 'unreachable' }, { hasThird: true, isRepeatable: false }, fail],
  ['nor waited for', { kind: 'unreachable' }, { hasThird: true, isWanted: false }, fail],
];

for (const [name, failed, tried, next] of rows)
  test(`${failed.kind}: ${name}`, () => {
    assert.deepEqual(planForward(failed, { ...first, ...tried }), next);
  });

test('no write that may have been begun is sent again as another request, whatever else is known of it', () => {
  for (const does of ['read', 'write'] as const)
    for (const losses of [0, 1])
      for (const hasThird of [true, false])
        for (const wentByThird of [true, false])
          for (const moves of [0, 1]) {
            const next = planForward(lost, { ...first, does, losses, hasThird, wentByThird, moves });
            if (does === 'write') assert.equal(next.kind, 'copy');
            else if (losses > 0) assert.equal(next.kind, 'fail');
          }
});
