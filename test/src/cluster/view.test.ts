import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { sealLog } from '../../../actors/log/seal.ts';
import { DataError } from '../../../src/base/assert.ts';
import { joinCluster } from '../../../src/cluster/view.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { paths } from '../../../src/object-store/paths.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { FaultyObjectStore } from '../../support/faulty-object-store.ts';
import { goldenBytes } from '../../support/golden.ts';
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

function join(serverId = 'a') {
  const random = seededBytes(80 + joins++);
  const log = {
    seal: async (logId: string, viewVersion: number) => {
      sealings.push(logId);
      return sealLog(truth, random, { logId, viewVersion });
    },
    doneAmong: async (logIds: readonly string[]) => {
      const found = await Promise.all(logIds.map((logId) => truth.get(paths.logDone(logId))));
      return logIds.filter((_, at) => found[at] !== null);
    },
  };
  return clock.run(joinCluster({ store, clock, random, log }, serverId, `address of ${serverId}`));
}

test('the first process finds nothing to take over', async () => {
  const joined = await join();

  assert.deepEqual([joined.sealedLogs, joined.predecessors, joined.identity.viewVersion], [[], [], 1]);
  assert.match(joined.identity.logId, /^[0-9a-z]{20,40}$/);
});

test('a restart seals the log of the process before it, and takes over all that are not done', async () => {
  const first = await join();
  const second = await join();
  const third = await join();

  assert.deepEqual(second.sealedLogs, [{ logId: first.identity.logId, sealSeq: 1 }]);
  assert.deepEqual(second.predecessors, [first.identity.logId]);
  assert.deepEqual(
    third.sealedLogs.map(({ logId }) => logId),
    [first.identity.logId, second.identity.logId],
  );
  assert.deepEqual(third.predecessors, [second.identity.logId]);
  await truth.putIfAbsent(paths.logDone(first.identity.logId), [Buffer.from('1')]);
  const fourth = await join();
  assert.deepEqual(
    fourth.sealedLogs.map(({ logId }) => logId),
    [second.identity.logId, third.identity.logId],
  );
  assert.equal(fourth.identity.viewVersion, 4);
});

test('a change of the view whose answer was lost is looked up, and one that was lost itself is made again', async () => {
  for (const fault of ['error-after-apply', 'drop-before-apply'] as const) {
    let faults = 1;
    store.plan = ({ key, operation }) =>
      key === paths.view && operation !== 'get' && faults-- > 0 ? fault : undefined;
    const { identity } = await join();
    const { sealedLogs } = await join();
    assert.equal(sealedLogs.at(-1)?.logId, identity.logId, fault);
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

  assert.deepEqual(second.sealedLogs, [{ logId: first.identity.logId, sealSeq: 1 }]);
  assert.deepEqual(new Set(sealings), new Set([first.identity.logId]));
});

test('a refusal of its own change counts as success', async () => {
  await join();
  store.plan = ({ operation, key }) =>
    operation === 'update' && key === paths.view ? 'refuse-after-apply' : undefined;

  const second = await join();

  assert.equal(second.identity.viewVersion, 2);
});

test('of two that start at once the later one seals the earlier one’s log', async () => {
  const [one, other] = await Promise.all([join('a'), join('a')]);
  const [earlier, later] =
    one.identity.viewVersion < other.identity.viewVersion ? [one, other] : [other, one];

  assert.deepEqual([earlier.identity.viewVersion, later.identity.viewVersion], [1, 2]);
  assert.deepEqual(later.sealedLogs, [{ logId: earlier.identity.logId, sealSeq: 1 }]);
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
    second.sealedLogs.map(({ logId }) => logId),
    [first.identity.logId],
  );
  assert.deepEqual(second.predecessors, [], 'what its cache holds is another server’s');
});

test('the bytes of the view are those of the golden file, and a damaged view is refused', async () => {
  await join();
  await join();
  const view = await truth.get(paths.view);
  assert.ok(view);

  const golden = goldenBytes('cluster-view-v1.bin', view.bytes);

  assert.deepEqual(Buffer.from(view.bytes), golden);
  for (let at = 0; at < view.bytes.length; at += 3) {
    const spoilt = Buffer.from(view.bytes);
    spoilt[at] = (spoilt[at] ?? 0) ^ 8;
    await truth.delete(paths.view);
    await truth.putIfAbsent(paths.view, [spoilt]);
    await assert.rejects(join(), DataError, `byte ${at}`);
  }
});
