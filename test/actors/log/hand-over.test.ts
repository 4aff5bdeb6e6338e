import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { HandOver } from '../../../actors/log/hand-over.ts';
import { sealLog } from '../../../actors/log/seal.ts';
import { limits } from '../../../protocol/limits.ts';
import { placementKey, type Standing } from '../../../protocol/placement.ts';
import { isOwn } from '../../../src/base/owners.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { paths } from '../../../src/object-store/paths.ts';
import { encodeLogObject } from '../../../src/stored/log-object.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { quiet, seededBytes } from '../../support/in-process.ts';

const other = 'b'.repeat(30);
let clock: FakeClock;
let store: MemoryObjectStore;
let laterViews: number;

beforeEach(() => {
  clock = new FakeClock();
  store = new MemoryObjectStore();
  laterViews = 0;
});

function standing(placement: number, servers: readonly string[], others: readonly string[] = []): Standing {
  const owners = { placement, servers, self: 'a' };
  return { version: placement, owners, others, removed: [], logs: ['a'.repeat(30), ...others] };
}

function handOver(first: Standing): HandOver {
  const options = { readsOutliveSealMs: limits.readsOutliveSealMs, onLaterView: () => laterViews++ };
  return new HandOver({ store, clock, random: seededBytes(1), logger: quiet }, options, first);
}

async function header(slot: number, placement: number): Promise<void> {
  const batchId = 'ab'.repeat(16);
  const { bytes } = encodeLogObject(
    { logId: other, slot, kind: 'barrier', placement, previousChecksum: 0n, batchId },
    [],
  );
  await store.putIfAbsent(paths.logObject(other, slot), [bytes]);
}

/** A namespace that is a's where b is no server, and b's otherwise. */
const moving = {
  tenantId: 1,
  namespace:
    Array.from({ length: 50 }, (_, at) => `n${at}`).find(
      (name) => !isOwn({ servers: ['a', 'b'], self: 'a' }, placementKey(1, name)),
    ) ?? '',
};

/** What b had has come to a, after b's log was sealed. */
async function afterSeal(): Promise<{ readonly over: HandOver; readonly sealSeq: number }> {
  await header(1, 2);
  const over = handOver(standing(2, ['a', 'b'], [other]));
  over.settled();
  const sealSeq = await sealLog(store, seededBytes(2), { logId: other, placement: 3 });
  over.adopt({ ...standing(3, ['a']), removed: [{ logId: other, sealSeq }], logs: ['a'.repeat(30), other] });
  return { over, sealSeq };
}

test('who was alone waits for nobody when another one joins, and has what stays with it all the time', async () => {
  const over = handOver(standing(1, ['a']));
  over.settled();
  over.adopt(standing(2, ['a', 'b'], [other]));

  assert.deepEqual(await clock.run(over.whenEnded()), []);
  assert.equal(over.isOwn(moving), false);
  assert.equal(over.hasCome(moving), false);
});

test('what comes from a member is there when its log has reached that very placement', async () => {
  await header(1, 2);
  const over = handOver(standing(2, ['a', 'b'], [other]));
  over.settled();
  over.adopt(standing(3, ['a'], [other]));
  assert.equal(over.hasCome(moving), true);
  const ended = over.whenEnded();
  let has = false;
  void ended.then(() => {
    has = true;
  });

  await clock.advance(1_000);
  assert.equal(has, false);
  await header(2, 3);

  assert.deepEqual(await clock.run(ended), [{ logId: other, after: 0, through: 1 }]);
  over.settled();
  assert.equal(over.hasCome(moving), false);
});

test('a placement that others have passed over is given up when the later view has come', async () => {
  await header(1, 4);
  const over = handOver(standing(2, ['a', 'b'], [other]));
  over.settled();
  over.adopt(standing(3, ['a'], [other]));
  const ended = over.whenEnded();
  await clock.advance(250);
  assert.ok(laterViews > 0);

  over.adopt(standing(4, ['a'], [other]));

  assert.equal(await clock.run(ended), null);
  assert.deepEqual(await clock.run(over.whenEnded()), [{ logId: other, after: 0, through: 0 }]);
});

test('after a seal reads of its process are waited out', async () => {
  const { over, sealSeq } = await afterSeal();
  const beganAt = clock.monotonic();

  assert.deepEqual(await clock.run(over.whenEnded()), [{ logId: other, after: 0, through: sealSeq - 1 }]);
  assert.equal(clock.monotonic(), beganAt, 'it is read meanwhile');
  await clock.run(over.whenUnread(() => false));

  assert.ok(clock.monotonic() - beganAt >= limits.readsOutliveSealMs);
});

test('reads of a sealed process are waited out also where the view forgets its log meanwhile, and no longer', async () => {
  const { over } = await afterSeal();
  const beganAt = clock.monotonic();
  await clock.run(over.whenEnded());

  over.adopt({ ...standing(3, ['a']), version: 4 });
  await clock.run(over.whenUnread(() => false));
  assert.ok(clock.monotonic() - beganAt >= limits.readsOutliveSealMs);

  over.adopt({ ...standing(3, ['a']), version: 5 });
  const endedAt = clock.monotonic();
  await clock.run(over.whenUnread(() => false));
  assert.equal(clock.monotonic(), endedAt);
});

test('what comes from a sealed log is left to one that is joining for a moment, while its reads are waited out anyway', async () => {
  const over = handOver(standing(2, ['a', 'b'], [other]));
  over.settled();
  const joining = { ...standing(3, ['a']), logs: ['a'.repeat(30), other, 'c'.repeat(30)] };
  const beganAt = clock.monotonic();
  over.adopt(joining);
  await clock.run(over.whenJoined(() => false));
  assert.equal(clock.monotonic(), beganAt, 'nothing is sealed');

  const removed = [{ logId: other, sealSeq: 1 }];
  over.adopt({ ...standing(3, ['a']), version: 4, removed, logs: ['a'.repeat(30), other] });
  await clock.run(over.whenJoined(() => false));
  assert.equal(clock.monotonic(), beganAt, 'nobody is joining');

  over.adopt({ ...joining, version: 5, removed });
  await clock.run(over.whenJoined(() => false));
  assert.equal(clock.monotonic() - beganAt, limits.joinAwaitedMs);
  await clock.run(over.whenJoined(() => clock.monotonic() - beganAt >= limits.joinAwaitedMs + 100));
  assert.equal(clock.monotonic() - beganAt, limits.joinAwaitedMs + 100, 'it is over');
  await clock.run(over.whenUnread(() => false));
  await clock.run(over.whenJoined(() => false));
  assert.equal(clock.monotonic() - beganAt, limits.readsOutliveSealMs, 'nothing is waited for any more');
});

test('nobody waits for reads of a sealed process whose taking over is over', async () => {
  const over = handOver(standing(2, ['a', 'b'], [other]));
  over.settled();
  const sealSeq = await sealLog(store, seededBytes(2), { logId: other, placement: 3 });
  over.adopt({ ...standing(3, ['a']), removed: [{ logId: other, sealSeq }], logs: ['a'.repeat(30), other] });
  let isOver = false;
  const waited = over.whenUnread(() => isOver);
  const beganAt = clock.monotonic();
  await clock.advance(limits.barrierLookEveryMs);
  isOver = true;

  await clock.run(waited);

  assert.ok(clock.monotonic() - beganAt <= 2 * limits.barrierLookEveryMs);
});

test('reads of a process that had reached the placement before its seal are not waited out', async () => {
  await header(1, 2);
  const over = handOver(standing(2, ['a', 'b'], [other]));
  over.settled();
  const left = standing(3, ['a'], [other]);
  over.adopt(left);
  const ended = over.whenEnded();
  await header(2, 3);
  const sealSeq = await sealLog(store, seededBytes(2), { logId: other, placement: 3 });
  over.adopt({ ...left, version: left.version + 1, others: [], removed: [{ logId: other, sealSeq }] });
  const beganAt = clock.monotonic();

  assert.deepEqual(await clock.run(ended), [{ logId: other, after: 0, through: 1 }]);
  await clock.run(over.whenUnread(() => false));

  assert.ok(clock.monotonic() - beganAt < limits.readsOutliveSealMs);
});

test('who has owned nothing since the last settled placement has only what has come', () => {
  const over = handOver(standing(1, ['b'], [other]));
  over.settled();
  assert.equal(over.ownedAny, false);

  over.adopt(standing(2, ['a', 'b'], [other]));
  assert.equal(over.ownedAny, false);

  over.settled();
  assert.equal(over.ownedAny, true);
});

test('what left and came back between two settlements has come', () => {
  const over = handOver(standing(1, ['a']));
  over.settled();
  over.adopt(standing(2, ['a', 'b'], [other]));
  over.adopt(standing(3, ['a'], [other]));

  assert.equal(over.hasCome(moving), true);
  assert.equal(over.nothingHasCome, false);
});
