import assert from 'node:assert/strict';
import { test } from 'node:test';
import { limits } from '../../../protocol/limits.ts';
import { KnownMembers } from '../../../src/router/members.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { membersOf, nameWhere, tenantId } from '../../support/routed-servers.ts';

const three = ['a', 'b', 'c'];

test('owners are those of the newest snapshot, whatever was asked before', () => {
  const members = new KnownMembers(membersOf('a', 1, three), new FakeClock());
  // The second of three, then the first of two.
  const name = nameWhere([three, 'b'], [['b', 'c'], 'b']);
  const moved = nameWhere([three, 'a'], [['b', 'c'], 'c']);

  assert.deepEqual([members.ownerOf(tenantId, name), members.isOwn(tenantId, moved)], ['b', true]);
  members.use(membersOf('a', 2, three, ['b', 'c']));

  assert.deepEqual([members.ownerOf(tenantId, name), members.isOwn(tenantId, moved)], ['b', false]);
  members.use(membersOf('a', 3, three, []));
  assert.equal(members.ownerOf(tenantId, name), null);
});

test('each work for all is done by one server at a time, and by none while none owns anything', () => {
  const tasks = ['billing', 'ended-logs', 'orphans', 'unused-clients'] as const;
  const doersOf = (task: (typeof tasks)[number], servers: readonly string[]) =>
    three.filter((id) => new KnownMembers(membersOf(id, 1, three, servers), new FakeClock()).doesTask(task));

  for (const task of tasks) {
    assert.equal(doersOf(task, three).length, 1);
    assert.deepEqual(doersOf(task, ['b']), ['b']);
    assert.deepEqual(doersOf(task, []), []);
  }
});

test('members are known by their logs, also those that own nothing', () => {
  const members = new KnownMembers(membersOf('a', 1, three, ['a']), new FakeClock());

  assert.deepEqual([members.knows('log-c'), members.knows('log-d')], [true, false]);
  assert.deepEqual(members.otherLogs(), ['log-b', 'log-c']);
});

test('a snapshot that is older is a bug of whoever gives it', () => {
  const members = new KnownMembers(membersOf('a', 2, three), new FakeClock());

  assert.throws(() => members.use(membersOf('a', 1, three)), /older/);
});

test('a wait ends once: when it holds, when its time is over, when it is stopped, or where too many wait', async () => {
  const clock = new FakeClock();
  const members = new KnownMembers(membersOf('a', 1, three), clock);
  const ends: string[] = [];
  const wait = (placement: number, name: string) =>
    members.until(
      ({ owners }) => owners.placement >= placement,
      1_000,
      (end) => ends.push(`${name} ${end}`),
    );
  wait(1, 'at once');
  wait(2, 'soon');
  wait(3, 'never');
  wait(2, 'stopped')();

  assert.deepEqual(ends, [], 'nothing is called back within the call');
  await clock.advance(10);
  members.use(membersOf('a', 2, three));
  await clock.advance(2_000);
  assert.deepEqual(ends, ['at once holds', 'soon holds', 'never over']);
  assert.deepEqual([members.waiting, clock.timers], [0, 0]);

  for (let n = 0; n < limits.placementWaitersMax; n++) wait(9, 'one of many');
  wait(9, 'one more');
  await clock.advance(10);
  assert.equal(ends.at(-1), 'one more full');
});
