import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { limits } from '../../../protocol/limits.ts';
import type { Share } from '../../../src/base/share.ts';
import { ComputeLane, type LaneResult, NotRun } from '../../../src/router/compute-lane.ts';
import { FakeClock } from '../../support/fake-clock.ts';

let clock: FakeClock;
let begun: string[];
let ends: Map<string, (ms: number) => Promise<void>>;
let used: Map<number, number>;
/** Owners who have sent requests just now, and how long a task waits for a core while it has one. */
let [owners, waits] = [1, 0];

beforeEach(() => {
  clock = new FakeClock();
  begun = [];
  ends = new Map();
  used = new Map();
  [owners, waits] = [1, 0];
});

/** Tasks that end when a test says so. */
function laneOf(slots: number, { queueMax = 100, tenantQueueMax = 100 } = {}): ComputeLane {
  const pool = {
    slots,
    run(task: object) {
      const { name } = task as { name: string };
      begun.push(name);
      return new Promise<LaneResult>((resolve) => {
        ends.set(name, async (ms) => {
          clock.jump(ms);
          resolve({ result: name, cpuMs: ms / 2, waitedMs: waits * (ms / 2) });
          await clock.settle();
        });
      });
    },
    end: async () => {},
  };
  const onUsed = ({ owner }: Share, ms: number) => used.set(owner, (used.get(owner) ?? 0) + ms);
  const recentOwners = { othersThan: () => owners - 1 };
  return new ComputeLane({ pool, clock, queueMax, tenantQueueMax, onUsed, recentOwners });
}

const share = (owner: number): Share => ({ owner, tenant: owner, weight: 1 });

function ask(
  lane: ComputeLane,
  owner: number,
  name: string,
  deadlineAt: number | null = null,
): Promise<unknown> {
  const result = lane.run({ task: { name }, share: share(owner), deadlineAt });
  result.catch(() => {});
  return result;
}

async function end(name: string, ms = 10): Promise<void> {
  await ends.get(name)?.(ms);
}

test('no owner has all threads, and who comes next finds one free', () => {
  const lane = laneOf(3);
  for (let i = 0; i < 10; i++) ask(lane, 1, `attacker ${i}`);
  ask(lane, 2, 'neighbour');

  assert.deepEqual(begun, ['attacker 0', 'attacker 1', 'neighbour']);
});

test('the only thread of a lane is everybody’s, one after the other', async () => {
  const lane = laneOf(1);
  for (let i = 0; i < 5; i++) ask(lane, 1, `attacker ${i}`);
  ask(lane, 2, 'neighbour');

  await end('attacker 0', 5_000);

  assert.deepEqual(begun, ['attacker 0', 'neighbour']);
});

test('who used much waits while others use little, and each task is charged to its share', async () => {
  const lane = laneOf(1);
  for (let i = 0; i < 3; i++) ask(lane, 1, `dear ${i}`);
  for (let i = 0; i < 6; i++) ask(lane, 2, `cheap ${i}`);
  for (let turn = 0; turn < 8; turn++) {
    const name = begun.at(-1) ?? '';
    await end(name, name.startsWith('dear') ? 1_000 : 10);
  }

  assert.deepEqual(begun.slice(0, 2), ['dear 0', 'cheap 0']);
  assert.ok(begun.indexOf('dear 2') > begun.indexOf('cheap 4'), begun.join(', '));
  assert.ok((used.get(1) ?? 0) >= 1_000);
});

test('a lane where nothing runs has a thread ready for a task that will come, and others find it free', async () => {
  const lane = laneOf(1);
  lane.prepare({ name: 'prepare' }, share(1));
  lane.prepare({ name: 'prepare again' }, share(2));
  const asked = ask(lane, 2, 'task');
  assert.deepEqual(begun, ['prepare']);

  await end('prepare', 30);
  assert.deepEqual(begun, ['prepare', 'task']);
  assert.equal(used.get(1), 15);
  lane.prepare({ name: 'too late' }, share(1));
  await end('task');
  assert.equal(await asked, 'task');
  assert.deepEqual(begun, ['prepare', 'task']);

  const off = laneOf(1, { queueMax: 0 });
  off.prepare({ name: 'nothing runs there' }, share(1));
  assert.deepEqual(begun, ['prepare', 'task']);
});

test('a task whose time is over before it began is not begun', async () => {
  const lane = laneOf(1);
  ask(lane, 1, 'first');
  const late = ask(lane, 2, 'late', clock.now() + 50);
  ask(lane, 2, 'patient');

  await end('first', 100);

  await assert.rejects(late, (error) => error instanceof NotRun && error.reason === 'late');
  assert.deepEqual(begun, ['first', 'patient']);
});

test('a full queue refuses who fills it, and lets others in', async () => {
  const lane = laneOf(1, { queueMax: 4, tenantQueueMax: 4 });
  const attacks = Array.from({ length: 6 }, (_, i) => ask(lane, 1, `attacker ${i}`));
  await assert.rejects(attacks[5] as Promise<unknown>, NotRun);

  const neighbour = ask(lane, 2, 'neighbour');

  await assert.rejects(attacks[4] as Promise<unknown>, NotRun, 'its newest task made room');
  await end('attacker 0', 100);
  await end('neighbour');
  assert.equal(await neighbour, 'neighbour');
});

test('where cores are busy and others want them, a place rests as many times as long as its task was on a core', async () => {
  const lane = laneOf(1);
  [owners, waits] = [6, 1];
  ask(lane, 1, 'first');
  await end('first', 400);
  for (let i = 0; i < 3; i++) ask(lane, 1, `next ${i}`);
  await clock.advance(limits.laneRestMsMax - 1);
  assert.deepEqual(begun, ['first'], 'five others, 200 ms: more than a place may rest');
  await clock.advance(1);
  assert.deepEqual(begun, ['first', 'next 0']);

  await end('next 0', 20);
  await clock.advance(49);
  assert.deepEqual(begun, ['first', 'next 0'], 'five times 10 ms');
  await clock.advance(1);
  assert.deepEqual(begun, ['first', 'next 0', 'next 1']);
});

test('a place does not rest for an owner who is alone, nor where no task waits for a core', async () => {
  const lane = laneOf(1);
  for (let i = 0; i < 5; i++) ask(lane, 1, `task ${i}`);
  [owners, waits] = [1, 5];
  await end('task 0', 400);
  [owners, waits] = [50, 0.1];
  await end('task 1', 400);

  assert.deepEqual(begun, ['task 0', 'task 1', 'task 2']);
});

test('who wants little takes a place that rests', async () => {
  const lane = laneOf(2);
  [owners, waits] = [20, 1];
  for (let i = 0; i < 9; i++) ask(lane, 1, `attacker ${i}`);
  await end('attacker 0', 400);
  assert.deepEqual(
    begun,
    ['attacker 0', 'attacker 1'],
    'its place rests, and the other one is kept for others',
  );

  ask(lane, 2, 'neighbour');
  assert.deepEqual(begun, ['attacker 0', 'attacker 1', 'neighbour']);
});

test('who takes a place that rests makes none rest, so that who always waits has it when the rest is over', async () => {
  const lane = laneOf(1);
  [owners, waits] = [20, 1];
  ask(lane, 1, 'first');
  await end('first', 400);
  ask(lane, 1, 'next');
  for (let owner = 2; owner < 7; owner++) {
    ask(lane, owner, `light ${owner}`);
    assert.equal(begun.at(-1), `light ${owner}`);
    await end(`light ${owner}`, 50);
  }
  ask(lane, 8, 'the last light one');
  await clock.advance(limits.laneRestMsMax);
  assert.equal(begun.at(-1), 'the last light one', 'the rest is over while it runs');
  await end('the last light one', 200);

  assert.equal(begun.at(-1), 'next', 'though it has used more than its burst');
});

test('an owner has one place that rests at a time, and a share pays for the rest of its place', async () => {
  const lane = laneOf(3);
  [owners, waits] = [20, 1];
  for (let i = 0; i < 9; i++) ask(lane, 1, `attacker ${i}`);
  await end('attacker 0', 400);
  await end('attacker 1', 400);
  await end('attacker 2', 400);
  const before = begun.length;
  for (let i = 0; i < 3; i++) ask(lane, 2, `neighbour ${i}`);
  assert.deepEqual(begun.slice(before), ['neighbour 0']);
  await end('neighbour 0', 60);
  await end('neighbour 1', 60);

  // It has used more than its burst, and the attacker's rests, which it paid for, have brought that back.
  await clock.advance(limits.laneRestMsMax);
  ask(lane, 3, 'another');
  assert.ok(begun.includes('another'));
});
