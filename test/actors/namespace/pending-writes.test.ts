import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type LoadedBatch, loadBatch } from '../../../actors/namespace/loaded-batch.ts';
import { PendingWrites } from '../../../actors/namespace/pending-writes.ts';
import { BatchBuilder, documentText } from '../../../actors/storage/document-batch.ts';
import { seededRandom } from '../../support/segments.ts';

function batchOf(docs: readonly [id: string, text: string][], deletes: readonly string[] = []): LoadedBatch {
  const builder = new BatchBuilder();
  for (const [id, text] of docs)
    builder.addDocument({ id, text: Buffer.from(text), meta: null, vector: null });
  for (const id of deletes) builder.addDelete(id);
  return loadBatch(builder.finish());
}

/** The text that the next patch would find; null where it is deleted, undefined where nothing pending names it. */
function textOf(pending: PendingWrites, id: string): string | null | undefined {
  const place = pending.find(id);
  return place ? Buffer.from(documentText(place.buffer, place.offset) ?? '').toString() : place;
}

test('the newest pending write decides, and the one before it where that has left', () => {
  const pending = new PendingWrites();
  const older = batchOf([
    ['a', 'old'],
    ['b', 'old'],
  ]);
  const newer = batchOf([['a', 'new']], ['b']);
  pending.add(older);
  pending.add(newer);

  assert.deepEqual(
    ['a', 'b', 'c'].map((id) => textOf(pending, id)),
    ['new', null, undefined],
  );
  pending.remove(newer);
  assert.deepEqual(
    ['a', 'b'].map((id) => textOf(pending, id)),
    ['old', 'old'],
  );
  pending.remove(older);
  pending.remove(older);
  assert.deepEqual(
    ['a', 'b'].map((id) => textOf(pending, id)),
    [undefined, undefined],
  );
});

test('in one write documents come after deletes, and the last one of an id counts', () => {
  const pending = new PendingWrites();
  pending.add(
    batchOf(
      [
        ['a', 'first'],
        ['a', 'last'],
      ],
      ['a', 'b'],
    ),
  );

  assert.deepEqual(
    ['a', 'b'].map((id) => textOf(pending, id)),
    ['last', null],
  );
});

test('indexing gives way after each write, and a write that leaves or comes meanwhile counts as it should', async () => {
  const pending = new PendingWrites();
  const first = batchOf([['a', '1']]);
  pending.add(first);
  pending.add(batchOf([['b', '2']]));
  let ways = 0;

  await pending.index(async () => {
    if (ways++ > 0) return;
    pending.remove(first);
    pending.add(batchOf([['c', '3']]));
  });

  assert.equal(ways, 2);
  assert.deepEqual(
    ['a', 'b', 'c'].map((id) => textOf(pending, id)),
    [undefined, '2', '3'],
  );
  pending.clear();
  assert.deepEqual(
    ['b', 'c'].map((id) => textOf(pending, id)),
    [undefined, undefined],
  );
});

test('what is found is what a plain map of all pending writes would say', (t) => {
  const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 1e9));
  t.diagnostic(`SEED=${seed}`);
  const random = seededRandom(seed);
  const pending = new PendingWrites();
  const writes: { batch: LoadedBatch; says: Map<string, string | null> }[] = [];
  const someIds = () =>
    Array.from({ length: Math.floor(random() * 4) }, () => `id-${Math.floor(random() * 8)}`);
  for (let step = 0; step < 2_000; step++) {
    if (random() < 0.5) {
      const docs = someIds().map((id): [string, string] => [id, `${step}`]);
      const deletes = someIds();
      const batch = batchOf(docs, deletes);
      pending.add(batch);
      writes.push({
        batch,
        says: new Map<string, string | null>([...deletes.map((id) => [id, null] as const), ...docs]),
      });
    } else if (writes.length > 0) pending.remove((writes.shift() as (typeof writes)[number]).batch);
    if (random() < 0.01) {
      pending.clear();
      writes.length = 0;
    }
    const id = `id-${Math.floor(random() * 8)}`;
    const told = writes.findLast(({ says }) => says.has(id));
    assert.equal(textOf(pending, id), told?.says.get(id), `${id} in step ${step}`);
  }
});
