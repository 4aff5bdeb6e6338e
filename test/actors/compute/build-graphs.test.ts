import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Metric } from '../../../actors/vector/distance.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import {
  CountingGraphs,
  type GraphedSegment,
  graphedSegment,
  naiveNearest,
  vectorRow,
  vectorsLike,
} from '../../support/graphs.ts';
import { contextOf, search } from '../../support/query-context.ts';
import { seededRandom } from '../../support/segments.ts';

const seed = Number(process.env.TIDEBASE_TEST_SEED ?? 63);
/** Enough that a search asks graphs. */
const count = 800;
const dims = 256;

const rowsOf = (vectors: readonly (Float32Array | null)[]) =>
  vectors.map((vector, at) => vectorRow(at + 1, vector));

/** The recall of whole searches, over queries that lie between vectors of the segment. */
async function recallOf(graphed: GraphedSegment, vectors: readonly Float32Array[], metric: Metric) {
  const graphs = new CountingGraphs(graphed, { dims, metric });
  const snapshot = { version: 1, sequence: 1e6, documents: 0, memtables: [], segments: [graphed.segment] };
  const context = { ...contextOf(snapshot, new FakeClock()), vector: { dims, metric }, graphs };
  const all = vectors.map((vector, at) => ({ sequence: at + 1, vector }));
  let found = 0;
  for (let n = 0; n < 20; n++) {
    const query = Array.from(
      vectors[(n * 61) % vectors.length] as Float32Array,
      (value, i) => (value + 2 * (vectors[n]?.[i] as number)) / 3,
    );
    const truth = naiveNearest(all, query, { metric, limit: 10 });
    const { hits } = await search(context, { vector: query, limit: 10 });
    assert.equal(hits.length, 10);
    const farthest = truth.at(-1)?.distance ?? 0;
    found += hits.filter(({ distance }: { distance: number }) => distance <= farthest).length;
  }
  return { recall: found / 200, asked: graphs.asked };
}

test('graphs have the live vectors by their rows, and count those that they leave out', async (t) => {
  t.diagnostic(`seed ${seed}`);
  const random = seededRandom(seed);
  const all = vectorsLike(random, count, dims);
  const vectors = all.map((vector, row) =>
    row % 5 === 1 ? null : row % 100 === 7 ? new Float32Array(dims) : vector,
  );
  const deleted = vectors.flatMap((_, row) => (row % 10 === 2 || row === 7 ? [row] : []));
  const isGone = new Set(deleted);
  for (const metric of ['cosine', 'euclidean'] as const) {
    const graphed = await graphedSegment(rowsOf(vectors), { metric, deleted });
    const [built] = graphed.built;
    assert.equal(graphed.built.length, 1);
    assert.ok(built !== undefined);
    const live = vectors.flatMap((vector, row) => (vector === null || isGone.has(row) ? [] : [row]));
    const zeros = live.filter((row) => row % 100 === 7).length;
    const { graph } = built;
    assert.equal(graph.leftOut, metric === 'cosine' ? zeros : 0);
    assert.equal(graph.count + graph.leftOut, live.length);
    assert.deepEqual([graph.firstRow, graph.endRow], [0, count]);
    const [opened] = await new CountingGraphs(graphed, { dims, metric }).open();
    const isLive = new Set(live);
    for (const row of [0, 3, 55, 790]) {
      const { rows } = (opened as NonNullable<typeof opened>).graph.nearest(all[row] as Float32Array, 50);
      assert.equal(rows[0], row);
      assert.ok(rows.every((each) => isLive.has(each)));
    }
    const stored = await graphed.store.get(`ns/ab/n/graph/${graph.id}`);
    assert.equal(stored?.bytes.length, graph.size);
  }
});

test('a segment without vectors, or without any that lives, has no graph', async () => {
  const none = await graphedSegment(rowsOf([null, null]), { metric: 'cosine' });
  assert.deepEqual(none.built, []);
  const vectors = vectorsLike(seededRandom(seed), 20, dims);
  const deleted = vectors.map((_, row) => row);
  assert.deepEqual((await graphedSegment(rowsOf(vectors), { metric: 'cosine', deleted })).built, []);
  const zeros = vectors.map(() => new Float32Array(dims));
  assert.deepEqual((await graphedSegment(rowsOf(zeros), { metric: 'cosine' })).built, []);
});

test('vectors that are all the same, or nearly, never fail: searches are right, with a graph or without', async (t) => {
  const random = seededRandom(seed);
  const one = vectorsLike(random, 1, dims)[0] as Float32Array;
  for (const metric of ['cosine', 'euclidean'] as const) {
    for (const difference of [0, 1e-6, 1e-3]) {
      const vectors = vectorsLike(random, count, dims).map((vector) =>
        vector.map((value, i) => (one[i] as number) + difference * value),
      );
      const graphed = await graphedSegment(rowsOf(vectors), { metric });
      const { recall, asked } = await recallOf(graphed, vectors, metric);
      const precision = graphed.built[0]?.graph.precision ?? 'no graph';
      t.diagnostic(`seed ${seed}, ${metric}, differing by ${difference}: ${precision}, recall ${recall}`);
      assert.equal(asked > 0, graphed.built.length > 0);
      assert.ok(recall >= 0.9, `${metric} ${difference}: ${recall}`);
    }
  }
});

test('euclidean graphs find vectors of huge and of tiny numbers, and of one size among another', async (t) => {
  const recalls: number[] = [];
  for (const sizes of [[1e6], [1e-6], [1e18], [1e-18], [1e6, 1e-6]]) {
    const vectors = vectorsLike(seededRandom(seed), count, dims).map((vector, at) =>
      vector.map((value) => value * (sizes[at % sizes.length] as number)),
    );
    const graphed = await graphedSegment(rowsOf(vectors), { metric: 'euclidean' });
    const { recall } = await recallOf(graphed, vectors, 'euclidean');
    const precision = graphed.built[0]?.graph.precision ?? 'no graph';
    t.diagnostic(`seed ${seed}, of ${sizes}: ${precision}, recall ${recall}`);
    // Threads build a graph in an order of their own: one of them may find a hit or two of a hundred less.
    assert.ok(recall >= 0.95, `${sizes}: ${recall}`);
    recalls.push(recall);
    if (sizes.length === 1) assert.equal(graphed.built.length, 1);
  }
  const mean = recalls.reduce((sum, each) => sum + each, 0) / recalls.length;
  assert.ok(mean >= 0.98, `${mean}`);
});
