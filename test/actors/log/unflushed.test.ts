import assert from 'node:assert/strict';
import { test } from 'node:test';
import { UnflushedTargets } from '../../../actors/log/unflushed.ts';
import { seededRandom } from '../../support/segments.ts';

const target = (namespaceId: string) => ({ tenantId: 1, namespace: `name-${namespaceId}`, namespaceId });
const logId = 'l';

test('the floor is the log’s end when everything is flushed', () => {
  const unflushed = new UnflushedTargets();
  assert.equal(unflushed.floor(5), 5);

  unflushed.appended(target('a'), { slot: 6, index: 0, atMs: 0 });
  assert.equal(unflushed.floor(6), 5);

  unflushed.flushed(target('a'), { logId, slot: 6, index: 0 }, 1);
  assert.equal(unflushed.floor(6), 6);
  assert.equal(unflushed.size, 0);
});

test('a slot of which a target has flushed a part is still needed', () => {
  const unflushed = new UnflushedTargets();
  unflushed.appended(target('a'), { slot: 3, index: 0, atMs: 0 });
  unflushed.appended(target('a'), { slot: 3, index: 4, atMs: 0 });

  unflushed.flushed(target('a'), { logId, slot: 3, index: 0 }, 1);

  assert.equal(unflushed.floor(3), 2);
});

test('targets are overdue by the age of their first record or by its distance', () => {
  const unflushed = new UnflushedTargets();
  unflushed.appended(target('old'), { slot: 1, index: 0, atMs: 100 });
  unflushed.appended(target('new'), { slot: 9, index: 0, atMs: 900 });

  const ids = (before: { atMs: number; slot: number }) =>
    unflushed.overdue(before).map((due) => due.namespaceId);

  assert.deepEqual(ids({ atMs: 500, slot: 0 }), ['old']);
  assert.deepEqual(ids({ atMs: 0, slot: 10 }), ['old', 'new']);
  assert.deepEqual(ids({ atMs: 100, slot: 1 }), []);
});

for (const seed of [1, 2, 3]) {
  test(`the floor never passes a record that no manifest contains (seed ${seed})`, () => {
    const random = seededRandom(seed);
    const unflushed = new UnflushedTargets();
    const names = ['a', 'b', 'c'];
    const records: { readonly name: string; readonly slot: number; readonly index: number; safe: boolean }[] =
      [];
    let slot = 1;
    let index = 0;
    for (let step = 0; step < 2_000; step++) {
      const name = names[Math.floor(random() * names.length)] ?? 'a';
      if (random() < 0.5) {
        if (random() < 0.3) [slot, index] = [slot + 1, 0];
        records.push({ name, slot, index, safe: false });
        unflushed.appended(target(name), { slot, index: index++, atMs: step });
      } else {
        const own = records.filter((record) => record.name === name);
        const through = own[Math.floor(random() * own.length)];
        if (through === undefined) continue;
        for (const record of own)
          if (record.slot < through.slot || (record.slot === through.slot && record.index <= through.index))
            record.safe = true;
        unflushed.flushed(target(name), { logId, slot: through.slot, index: through.index }, step);
      }
      const floor = unflushed.floor(slot);
      assert.ok(
        records.every((record) => record.safe || record.slot > floor),
        `step ${step}`,
      );
      if (records.every((record) => record.safe)) assert.equal(floor, slot);
    }
  });
}
