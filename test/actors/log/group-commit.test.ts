import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { appendToSlot } from '../../../actors/log/append.ts';
import { type AppendOptions, AppendRefused, GroupCommit } from '../../../actors/log/group-commit.ts';
import { type LogPosition, replayLog } from '../../../actors/log/replay.ts';
import { sealLog } from '../../../actors/log/seal.ts';
import { limits } from '../../../protocol/limits.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { paths } from '../../../src/object-store/paths.ts';
import {
  decodeLogObject,
  encodeLogObject,
  type LogObject,
  type RecordHead,
} from '../../../src/stored/log-object.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { FaultyObjectStore, gate, randomFaults } from '../../support/faulty-object-store.ts';
import { quiet, seededBytes } from '../../support/in-process.ts';
import { seededRandom } from '../../support/segments.ts';

const logId = 'l'.repeat(30);
const MiB = 1024 * 1024;
const commitMs = 250;

let clock: FakeClock;
let truth: MemoryObjectStore;
let store: FaultyObjectStore;
let commit: GroupCommit;
let stored: string[];
let ended: number;

beforeEach(() => {
  clock = new FakeClock();
  truth = new MemoryObjectStore();
  store = new FaultyObjectStore(truth, clock);
  stored = [];
  ended = 0;
  commit = new GroupCommit(
    { store, clock, random: seededBytes(1), logger: quiet },
    { logId, placement: 1 },
    {
      owners: { placement: 1, servers: ['a'], self: 'a' },
      commitMs,
      onStored: (record, { slot, index }) =>
        stored.push(`${record.namespaceId}${record.version}@${slot}.${index}`),
      onGroupStored: () => {},
      onSealed: () => ended++,
    },
  );
});

function head(target: string, version: number): RecordHead {
  return { tenantId: 1, namespace: 'n', namespaceId: target, version, blob: null, detail: null };
}

const payload = (bytes: number, fill = 1) => new Uint8Array(bytes).fill(fill);

interface Outcome {
  position: LogPosition | null;
  refusal: string | null;
}

/** What became of an append, without waiting for it. */
function append(
  target: string,
  version: number,
  bytes = 10,
  epoch = 1,
  options: AppendOptions = {},
): Outcome {
  const outcome: Outcome = { position: null, refusal: null };
  commit.append(head(target, version), payload(bytes, version), epoch, options).then(
    (position) => {
      outcome.position = position;
    },
    (error: unknown) => {
      assert.ok(error instanceof AppendRefused, String(error));
      outcome.refusal = error.refusal;
    },
  );
  return outcome;
}

const slotOf = ({ position }: Outcome): number | null => position?.slot ?? null;

function appendUrgent(target: string, version: number, owner = 1): Outcome {
  const share = { owner, tenant: owner, weight: 1 };
  return append(target, version, 10, 1, { share, isUrgent: true });
}

async function slot(slot: number): Promise<LogObject | null> {
  const found = await truth.get(paths.logObject(logId, slot));
  return found === null ? null : decodeLogObject(found.bytes, 'slot');
}

async function replayed(through: number): Promise<string[]> {
  const seen: string[] = [];
  for await (const record of replayLog(truth, { logId, after: 0, through }))
    seen.push(`${record.head.namespaceId}${record.head.version}`);
  return seen;
}

const logPuts = () => store.calls.filter((c) => c.operation === 'create' && /\/\d{20}$/.test(c.key)).length;

test('the first write after idle is sent at once, the next group when commitMs have passed', async () => {
  const first = append('a', 1);
  await clock.advance(2);
  assert.equal(first.position?.slot, 1);

  const second = append('a', 2);
  const third = append('b', 1);
  await clock.advance(commitMs - 5);
  assert.deepEqual(second, { position: null, refusal: null });
  await clock.advance(10);

  assert.deepEqual(second.position, { logId, slot: 2, index: 0 });
  assert.deepEqual(third.position, { logId, slot: 2, index: 1 });
  assert.equal(logPuts(), 2);
});

test('after idle again nothing waits for commitMs', async () => {
  append('a', 1);
  await clock.advance(5_000);

  const later = append('a', 2);
  await clock.advance(2);

  assert.equal(later.position?.slot, 2);
});

test('an urgent record has its group sent at once, with what else waits, and the next one comes in its time after that', async () => {
  append('a', 1);
  await clock.advance(10);
  const waiting = append('b', 1);
  await clock.advance(40);

  const urgent = appendUrgent('c', 1);
  await clock.settle();
  assert.deepEqual([slotOf(waiting), slotOf(urgent)], [2, 2]);

  const next = append('b', 2);
  await clock.advance(commitMs - 5);
  assert.equal(slotOf(next), null);
  await clock.advance(5);
  assert.equal(slotOf(next), 3);
});

test('an urgent record that comes while a group is on its way is sent right after it', async () => {
  const landing = gate();
  store.plan = () => ({ until: landing.opened });
  append('a', 1);
  await clock.advance(10);
  const urgent = appendUrgent('b', 1);
  await clock.advance(50);
  assert.equal(slotOf(urgent), null);

  store.plan = () => undefined;
  landing.open();
  await clock.settle();
  assert.equal(slotOf(urgent), 2);
});

test('an owner has so many groups sent early and no more, nor have all owners together: then they wait as others do', async () => {
  const { earlyGroupsOfOwnerAtOnceMax: ofOne, earlyGroupsAtOnceMax: ofAll } = limits;
  const seconds = 30;
  // Asks all the time, each time between two groups, and counts the groups.
  const groupsOf = async (owners: number) => {
    const before = logPuts();
    for (let ms = 0; ms < seconds * 1_000; ms += 10) {
      const owner = 10 + ((ms / 10) % owners);
      appendUrgent(`${owners}`, ms, owner);
      await clock.advance(10);
    }
    return logPuts() - before;
  };
  const ordinary = (seconds * 1_000) / commitMs;

  const one = await groupsOf(1);
  const ofOneMax = ofOne + seconds * limits.earlyGroupsOfOwnerPerSecond;
  assert.ok(one > ofOneMax && one <= ordinary + ofOneMax, `${one} groups of one owner`);

  await clock.advance(60_000);
  const many = await groupsOf(50);
  const ofAllMax = ofAll + seconds * limits.earlyGroupsPerSecond;
  assert.ok(many > one && many <= ordinary + ofAllMax, `${many} groups of fifty owners`);
});

test('a steady stream of records does not put the group off', async () => {
  append('a', 1);
  await clock.advance(1_000);
  const began = clock.monotonic();
  const outcomes = [];

  for (let version = 2; version < 202; version++) {
    outcomes.push(append('a', version));
    await clock.advance(1);
  }

  assert.ok(outcomes[0]?.position, 'the first record of the stream was stored while the stream went on');
  const objects = logPuts();
  assert.ok(objects >= 2, `${objects} objects after ${clock.monotonic() - began} ms`);
});

test('records of a target enter the log in the order of their submission', async () => {
  const random = seededRandom(3);
  const versions = new Map<string, number>();
  for (let i = 0; i < 300; i++) {
    const target = 'abcd'[Math.floor(random() * 4)] ?? 'a';
    const version = (versions.get(target) ?? 0) + 1;
    versions.set(target, version);
    const large = random() < 0.03;
    append(target, version, large ? limits.logRecordInlineBytesMax + 1 : Math.floor(random() * 100_000));
    if (random() < 0.2) await clock.advance(random() * 100);
  }
  await clock.run(commit.whenIdle());

  const seen = await replayed(commit.lastSlot);

  assert.equal(seen.length, 300);
  for (const [target, last] of versions) {
    const own = seen.filter((name) => name.startsWith(target)).map((name) => Number(name.slice(1)));
    assert.deepEqual(
      own,
      Array.from({ length: last }, (_, i) => i + 1),
    );
  }
  assert.deepEqual(
    stored.map((name) => name.slice(0, name.indexOf('@'))),
    seen,
  );
});

test('a group is sent at once when it holds 4 MB, and holds no more', async () => {
  append('a', 1);
  await clock.advance(2);
  const large = Array.from({ length: 5 }, (_, i) => append('a', i + 2, 1.5 * MiB));

  await clock.settle();

  assert.deepEqual(
    large.map((outcome) => outcome.position?.slot),
    [2, 2, 3, 3, undefined],
  );
  await clock.run(commit.whenIdle());
  assert.equal(large[4]?.position?.slot, 4);
});

test('a record over 4 MB is a blob, and later records of its target wait behind it', async () => {
  const blobStored = gate();
  store.plan = ({ key }) => (key.includes('/blob/') ? { until: blobStored.opened } : undefined);
  const bytes = limits.logRecordInlineBytesMax + 1;
  const large = append('a', 1, bytes);
  const behind = append('a', 2);
  const largeToo = append('a', 3, bytes);
  const behindBoth = append('a', 4);
  const other = append('b', 1);
  await clock.advance(1_000);
  assert.ok(other.position);
  assert.equal(large.position ?? behind.position ?? largeToo.position ?? behindBoth.position, null);

  blobStored.open();
  await clock.run(commit.whenIdle());

  const sizes: number[] = [];
  for await (const record of replayLog(truth, { logId, after: 0, through: commit.lastSlot }))
    sizes.push(record.payload.length);
  assert.deepEqual(await replayed(commit.lastSlot), ['b1', 'a1', 'a2', 'a3', 'a4']);
  assert.deepEqual(sizes, [10, bytes, 10, bytes, 10]);
});

test('a blob that the store does not take is given up, and what waits behind it: nothing was written', async () => {
  store.plan = ({ key }) => (key.includes('/blob/') ? 'drop-before-apply' : undefined);
  const large = append('a', 1, limits.logRecordInlineBytesMax + 1);
  const behind = append('a', 2);
  await clock.advance(120_000);

  const late = append('a', 3);
  const nextEpoch = append('a', 1, 10, 2);
  await clock.run(commit.whenIdle());

  assert.deepEqual(
    [large.refusal, behind.refusal, late.refusal],
    ['not-written', 'not-written', 'not-written'],
  );
  assert.ok(nextEpoch.position);
  assert.deepEqual(await replayed(commit.lastSlot), ['a1']);
});

test('every object names its predecessor', async () => {
  for (let version = 1; version <= 3; version++) {
    append('a', version);
    await clock.advance(commitMs + 5);
  }

  const [first, second, third] = [await slot(1), await slot(2), await slot(3)];

  assert.equal(first?.previousChecksum, 0n);
  assert.equal(second?.previousChecksum, first?.checksum);
  assert.equal(third?.previousChecksum, second?.checksum);
});

test('a slot whose outcome is not known gets the same bytes until it is', async () => {
  const faults = ['drop-before-apply', 'error-after-apply', 'drop-before-apply', undefined] as const;
  let tries = 0;
  store.plan = ({ operation }) => (operation === 'create' ? faults[tries++] : undefined);
  const written = append('a', 1);
  await clock.advance(10);
  const first = await slot(1);
  await clock.run(commit.whenIdle());

  assert.equal(first, null);
  assert.equal(written.position?.slot, 1);
  assert.deepEqual(await replayed(1), ['a1']);
  assert.equal(await slot(2), null);
});

test('a refusal of what is already there as our own is success', async () => {
  store.plan = ({ operation }) => (operation === 'create' ? 'refuse-after-apply' : undefined);

  const written = append('a', 1);
  await clock.run(commit.whenIdle());

  assert.equal(written.position?.slot, 1);
  assert.equal(logPuts(), 1);
});

test('a refused slot that reads as empty is tried again', async () => {
  let creates = 0;
  await truth.putIfAbsent(paths.logObject(logId, 1), [Buffer.from('x')]);
  store.plan = ({ operation }) => {
    if (operation === 'get') void truth.delete(paths.logObject(logId, 1));
    if (operation === 'create') creates++;
    return undefined;
  };

  const written = append('a', 1);
  await clock.run(commit.whenIdle());

  assert.equal(written.position?.slot, 1);
  assert.equal(creates, 2);
});

test('a seal in the slot ends the log: nothing waiting was written, nothing more is taken', async () => {
  append('a', 1);
  await clock.advance(2);
  await sealLog(truth, seededBytes(2), { logId, placement: 2 });
  const inFlight = append('a', 2);
  const large = append('b', 1, limits.logRecordInlineBytesMax + 1);
  const behind = append('b', 2);
  await clock.run(commit.whenIdle());

  const late = append('c', 1);
  await clock.advance(1_000);

  for (const outcome of [inFlight, large, behind, late]) assert.equal(outcome.refusal, 'not-written');
  assert.equal(ended, 1);
  assert.deepEqual(await replayed(1), ['a1']);
});

test('an idle log that looks finds its seal, and nothing where there is none', async () => {
  const first = append('a', 1);
  await clock.advance(commitMs);
  assert.ok(first.position !== null);
  assert.equal(await clock.run(commit.confirmOpen()), true);
  assert.equal(ended, 0);

  await sealLog(truth, seededBytes(2), { logId, placement: 2 });
  assert.equal(await clock.run(commit.confirmOpen()), false);
  assert.equal(await clock.run(commit.confirmOpen()), false);
  const late = append('a', 2);
  await clock.advance(commitMs);

  assert.equal(ended, 1);
  assert.equal(late.refusal, 'not-written');
});

test('a PUT in flight when the log is sealed is answered by the slot it got', async () => {
  const landing = gate();
  store.plan = ({ operation }) => (operation === 'create' ? { until: landing.opened } : undefined);
  const written = append('a', 1);
  await clock.advance(5);
  const sealSeq = await sealLog(truth, seededBytes(2), { logId, placement: 2 });

  landing.open();
  await clock.run(commit.whenIdle());

  assert.equal(sealSeq, 1);
  assert.equal(written.refusal, 'not-written');
});

for (const [what, sealsFirst] of [
  ['comes before the own seal is answered by its slot', false],
  ['comes after it is refused', true],
] as const)
  test(`a PUT on its way while the own process closes its log, which ${what}`, async () => {
    const landing = gate();
    store.plan = ({ operation }) => (operation === 'create' ? { until: landing.opened } : undefined);
    const written = append('a', 1);
    await clock.advance(5);
    commit.close();
    const queued = append('a', 2);
    if (sealsFirst) await sealLog(truth, seededBytes(2), { logId, placement: 2 });

    landing.open();
    await clock.run(commit.whenIdle());

    assert.deepEqual([slotOf(written), written.refusal], sealsFirst ? [null, 'not-written'] : [1, null]);
    assert.equal(queued.refusal, 'not-written');
    assert.equal(ended, 0, 'the own seal is no news');
    if (!sealsFirst) assert.equal(await sealLog(truth, seededBytes(2), { logId, placement: 2 }), 2);
    assert.deepEqual(await replayed(1), sealsFirst ? [] : ['a1']);
  });

test('a PUT that arrived before the seal counts, though its answer was lost and the seal came next', async () => {
  store.plan = ({ operation }) => (operation === 'create' ? 'error-after-apply' : undefined);
  const written = append('a', 1);
  await clock.advance(5);
  const sealSeq = await sealLog(truth, seededBytes(2), { logId, placement: 2 });
  store.plan = () => undefined;

  await clock.run(commit.whenIdle());

  assert.equal(sealSeq, 2);
  assert.equal(written.position?.slot, 1);
});

test('a late seal in a slot that was stored, taken over and collected does not make it "not written"', async () => {
  store.plan = ({ operation }) => (operation === 'create' ? 'error-after-apply' : undefined);
  const written = append('a', 1);
  await clock.advance(5);
  await sealLog(truth, seededBytes(2), { logId, placement: 2 });
  // The successor's flush has the record, its collection empties the slot, and an earlier sealer's PUT arrives at last.
  await truth.delete(paths.logObject(logId, 1));
  const late = { logId, slot: 1, kind: 'seal', placement: 2, previousChecksum: 0n } as const;
  const { bytes } = encodeLogObject({ ...late, batchId: 'ef'.repeat(16) }, []);
  await truth.putIfAbsent(paths.logObject(logId, 1), [bytes]);
  store.plan = () => undefined;

  await clock.run(commit.whenIdle());
  const next = append('a', 2);
  await clock.run(commit.whenIdle());

  assert.equal(written.position?.slot, 1);
  assert.equal(next.refusal, 'not-written');
});

test('past its bound the queue refuses, and everything of that epoch after it', async () => {
  const hold = gate();
  store.plan = ({ operation }) => (operation === 'create' ? { until: hold.opened } : undefined);
  const size = 4 * MiB;
  // One owner alone has half of it.
  const fits = Math.floor(limits.logQueueBytesMax / 2 / (size + 256));
  const taken = Array.from({ length: fits }, (_, i) => append('a', i + 1, size));
  const refused = append('a', fits + 1, 3 * size);
  const after = append('a', fits + 2, 1);
  const other = append('b', 1, 1);
  const nextEpoch = append('a', fits + 1, 1, 2);
  await clock.settle();

  assert.equal(refused.refusal, 'busy');
  assert.equal(after.refusal, 'not-written');

  hold.open();
  await clock.run(commit.whenIdle());
  assert.ok(taken.every((outcome) => outcome.position !== null));
  assert.ok(other.position !== null && nextEpoch.position !== null);
  assert.equal((await replayed(commit.lastSlot)).length, fits + 2);
});

test('an owner who fills the queue leaves room for another, whose record goes with the next group', async () => {
  const attacker = { owner: 1, tenant: 1, weight: 1 };
  const neighbour = { owner: 2, tenant: 2, weight: 1 };
  const hold = gate();
  store.plan = ({ operation }) => (operation === 'create' ? { until: hold.opened } : undefined);
  const refusals: string[] = [];
  for (let i = 1; i <= 100; i++)
    commit
      .append(head('a', i), payload(4 * MiB - 256), 1, { share: attacker })
      .catch((error: AppendRefused) => refusals.push(error.refusal));
  await clock.settle();

  const written = commit.append({ ...head('b', 1), tenantId: 2 }, payload(10), 1, { share: neighbour });
  hold.open();
  const { slot } = await clock.run(written);

  assert.equal(refusals[0], 'busy');
  assert.ok(refusals.length > 60, `${refusals.length} of 100 were refused`);
  assert.ok(slot <= 3, `it went with group ${slot}`);
  await clock.run(commit.whenIdle());
});

test('records of a target keep their order where its owner is learned while some of them wait', async () => {
  const unknown = { owner: -3, tenant: 1, weight: 1 };
  const known = { owner: 7, tenant: 1, weight: 100 };
  // What the unknown owner has written counts against it.
  append('a', 1, MiB, 1, { share: unknown });
  await clock.run(commit.whenIdle());

  const before = [2, 3].map((version) => append('a', version, 10, 1, { share: unknown }));
  const after = [4, 5].map((version) => append('a', version, 10, 1, { share: known }));
  await clock.run(commit.whenIdle());

  assert.deepEqual(stored, ['a1@1.0', 'a2@2.0', 'a3@2.1', 'a4@2.2', 'a5@2.3']);
  assert.ok([...before, ...after].every((outcome) => outcome.position !== null));
  const next = append('a', 6, 10, 1, { share: known });
  await clock.run(commit.whenIdle());
  assert.equal(slotOf(next), 3);
});

test('a refusal of an older epoch, heard late, does not let in what follows a refusal of the newer one', async () => {
  const hold = gate();
  let fails = false;
  store.plan = ({ key }) => {
    if (!key.includes('/blob/')) return undefined;
    return fails ? 'drop-before-apply' : { until: hold.opened };
  };
  const blob = append('a', 1, 5 * MiB, 1);
  await clock.settle();
  const filling = Array.from({ length: limits.logQueueBytesMax / 2 / (4 * MiB) }, (_, i) =>
    append(`f${i}`, 1, 4 * MiB - 256),
  );
  const newer = append('a', 2, 10 * MiB, 2);
  await clock.settle();
  fails = true;
  hold.open();
  await clock.advance(120_000);

  const after = append('a', 3, 10, 2);
  const next = append('a', 2, 10, 3);
  await clock.advance(commitMs * 2);

  assert.ok(blob.position !== null || blob.refusal !== null);
  assert.equal(newer.refusal, 'busy');
  assert.equal(after.refusal, 'not-written');
  assert.ok(next.position);
  assert.ok(filling.some(({ position }) => position !== null));
});

test('waiting for what was submitted ends although others go on writing', async () => {
  const mine = append('a', 1);
  let version = 1;
  let settled = false;
  void commit.whenSettled().then(() => {
    settled = true;
  });

  for (let round = 0; round < 20; round++) {
    append('b', version++);
    await clock.advance(100);
  }

  assert.ok(mine.position);
  assert.equal(settled, true);
});

for (const seed of [1, 2, 3, 4, 5, 6]) {
  test(`with a store that fails by chance nothing is lost, doubled or disordered (seed ${seed})`, async () => {
    const random = seededRandom(seed);
    store.plan = randomFaults(random, 0.4);
    const outcomes: { readonly name: string; readonly outcome: ReturnType<typeof append> }[] = [];
    for (let version = 1; version <= 60; version++) {
      outcomes.push({ name: `a${version}`, outcome: append('a', version) });
      await clock.advance(random() * 200);
    }
    const sealed = random() < 0.7;
    if (sealed) await sealLog(truth, seededBytes(seed), { logId, placement: 2 });
    outcomes.push({ name: 'a61', outcome: append('a', 61) });
    await clock.run(commit.whenIdle(), 3_600_000);

    const end = sealed ? await sealLog(truth, seededBytes(9), { logId, placement: 3 }) : commit.lastSlot + 1;
    const durable = await replayed(end - 1);

    const acknowledged = outcomes.filter(({ outcome }) => outcome.position !== null).map(({ name }) => name);
    assert.deepEqual(durable, acknowledged);
    assert.ok(
      outcomes.every(({ outcome }) => outcome.position !== null || outcome.refusal === 'not-written'),
    );
    assert.equal(ended, sealed ? 1 : 0);
  });
}

test('a slot that holds another writer’s batch is refused loudly: two processes would share a log', async () => {
  const foreign = { logId, slot: 1, kind: 'group', placement: 1, previousChecksum: 0n } as const;
  await truth.putIfAbsent(paths.logObject(logId, 1), [
    encodeLogObject({ ...foreign, batchId: 'ee'.repeat(16) }, []).bytes,
  ]);
  const own = encodeLogObject({ ...foreign, batchId: 'aa'.repeat(16) }, []);

  const appending = appendToSlot(store, clock, quiet, {
    logId,
    slot: 1,
    batchId: 'aa'.repeat(16),
    bytes: own.bytes,
  });

  await assert.rejects(clock.run(appending), /two processes use one log id/);
});
