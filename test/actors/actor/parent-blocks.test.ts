import assert from 'node:assert/strict';
import { test } from 'node:test';
import { answerNearBlocks, nearPieces, parentBlocks } from '../../../actors/actor/parent-blocks.ts';
import { FreshObjects } from '../../../actors/storage/fresh-objects.ts';
import type { NearBlocks } from '../../../actors/storage/near-blocks.ts';
import { blockKinds } from '../../../actors/storage/segment-format.ts';
import { MemoryBudget } from '../../../actors/thread/memory-budget.ts';
import { limits } from '../../../protocol/limits.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const { nearBlocksBytesMax: bytesMax, nearBlocksPiecesMax: piecesMax, nearBlocksWaitMs: waitMs } = limits;
const placesOf = (...lengths: readonly number[]) =>
  lengths.map((length, at) => ({ offset: at * 1_000, length, kind: blockKinds.documents }));

function asking(
  clock: FakeClock,
  answer: (offsets: readonly number[]) => Promise<readonly (Uint8Array | null)[]>,
  isOnOtherThread = () => true,
): { readonly near: NearBlocks; readonly asked: (readonly number[])[] } {
  const asked: (readonly number[])[] = [];
  const directory = {
    nearBlocks: (_tenantId: number, name: string, wanted: { readonly offsets: readonly number[] }) => {
      assert.equal(name, 'parent');
      asked.push(wanted.offsets);
      return answer(wanted.offsets);
    },
  } as unknown as Parameters<typeof parentBlocks>[0]['directory'];
  const components = { directory, clock, isOnOtherThread };
  return { near: parentBlocks(components, { tenantId: 1, parentName: 'parent' }), asked };
}

test('blocks are asked for in pieces of so many bytes, so many pieces, and none that is larger than a piece', () => {
  const table: readonly [readonly number[], readonly (readonly number[])[]][] = [
    [[], []],
    [[1], [[0]]],
    [
      [bytesMax, 1],
      [[0], [1]],
    ],
    [
      [1, bytesMax - 1, 1],
      [[0, 1], [2]],
    ],
    [[1, bytesMax + 1, 2], [[0, 2]]],
    [[bytesMax + 1], []],
  ];
  for (const [lengths, pieces] of table)
    assert.deepEqual(nearPieces(placesOf(...lengths)), pieces, `${lengths}`);
  const many = nearPieces(placesOf(...Array.from({ length: piecesMax + 5 }, () => bytesMax)));
  assert.equal(many.length, piecesMax);
});

test('what the other thread has is answered in its place, and null for the rest', async () => {
  const clock = new FakeClock();
  const block = new Uint8Array([7]);
  const { near, asked } = asking(clock, async (offsets) =>
    offsets.map((at) => (at === 1_000 ? block : null)),
  );

  assert.deepEqual(await near.read('key', placesOf(5, 6, 7)), [null, block, null]);
  assert.deepEqual(asked, [[0, 1_000, 2_000]]);
});

test('whoever is asked answers from its fresh objects, and from its disk', () => {
  const fresh = new FreshObjects(new MemoryBudget(1e9), new FakeClock());
  fresh.add('new', 1, Buffer.from('0123456789'));
  const warmCache = {
    get: (name: string) => (name === 'old@4' ? Buffer.from('disk') : undefined),
    has: () => false,
    put: () => assert.fail('nothing is put'),
    remove: () => assert.fail('nothing is removed'),
  };
  const answer = (objectKey: string) =>
    answerNearBlocks({ warmCache, fresh }, { objectKey, offsets: [4, 7], lengths: [3, 2] }).map(
      (bytes) => bytes && Buffer.from(bytes).toString(),
    );

  assert.deepEqual(answer('new'), ['456', '78']);
  assert.deepEqual(answer('old'), ['disk', null]);
  assert.deepEqual(answer('unknown'), [null, null]);
});

test('nobody is asked where the parent lives on the same thread or another server', async () => {
  const { near, asked } = asking(
    new FakeClock(),
    async () => assert.fail('asked'),
    () => false,
  );

  assert.deepEqual(await near.read('key', placesOf(5)), [null]);
  assert.deepEqual(asked, []);
});

test('a refusal is no answer, and neither is one that comes too late', async () => {
  const clock = new FakeClock();
  const refused = asking(clock, () => Promise.reject(new Error('the thread is starting')));
  assert.deepEqual(await refused.near.read('key', placesOf(5)), [null]);

  const late = asking(clock, async () => {
    await clock.sleep(waitMs + 1);
    return [new Uint8Array([7])];
  });
  const reading = late.near.read('key', placesOf(5));
  assert.deepEqual(await clock.run(reading), [null]);
});
