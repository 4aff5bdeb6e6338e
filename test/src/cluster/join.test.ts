import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { sealLog } from '../../../actors/log/seal.ts';
import { limits } from '../../../protocol/limits.ts';
import { DataError } from '../../../src/base/assert.ts';
import { joinCluster } from '../../../src/cluster/join.ts';
import { addressAlone, type ClusterView, encodeView, loadView, readView } from '../../../src/cluster/view.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { paths } from '../../../src/object-store/paths.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { FaultyObjectStore } from '../../support/faulty-object-store.ts';
import { seededBytes } from '../../support/in-process.ts';

let clock: FakeClock;
let truth: MemoryObjectStore;
let store: FaultyObjectStore;
let joins: number;
let sealings: string[];

beforeEach(() => {
  clock = new FakeClock();
  truth = new MemoryObjectStore();
  store = new FaultyObjectStore(truth, clock);
  joins = 0;
  sealings = [];
});

function memberOf({ members: [member] }: ClusterView) {
  assert.ok(member);
  return member;
}

function join(serverId = 'a', { address = `address of ${serverId}`, besideOthers = false } = {}) {
  const random = seededBytes(80 + joins++);
  const log = {
    seal: async (logId: string, placement: number) => {
      sealings.push(logId);
      return sealLog(truth, random, { logId, placement });
    },
    doneAmong: async (logIds: readonly string[]) => {
      const found = await Promise.all(logIds.map((logId) => truth.get(paths.logDone(logId))));
      return logIds.filter((_, at) => found[at] !== null);
    },
  };
  return clock.run(joinCluster({ store, clock, random, log, besideOthers }, serverId, address));
}

test('the first process finds nothing to take over', async () => {
  const joined = await join();

  assert.deepEqual([joined.standing.removed, joined.predecessors, joined.identity.placement], [[], [], 1]);
  assert.match(joined.identity.logId, /^[0-9a-z]{20,40}$/);
});

test('a restart seals the log of the process before it, and takes over all that are not done', async () => {
  const first = await join();
  const second = await join();
  const third = await join();

  assert.deepEqual(second.standing.removed, [{ logId: first.identity.logId, sealSeq: 1 }]);
  assert.deepEqual(second.predecessors, [first.identity.logId]);
  assert.deepEqual(
    third.standing.removed.map(({ logId }) => logId),
    [first.identity.logId, second.identity.logId],
  );
  assert.deepEqual(third.predecessors, [second.identity.logId]);
  await truth.putIfAbsent(paths.logDone(first.identity.logId), [Buffer.from('1')]);
  const fourth = await join();
  assert.deepEqual(
    fourth.standing.removed.map(({ logId }) => logId),
    [second.identity.logId, third.identity.logId],
  );
  assert.equal(fourth.identity.placement, 4);
});

test('a change of the view whose answer was lost is looked up, and one that was lost itself is made again', async () => {
  for (const fault of ['error-after-apply', 'drop-before-apply'] as const) {
    let faults = 1;
    store.plan = ({ key, operation }) =>
      key === paths.view && operation !== 'get' && faults-- > 0 ? fault : undefined;
    const { identity } = await join();
    const { standing } = await join();
    assert.equal(standing.removed.at(-1)?.logId, identity.logId, fault);
  }
});

test('log ids sort by time and are never the same', async () => {
  const ids: string[] = [];
  for (let n = 0; n < 5; n++) {
    ids.push((await join()).identity.logId);
    clock.jump(5);
  }

  assert.deepEqual(ids, [...new Set(ids)].sort());
});

test('a crash between the seal and the change of the view is made good by the next start', async () => {
  const first = await join();
  store.plan = ({ operation, key }) =>
    operation === 'update' && key === paths.view ? 'drop-before-apply' : undefined;
  await assert.rejects(join());
  store.plan = () => undefined;

  const second = await join();

  assert.deepEqual(second.standing.removed, [{ logId: first.identity.logId, sealSeq: 1 }]);
  assert.deepEqual(new Set(sealings), new Set([first.identity.logId]));
});

test('a refusal of its own change counts as success', async () => {
  await join();
  store.plan = ({ operation, key }) =>
    operation === 'update' && key === paths.view ? 'refuse-after-apply' : undefined;

  const second = await join();

  assert.equal(second.identity.placement, 2);
});

test('of two that start at once the later one seals the earlier one’s log', async () => {
  const [one, other] = await Promise.all([join('a'), join('a')]);
  const [earlier, later] = one.identity.placement < other.identity.placement ? [one, other] : [other, one];

  assert.deepEqual([earlier.identity.placement, later.identity.placement], [1, 2]);
  assert.deepEqual(later.standing.removed, [{ logId: earlier.identity.logId, sealSeq: 1 }]);
});

test('another server that lives is not pushed aside, one that died is', async () => {
  const first = await join('a');
  await truth.putIfAbsent(paths.lease(first.identity.logId), [Buffer.from('beat 1')]);
  const beat = async () => {
    const lease = await truth.get(paths.lease(first.identity.logId));
    await truth.putIfMatch(paths.lease(first.identity.logId), [Buffer.from('beat 2')], lease?.etag ?? '');
  };
  clock.after(5_000, () => void beat());

  await assert.rejects(join('b'), /another server \(address of a\) is running/);
  assert.deepEqual(sealings, []);

  const second = await join('b');
  assert.deepEqual(
    second.standing.removed.map(({ logId }) => logId),
    [first.identity.logId],
  );
  assert.deepEqual(second.predecessors, [], 'what its cache holds is another server’s');
});

test('nobody joins beside a server that is alone: one that lives is in the way, one that died goes', async () => {
  const first = await join('a', { address: addressAlone('127.0.0.1', 8080) });
  const lease = paths.lease(first.identity.logId);
  await truth.putIfAbsent(lease, [Buffer.from('beat 1')]);
  clock.after(5_000, async () => {
    await truth.putIfMatch(lease, [Buffer.from('beat 2')], (await truth.get(lease))?.etag ?? '');
  });

  await assert.rejects(
    join('b', { besideOthers: true }),
    /another server \(http:\/\/127\.0\.0\.1:8080\) is running alone .* with TIDEBASE_PEER_PORT/,
  );

  const second = await join('b', { besideOthers: true });
  assert.deepEqual(sealings, [first.identity.logId]);
  const third = await join('c', { besideOthers: true });
  assert.deepEqual(
    third.view.members.map(({ logId, state }) => [logId, state]),
    [
      [second.identity.logId, 'active'],
      [third.identity.logId, 'joining'],
    ],
  );
});

test('a server returns where its process before owned a part, and not where that one was still joining', async () => {
  const besideOthers = true;
  const first = await join('a', { besideOthers });
  const joining = await join('b', { besideOthers });
  const stillJoining = await join('b', { besideOthers });
  const returning = await join('a', { besideOthers });

  assert.deepEqual(
    [first, joining, stillJoining, returning].map(({ returns }) => returns),
    [false, false, false, true],
  );
  assert.deepEqual(returning.predecessors, [], 'b has heard of it and may change what it owned');
});

test('a server of versions that this one does not speak is named, and not joined', async () => {
  await join('a');
  const { etag } = await loadView(truth);
  const view = await readView(truth);
  const members = [{ ...memberOf(view), protocol: { least: 98, greatest: 99 } }];
  await truth.putIfMatch(paths.view, [encodeView({ ...view, members })], etag ?? '');

  await assert.rejects(
    join('b', { besideOthers: true }),
    /the server at address of a speaks versions 98 to 99 .*: update the older one first/,
  );
});

test('several servers that died are waited for at once', async () => {
  const first = await join('a');
  await truth.putIfAbsent(paths.lease(first.identity.logId), [Buffer.from('beat')]);
  const second = await join('b');
  await truth.putIfAbsent(paths.lease(second.identity.logId), [Buffer.from('beat')]);
  const view = await readView(truth);
  const both = {
    ...view,
    members: [...view.members, { ...memberOf(view), logId: first.identity.logId, serverId: 'a' }],
  };
  await truth.delete(paths.view);
  await truth.putIfAbsent(paths.view, [encodeView(both)]);
  const began = clock.monotonic();

  const third = await join('c');

  assert.equal(clock.monotonic() - began, limits.suspectAfterMs);
  assert.deepEqual(
    new Set(third.standing.removed.map(({ logId }) => logId)),
    new Set([first.identity.logId, second.identity.logId]),
  );
});

test('the view of a single server has one active member, and its placement rises with each start', async () => {
  await join();
  const first = await readView(truth);
  const second = await join();
  const view = await readView(truth);

  assert.deepEqual([first.version, first.placement], [1, 1]);
  assert.deepEqual([view.version, view.placement, second.identity.placement], [2, 2, 2]);
  assert.deepEqual(
    view.members.map(({ logId, state }) => [logId, state]),
    [[second.identity.logId, 'active']],
  );
});

test('a damaged view is refused', async () => {
  await join();
  const view = await truth.get(paths.view);
  assert.ok(view);

  for (let at = 0; at < view.bytes.length; at += 3) {
    const spoilt = Buffer.from(view.bytes);
    spoilt[at] = (spoilt[at] ?? 0) ^ 8;
    await truth.delete(paths.view);
    await truth.putIfAbsent(paths.view, [spoilt]);
    await assert.rejects(join(), DataError, `byte ${at}`);
  }
});

test('a view that is gone while there are logs is not taken for the first start', async () => {
  const { identity } = await join();
  await truth.putIfAbsent(paths.logObject(identity.logId, 1), [Buffer.from('a group')]);
  await truth.delete(paths.view);

  await assert.rejects(join(), /no view that names them/);
});
