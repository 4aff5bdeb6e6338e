/**
 * What a request to a namespace that nobody has open reads, and in how many rounds, with authentication warm. Rounds are
 * measured by a clock (test/support/cost.ts), so a read that waits for another one is found wherever it was written.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { MemoryObjectStore } from '../../src/object-store/memory-object-store.ts';
import {
  type Cost,
  coldProcess,
  costOf,
  documentsOf,
  firstProcess,
  flush,
  namespace,
} from '../support/cost.ts';
import type { FakeClock } from '../support/fake-clock.ts';
import type { Answer, InProcess } from '../support/in-process.ts';

interface Shape {
  readonly name: string;
  /** Documents of each segment, oldest first; none: the manifest's tail holds them. */
  readonly segments: readonly number[];
}

const tailOnly: Shape = { name: 'a small namespace', segments: [] };
const compacted: Shape = { name: 'a compacted namespace', segments: [160] };
const uneven: Shape = { name: 'a namespace of three segments', segments: [40, 30, 20] };
const documentBytes = 30_000;
const oldest = 'a3';

interface World {
  readonly process: InProcess;
  readonly clock: FakeClock;
  readonly store: MemoryObjectStore;
}

async function stored(shape: Shape): Promise<World> {
  const world = await firstProcess();
  const { process, clock } = world;
  const put = async (prefix: string, count: number, bytes: number) => {
    await clock.run(process.put(namespace, documentsOf(prefix, count, bytes)));
    await flush(process, clock);
  };
  if (shape.segments.length === 0) await put('a', 5, 1_000);
  for (const [at, count] of shape.segments.entries()) await put('abc'[at] ?? '', count, documentBytes);
  return world;
}

type Ask = (process: InProcess) => Promise<Answer>;

/** The first request after a restart, and the same one again. */
async function cold(shape: Shape, ask: Ask): Promise<{ readonly first: Cost; readonly again: Cost }> {
  const { process, clock, store } = await stored(shape);
  const opened = await coldProcess(process, clock, store);
  const first = await costOf(opened, clock, () => ask(opened));
  const again = await costOf(opened, clock, () => ask(opened));
  return { first, again };
}

const read: Ask = (process) => process.get(namespace, oldest);
const readMissing: Ask = (process) => process.get(namespace, 'no-such-document');
const list: Ask = (process) => process.search(namespace, { limit: 20 });
const search: Ask = (process) => process.search(namespace, { q: `common ${oldest}.` });
const count: Ask = (process) => process.count(namespace, { q: 'common' });
const filtered: Ask = (process) => process.search(namespace, { q: 'common', filter: { n: 3 } });
const onlyFiltered: Ask = (process) => process.search(namespace, { filter: { n: { gte: 3, lt: 4 } } });
const unfulfilled: Ask = (process) => process.count(namespace, { filter: { n: -1 } });
const replace: Ask = (process) => process.put(namespace, [{ id: oldest, text: 'another one' }]);

function assertCold({ first, again }: { readonly first: Cost; readonly again: Cost }, status = 200): void {
  assert.equal(first.answer.status, status);
  assert.equal(again.answer.status, status);
  if (status !== 200) return;
  assert.equal(first.answer.body.temperature, 'cold');
  assert.equal(first.answer.body.store_gets, first.gets);
  assert.equal(again.answer.body.temperature, 'warm');
  assert.equal(again.answer.body.store_gets, 0);
}

test('a query that reads from the object store is cold, however warm the namespace was', async () => {
  const { process: before, clock, store } = await stored(compacted);
  const process = await coldProcess(before, clock, store);
  const opened = await costOf(process, clock, () => read(process));

  const counted = await costOf(process, clock, () => count(process));
  const again = await costOf(process, clock, () => count(process));

  for (const { answer, gets } of [opened, counted]) {
    assert.ok(gets > 0);
    assert.deepEqual([answer.body.temperature, answer.body.store_gets], ['cold', gets]);
  }
  assert.deepEqual([again.answer.body.temperature, again.answer.body.store_gets], ['warm', 0]);
});

for (const shape of [tailOnly, compacted, uneven]) {
  const segmentCount = shape.segments.length;
  const inSegments = segmentCount > 0;

  describe(shape.name, () => {
    test('a cold document read waits for the manifest, the ids and its block', async () => {
      const costs = await cold(shape, read);

      assertCold(costs);
      assert.equal(costs.first.rounds, inSegments ? 3 : 1);
      assert.equal(costs.first.gets, inSegments ? 2 + segmentCount : 1);
      assert.deepEqual([costs.again.rounds, costs.again.gets], [0, 0]);
    });

    test('a cold read of a document that is not there reads no block', async () => {
      const costs = await cold(shape, readMissing);

      assertCold(costs, 404);
      assert.equal(costs.first.rounds, inSegments ? 2 : 1);
      assert.equal(costs.first.gets, 1 + segmentCount);
      assert.deepEqual([costs.again.rounds, costs.again.gets], [0, 0]);
    });

    test('a cold search reads in at most four rounds, and none when it is repeated', async () => {
      const costs = await cold(shape, search);

      assertCold(costs);
      assert.deepEqual(
        costs.first.answer.body.hits.map((hit: { id: string }) => hit.id),
        [oldest],
      );
      assert.ok(costs.first.rounds <= (inSegments ? 4 : 1), `${costs.first.rounds} rounds`);
      assert.ok(costs.first.gets <= 12, `${costs.first.gets} reads`);
      assert.deepEqual([costs.again.rounds, costs.again.gets], [0, 0]);
    });

    test('a cold count of what all documents hold costs at most a round more than a search', async () => {
      const costs = await cold(shape, count);

      assertCold(costs);
      assert.equal(costs.first.answer.body.count, shape.segments.reduce((sum, n) => sum + n, 0) || 5);
      // All blocks are candidates: what is read ahead takes one round, the rest another.
      assert.ok(costs.first.rounds <= (inSegments ? 5 : 1), `${costs.first.rounds} rounds`);
    });

    test('a cold search with a filter reads in at most four rounds, and of documents only what passes', async () => {
      for (const ask of [filtered, onlyFiltered]) {
        const costs = await cold(shape, ask);

        assertCold(costs);
        assert.equal(costs.first.answer.body.hits.length, Math.max(1, segmentCount));
        assert.ok(costs.first.rounds <= (inSegments ? 4 : 1), `${costs.first.rounds} rounds`);
        const segmentGets = ask === filtered ? 6 : 4;
        assert.ok(costs.first.gets <= 1 + segmentCount * segmentGets, `${costs.first.gets} reads`);
        // A block a segment, of the forty that the largest has.
        assert.ok(costs.first.answer.body.store_bytes < (1 + segmentCount) * 6 * documentBytes);
        assert.deepEqual([costs.again.rounds, costs.again.gets], [0, 0]);
      }
    });

    test('a cold count of what no document can pass reads indexes and nothing else', async () => {
      const costs = await cold(shape, unfulfilled);

      assertCold(costs);
      assert.equal(costs.first.answer.body.count, 0);
      assert.ok(costs.first.rounds <= (inSegments ? 2 : 1), `${costs.first.rounds} rounds`);
      assert.ok(costs.first.gets <= 1 + 2 * segmentCount, `${costs.first.gets} reads`);
    });

    test('a cold listing reads the blocks of its page and no more', async () => {
      const costs = await cold(shape, list);

      assertCold(costs);
      assert.equal(costs.first.rounds, inSegments ? 3 : 1);
      // A block holds four of these documents, and a page looks for one document more.
      assert.ok(
        costs.first.answer.body.store_bytes < 30 * documentBytes,
        costs.first.answer.body.store_bytes,
      );
      assert.ok(costs.first.gets <= 3 + segmentCount, `${costs.first.gets} reads`);
    });

    test('a write that replaces a document of a cold namespace looks it up beside its own PUT', async () => {
      const costs = await cold(shape, replace);

      assert.equal(costs.first.answer.status, 200);
      // The manifest first; then the log's PUT, which takes one round, beside the ids and the block.
      assert.equal(costs.first.rounds, inSegments ? 3 : 2);
      assert.equal(costs.first.gets, inSegments ? 2 + segmentCount : 1);
      assert.deepEqual([costs.again.rounds, costs.again.gets], [1, 0]);
    });
  });
}
