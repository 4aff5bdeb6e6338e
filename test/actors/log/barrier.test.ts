import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { AppendRefused, GroupCommit } from '../../../actors/log/group-commit.ts';
import { replayLog } from '../../../actors/log/replay.ts';
import { sealLog } from '../../../actors/log/seal.ts';
import { limits } from '../../../protocol/limits.ts';
import { type Owners, placementKey } from '../../../protocol/placement.ts';
import { isOwn } from '../../../src/base/owners.ts';
import { MemoryObjectStore } from '../../../src/object-store/memory-object-store.ts';
import { paths } from '../../../src/object-store/paths.ts';
import { decodeLogObject, type LogObject, type RecordHead } from '../../../src/stored/log-object.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { FaultyObjectStore, gate } from '../../support/faulty-object-store.ts';
import { quiet, seededBytes } from '../../support/in-process.ts';

const logId = 'l'.repeat(30);
const commitMs = 250;
const alone: Owners = { placement: 1, servers: ['a'], self: 'a' };
const two: Owners = { placement: 2, servers: ['a', 'b'], self: 'a' };
const names = Array.from({ length: 100 }, (_, at) => `n${at}`);
const ownName = (owners: Owners) => names.find((name) => isOwn(owners, placementKey(1, name))) ?? '';
const movedName = (owners: Owners) => names.find((name) => !isOwn(owners, placementKey(1, name))) ?? '';
const [kept, moved] = [ownName(two), movedName(two)];

let clock: FakeClock;
let truth: MemoryObjectStore;
let store: FaultyObjectStore;
let commit: GroupCommit;
let groups: number;

beforeEach(() => {
  clock = new FakeClock();
  truth = new MemoryObjectStore();
  store = new FaultyObjectStore(truth, clock);
  groups = 0;
  commit = new GroupCommit(
    { store, clock, random: seededBytes(1), logger: quiet },
    { logId, placement: 1 },
    { owners: alone, commitMs, onStored: () => {}, onGroupStored: () => groups++, onSealed: () => {} },
  );
});

/** What became of the write of one document to the namespace, without waiting for it. */
function append(namespace: string, version: number, bytes = 10, epoch = 1): { end: string } {
  const outcome = { end: 'waiting' };
  const head: RecordHead = {
    tenantId: 1,
    namespace,
    namespaceId: namespace,
    version,
    blob: null,
    detail: null,
  };
  commit.append(head, new Uint8Array(bytes), epoch).then(
    ({ slot }) => {
      outcome.end = `in slot ${slot}`;
    },
    (error: unknown) => {
      assert.ok(error instanceof AppendRefused, String(error));
      outcome.end = error.refusal;
    },
  );
  return outcome;
}

/** Every object of the log: its kind, its placement, whose records it has. */
async function log(): Promise<string[]> {
  const found: string[] = [];
  for (let slot = 1; ; slot++) {
    const key = paths.logObject(logId, slot);
    const object = await truth.get(key);
    if (object === null) return found;
    const { kind, placement, records }: LogObject = decodeLogObject(object.bytes, key);
    found.push([kind, placement, ...records.map(({ head }) => head.namespace + head.version)].join(' '));
  }
}

test('an idle log sends its barrier at once, as an object without records that a replay passes over', async () => {
  append(moved, 1);
  await clock.advance(commitMs);
  commit.adopt(two);
  await clock.advance(1);
  append(kept, 1);
  await clock.run(commit.whenIdle());

  assert.deepEqual(await log(), [`group 1 ${moved}1`, 'barrier 2', `group 2 ${kept}1`]);
  assert.equal(groups, 2, 'a barrier is no group');
  const read: string[] = [];
  for await (const { head } of replayLog(truth, { logId, after: 0, through: 3 })) read.push(head.namespace);
  assert.deepEqual(read, [moved, kept]);
});

test('from the barrier on headers say above which slot others need the log, which is asked for once a placement', async () => {
  let asked = 0;
  commit = new GroupCommit(
    { store, clock, random: seededBytes(1), logger: quiet },
    { logId, placement: 1 },
    {
      owners: alone,
      commitMs,
      onStored: () => {},
      onGroupStored: () => {},
      onSealed: () => {},
      othersFloor: (lastSlot, owners) => {
        asked++;
        assert.equal(owners, two);
        return lastSlot - 1;
      },
    },
  );
  append(kept, 1);
  await clock.run(commit.whenIdle());
  append(kept, 2);
  await clock.run(commit.whenIdle());
  commit.adopt(two);
  await clock.run(commit.whenBarred());
  append(kept, 3);
  await clock.run(commit.whenIdle());

  const floors = await Promise.all(
    [1, 2, 3, 4].map(async (slot) => {
      const key = paths.logObject(logId, slot);
      return decodeLogObject((await truth.get(key))?.bytes ?? new Uint8Array(), key).othersFloor;
    }),
  );
  assert.deepEqual(floors, [undefined, undefined, 1, 1]);
  assert.equal(asked, 1);
});

test('what waits for a group and has moved away is refused, and the rest is the barrier', async () => {
  append(kept, 1);
  await clock.advance(2);
  const goes = append(moved, 1);
  const stays = append(kept, 2);
  commit.adopt(two);
  await clock.run(commit.whenIdle());
  const late = append(moved, 2, 10, 2);
  await clock.advance(commitMs);

  assert.deepEqual([goes.end, stays.end, late.end], ['not-written', 'in slot 2', 'not-written']);
  assert.deepEqual(await log(), [`group 1 ${kept}1`, `group 2 ${kept}2`]);
});

test('what waits behind its blob when its namespace moves away is refused, and everything after it', async () => {
  const uploaded = gate();
  store.plan = ({ key }) => (key.includes('/blob/') ? { until: uploaded.opened } : undefined);
  const large = append(moved, 1, limits.logRecordInlineBytesMax + 1);
  const behind = append(moved, 2);
  commit.adopt(two);
  await clock.advance(commitMs);
  assert.deepEqual(await log(), ['barrier 2'], 'the barrier waits for no blob');

  uploaded.open();
  await clock.run(commit.whenIdle());

  assert.deepEqual([large.end, behind.end], ['not-written', 'not-written']);
  assert.deepEqual(await log(), ['barrier 2']);
  assert.equal(commit.waitingBytes, 0);
  assert.equal(commit.blobsOnTheWay.size, 0, 'its blob is collected');
});

test('a group that is on its way keeps its header, and the barrier follows it', async () => {
  const landing = gate();
  store.plan = ({ operation }) => (operation === 'create' ? { until: landing.opened } : undefined);
  const first = append(moved, 1);
  await clock.advance(2);
  const second = append(moved, 2);
  commit.adopt(two);
  landing.open();
  store.plan = () => undefined;
  await clock.run(commit.whenIdle());

  assert.deepEqual([first.end, second.end], ['in slot 1', 'not-written']);
  assert.deepEqual(await log(), [`group 1 ${moved}1`, 'barrier 2']);
});

test('owners that change twice while a group is on its way need one barrier; older ones change nothing', async () => {
  const landing = gate();
  store.plan = ({ operation }) => (operation === 'create' ? { until: landing.opened } : undefined);
  append(kept, 1);
  await clock.advance(2);
  commit.adopt(two);
  commit.adopt({ ...two, placement: 5 });
  commit.adopt({ ...alone, placement: 4 });
  landing.open();
  store.plan = () => undefined;
  await clock.run(commit.whenIdle());

  assert.deepEqual(await log(), [`group 1 ${kept}1`, 'barrier 5']);
  assert.equal(append(moved, 1).end, 'waiting');
  await clock.advance(commitMs);
  assert.deepEqual((await log()).length, 2);
});

test('what moves away and comes back is taken again, in the next epoch of its target', async () => {
  const before = append(moved, 1);
  commit.adopt(two);
  commit.adopt({ ...alone, placement: 3 });
  await clock.run(commit.whenIdle());
  const same = append(moved, 1);
  const next = append(moved, 1, 10, 2);
  await clock.run(commit.whenIdle());

  assert.deepEqual([before.end, same.end, next.end], ['not-written', 'not-written', 'in slot 3']);
  assert.deepEqual(await log(), ['barrier 2', 'barrier 3', `group 3 ${moved}1`]);
});

test('what waits behind its blob while its namespace moves away and comes back is refused, and what follows of its epoch', async () => {
  const uploaded = gate();
  store.plan = ({ key }) => (key.includes('/blob/') ? { until: uploaded.opened } : undefined);
  const large = append(moved, 1, limits.logRecordInlineBytesMax + 1);
  const behind = append(moved, 2);
  commit.adopt(two);
  commit.adopt({ ...alone, placement: 3 });
  const late = append(moved, 3, 10, 1);
  // The next actor on this server begins where the other server has left off.
  const next = append(moved, 3, 10, 2);
  uploaded.open();
  await clock.run(commit.whenIdle());

  assert.deepEqual([large.end, behind.end, late.end], ['not-written', 'not-written', 'not-written']);
  assert.equal(next.end, 'in slot 3');
  assert.deepEqual(await log(), ['barrier 2', 'barrier 3', `group 3 ${moved}3`]);
});

test('what waits for the end of a group while its namespace moves away and comes back is refused', async () => {
  const landing = gate();
  store.plan = ({ operation }) => (operation === 'create' ? { until: landing.opened } : undefined);
  append(kept, 1);
  await clock.advance(2);
  const waits = append(moved, 1);
  commit.adopt(two);
  const meanwhile = append(moved, 1, 10, 2);
  commit.adopt({ ...alone, placement: 3 });
  const same = append(moved, 2);
  landing.open();
  store.plan = () => undefined;
  await clock.run(commit.whenIdle());

  assert.deepEqual([waits.end, meanwhile.end, same.end], ['not-written', 'not-written', 'not-written']);
  assert.deepEqual(await log(), [`group 1 ${kept}1`, 'barrier 3']);
});

test('a barrier that meets the seal of its log is the end, and a sealed log has no barriers', async () => {
  append(kept, 1);
  await clock.advance(commitMs);
  await sealLog(truth, seededBytes(2), { logId, placement: 2 });
  const waits = append(kept, 2);
  commit.adopt(two);
  await clock.advance(commitMs);
  commit.adopt({ ...two, placement: 3 });
  await clock.advance(commitMs);

  assert.equal(waits.end, 'not-written');
  assert.deepEqual(await log(), [`group 1 ${kept}1`, 'seal 2']);
});

test('a server that is not among the owners takes nothing', async () => {
  commit.adopt({ placement: 2, servers: ['b'], self: 'a' });
  const refused = append(kept, 1);
  await clock.advance(commitMs);

  assert.equal(refused.end, 'not-written');
  assert.deepEqual(await log(), ['barrier 2']);
});

test('of many names each belongs to one server, about as many to each, and few move when one joins', () => {
  const keys = Array.from({ length: 3_000 }, (_, at) => placementKey(7, `name ${at}`));
  const ownersOf = (servers: readonly string[]) =>
    keys.map((key) => servers.filter((self) => isOwn({ servers, self }, key)));
  const before = ownersOf(['a', 'b']);
  const after = ownersOf(['a', 'b', 'c']);

  for (const owners of [...before, ...after]) assert.equal(owners.length, 1);
  const ofNewcomer = after.filter(([owner]) => owner === 'c').length;
  assert.ok(ofNewcomer > 850 && ofNewcomer < 1_150, `${ofNewcomer} of 3,000`);
  const movedKeys = keys.filter((_, at) => before[at]?.[0] !== after[at]?.[0]).length;
  assert.equal(movedKeys, ofNewcomer, 'nothing moves between those that stay');
});
