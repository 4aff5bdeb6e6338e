import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  activeLogs,
  type Entrance,
  type PlannedView,
  planActivation,
  planEntrance,
  planForgetting,
  planLeave,
  planRemoval,
} from '../../../src/cluster/plan-view.ts';
import { type ClusterMember, type ClusterView, emptyView } from '../../../src/cluster/view.ts';

function member(serverId: string, process = 1): Omit<ClusterMember, 'state'> {
  const logId = `${serverId}${process}`;
  return { logId, serverId, address: `${serverId}:1`, protocol: { least: 1, greatest: 1 } };
}

function entrance(newcomer: Omit<ClusterMember, 'state'>, ...sealedLogs: string[]): Entrance {
  return { newcomer, sealed: sealedLogs.map((logId) => ({ logId, sealSeq: 3 })), done: [] };
}

function made(planned: PlannedView | null): ClusterView {
  assert.ok(planned, 'a view follows');
  return { ...planned, nonce: `of ${planned.version}` };
}

const statesOf = (view: ClusterView) => view.members.map(({ logId, state }) => `${logId} ${state}`);
const numbersOf = (view: ClusterView) => [view.version, view.placement];

/** A is active; B has entered and is active too. */
function two(): ClusterView {
  const alone = made(planEntrance(emptyView, entrance(member('a'))));
  const entered = made(planEntrance(alone, entrance(member('b'))));
  return made(planActivation(entered, 'b1'));
}

test('who enters alone is active at once; who enters beside others owns nothing until it is activated', () => {
  const alone = made(planEntrance(emptyView, entrance(member('a'))));
  const entered = made(planEntrance(alone, entrance(member('b'))));
  const active = made(planActivation(entered, 'b1'));

  assert.deepEqual([statesOf(alone), numbersOf(alone)], [['a1 active'], [1, 1]]);
  assert.deepEqual(
    [statesOf(entered), numbersOf(entered)],
    [
      ['a1 active', 'b1 joining'],
      [2, 1],
    ],
  );
  assert.deepEqual(
    [statesOf(active), numbersOf(active)],
    [
      ['a1 active', 'b1 active'],
      [3, 2],
    ],
  );
  assert.equal(planActivation(active, 'b1'), null, 'made already');
  assert.equal(planActivation(active, 'c1'), null, 'no member');
});

test('a server that starts again takes the place of its own earlier process, whose log was sealed', () => {
  const again = made(planEntrance(two(), entrance(member('a', 2), 'a1')));

  assert.deepEqual(statesOf(again), ['b1 active', 'a2 joining']);
  assert.deepEqual(again.removed, [{ logId: 'a1', sealSeq: 3 }]);
  assert.equal(again.placement, two().placement + 1);
  assert.equal(planEntrance(two(), entrance(member('a', 2))), null, 'its earlier process may still write');
});

test('who enters beside one that leaves, and may have died over it, takes over once it runs', () => {
  const leaving = made(planLeave(two(), 'b1'));
  const entered = made(planEntrance(leaving, entrance(member('c'), 'a1')));

  assert.deepEqual(statesOf(entered), ['b1 leaving', 'c1 joining']);
  assert.deepEqual(statesOf(made(planActivation(entered, 'c1'))), ['b1 leaving', 'c1 active']);
});

test('an entrance forgets what is done, and removes nothing that is no member', () => {
  const before = made(planEntrance(two(), entrance(member('a', 2), 'a1')));
  const after = made(planEntrance(before, { ...entrance(member('c'), 'a1'), done: ['a1'] }));

  assert.deepEqual(after.removed, []);
  assert.deepEqual(statesOf(after), ['b1 active', 'a2 joining', 'c1 joining']);
});

test('who leaves owns nothing from then on, and goes with the seal of its log', () => {
  const leaving = made(planLeave(two(), 'a1'));
  const gone = made(planRemoval(leaving, { logId: 'a1', sealSeq: 9 }));

  assert.deepEqual([activeLogs(leaving), leaving.placement], [['b1'], two().placement + 1]);
  assert.deepEqual([statesOf(gone), gone.removed], [['b1 active'], [{ logId: 'a1', sealSeq: 9 }]]);
  assert.equal(gone.placement, leaving.placement, 'nobody owns anything else than before');
  assert.equal(planLeave(leaving, 'a1'), null, 'made already');
  assert.equal(planLeave(leaving, 'b1'), null, 'nobody is left to leave to');
});

test('an eviction is made once, whoever else makes it, and never hits a later process of the same server', () => {
  const seal = { logId: 'a1', sealSeq: 4 };
  const evicted = made(planRemoval(two(), seal));
  const restarted = made(planEntrance(two(), entrance(member('a', 2), 'a1')));

  assert.deepEqual([statesOf(evicted), evicted.placement], [['b1 active'], two().placement + 1]);
  assert.equal(planRemoval(evicted, seal), null);
  assert.equal(planRemoval(restarted, seal), null);
});

test('to forget logs that are done changes the owners of nothing', () => {
  const evicted = made(planRemoval(two(), { logId: 'a1', sealSeq: 4 }));
  const after = made(planForgetting(evicted, ['a1', 'z1']));

  assert.deepEqual([after.removed, after.placement], [[], evicted.placement]);
  assert.equal(after.version, evicted.version + 1);
  assert.equal(planForgetting(after, ['a1']), null);
});

test('the placement rises exactly where other logs than before are active, whatever the order of changes', () => {
  let view = emptyView;
  const steps: ((now: ClusterView) => PlannedView | null)[] = [
    (now) => planEntrance(now, entrance(member('a'))),
    (now) => planEntrance(now, entrance(member('b'))),
    (now) => planEntrance(now, entrance(member('c'))),
    (now) => planActivation(now, 'c1'),
    (now) => planLeave(now, 'b1'),
    (now) => planRemoval(now, { logId: 'b1', sealSeq: 1 }),
    (now) => planRemoval(now, { logId: 'a1', sealSeq: 7 }),
    (now) => planForgetting(now, ['b1']),
    (now) => planEntrance(now, entrance(member('c', 2), 'c1')),
  ];
  for (const step of steps) {
    const next = made(step(view));
    const isSame = activeLogs(next).join() === activeLogs(view).join();
    assert.equal(next.placement - view.placement, isSame ? 0 : 1);
    assert.equal(next.version, view.version + 1);
    view = next;
  }
  assert.deepEqual(statesOf(view), ['c2 active']);
});
