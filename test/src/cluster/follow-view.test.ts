import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { ViewFollower } from '../../../src/cluster/follow-view.ts';
import { type ClusterView, encodeView } from '../../../src/cluster/view.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { paths } from '../../../src/object-store/paths.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { FaultyObjectStore, gate } from '../../support/faulty-object-store.ts';
import { quiet } from '../../support/in-process.ts';

const everyMs = 1_000;
let clock: FakeClock;
let truth: MemoryObjectStore;
let store: FaultyObjectStore;
let heard: string[];
let holds: Promise<void>;
let removed: number;

beforeEach(() => {
  clock = new FakeClock();
  truth = new MemoryObjectStore();
  store = new FaultyObjectStore(truth, clock);
  [heard, holds, removed] = [[], Promise.resolve(), 0];
});

function view(version: number, ...logIds: string[]): ClusterView {
  const protocol = { least: 1, greatest: 1 };
  const members = logIds.map((logId) => ({
    logId,
    serverId: `server of ${logId}`,
    address: 'here',
    state: 'active' as const,
    protocol,
  }));
  return { version, placement: version, nonce: `${version}`, members, removed: [] };
}

function follower(first = view(1, 'l')): ViewFollower {
  const subscribers = [
    async ({ version }: ClusterView) => {
      heard.push(`hosts ${version}`);
      await holds;
    },
    ({ version }: ClusterView) => void heard.push(`log ${version}`),
  ];
  const options = { everyMs, logId: 'l', subscribers, onRemoved: () => removed++ };
  return new ViewFollower({ store, clock, logger: quiet }, options, first);
}

async function put(next: ClusterView): Promise<void> {
  const found = await truth.get(paths.view);
  const bytes = [encodeView(next)];
  await (found === null
    ? truth.putIfAbsent(paths.view, bytes)
    : truth.putIfMatch(paths.view, bytes, found.etag));
}

test('a view that has changed is told within a second, to one after the other; one that has not costs no bytes', async () => {
  const following = follower();
  const stop = following.follow();
  await put(view(2, 'l', 'm'));

  await clock.advance(everyMs);
  await clock.advance(3 * everyMs);
  stop();

  assert.deepEqual(heard, ['hosts 2', 'log 2']);
  assert.equal(following.view.version, 2);
});

test('the log does not hear of a view before the hosts are done with it, and of several that wait only the last is told', async () => {
  const following = follower();
  const held = gate();
  holds = held.opened;
  const first = following.offer(view(2, 'l'));
  await clock.settle();
  const later = [3, 4].map((version) => following.offer(view(version, 'l')));
  await clock.settle();
  assert.deepEqual(heard, ['hosts 2']);

  held.open();
  await Promise.all([first, ...later]);

  assert.deepEqual(heard, ['hosts 2', 'log 2', 'hosts 4', 'log 4']);
});

test('a view that comes late is dropped', async () => {
  const following = follower(view(5, 'l'));

  await following.offer(view(4, 'l', 'm'));

  assert.equal(following.view.version, 5);
  assert.deepEqual(heard, []);
});

test('who is not in the view any more hears that instead', async () => {
  await follower().offer(view(2, 'm'));

  assert.deepEqual([removed, heard], [1, []]);
});

test('a view that cannot be read is read by the next look', async () => {
  await put(view(2, 'l'));
  let faults = 1;
  store.plan = ({ key }) => (key === paths.view && faults-- > 0 ? 'drop-before-apply' : undefined);
  const following = follower();

  await clock.run(following.look());
  assert.deepEqual(heard, []);
  await clock.run(following.look());

  assert.deepEqual(heard, ['hosts 2', 'log 2']);
});
