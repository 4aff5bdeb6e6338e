import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { squaredLength } from '../../../actors/vector/distance.ts';
import { GraphSample } from '../../../actors/vector/graph-sample.ts';
import {
  fitsShape,
  type GraphShape,
  inShape,
  isInSight,
  precisions,
  scaleOf,
} from '../../../actors/vector/graph-shape.ts';
import { type Graph, graphBuilder, viewGraph } from '../../../actors/vector/hnsw.ts';
import { paysForGraphs, planGraphs } from '../../../actors/vector/plan-graphs.ts';
import { scratchFolder, vectorsLike } from '../../support/graphs.ts';
import { seededRandom } from '../../support/segments.ts';

const seed = Number(process.env.TIDEBASE_TEST_SEED ?? 62);
const dims = 16;

const joined = (vectors: readonly Float32Array[]) => Float32Array.from(vectors.flatMap((each) => [...each]));
const blocksOf = (counts: readonly number[]) =>
  counts.map((count, at) => ({ offset: at, length: 1, count, firstRow: at * 100 + 5, kind: 1 as never }));

test('parts of a segment cover all its blocks, each once, as few as fit', () => {
  for (const blocks of [0, 1, 2, 7, 100]) {
    for (const bytesMax of [1, 1_000, 20_000, 1e9]) {
      const places = blocksOf(Array.from({ length: blocks }, (_, at) => 1 + (at % 9)));
      const rowCount = blocks * 100 + 50;
      const parts = planGraphs(places, { dims, rowCount, bytesMax });
      assert.equal(parts.length > 0, blocks > 0);
      let next = 0;
      for (const part of parts) {
        assert.equal(part.firstBlock, next);
        assert.ok(part.endBlock > part.firstBlock);
        assert.equal(part.firstRow, places[part.firstBlock]?.firstRow);
        assert.equal(part.endRow, places[part.endBlock]?.firstRow ?? rowCount);
        next = part.endBlock;
      }
      assert.equal(next, blocks);
      const all = places.reduce((sum, { count }) => sum + count, 0);
      assert.equal(
        parts.reduce((sum, { vectors }) => sum + vectors, 0),
        all,
      );
      if (bytesMax === 1e9) assert.ok(parts.length <= 1);
      if (bytesMax === 1) assert.equal(parts.length, blocks);
    }
  }
});

test('graphs pay for many vectors of many numbers', () => {
  assert.equal(paysForGraphs({ count: 1_000, dims: 1_000 }), true);
  assert.equal(paysForGraphs({ count: 999, dims: 2_000 }), false);
  assert.equal(paysForGraphs({ count: 1_000, dims: 999 }), false);
  assert.equal(paysForGraphs({ count: 0, dims: 0 }), false);
});

test('vectors of cosine have one length, however long they are, and zeros stay zeros', () => {
  for (const precision of precisions) {
    const shape: GraphShape = { dims: 2, metric: 'cosine', precision, scale: 100 };
    for (const size of [1e-38, 1e-3, 1, 3e38]) {
      const [x = 0, y = 0] = inShape(Float32Array.of(3 * (size / 4), size), shape);
      assert.ok(Math.abs(x - 60) < 1e-4 && Math.abs(y - 80) < 1e-4, `of ${size}: ${x} ${y}`);
    }
    assert.deepEqual([...inShape(new Float32Array(4), shape)], [0, 0, 0, 0]);
    const two = inShape(Float32Array.of(1, 0, 0, 1e-20), shape);
    assert.deepEqual([...two], [100, 0, 0, 100]);
  }
});

test('8-bit numbers are rounded, and cut to what a byte holds', () => {
  const shape: GraphShape = { dims: 4, metric: 'euclidean', precision: 'i8', scale: 10 };
  assert.deepEqual([...inShape(Float32Array.of(1.26, -0.34, 1e30, -1e30), shape)], [13, -3, 127, -127]);
});

test('numbers come to a size at which they tell the most, of whatever size they are', () => {
  const random = seededRandom(seed);
  for (const size of [1e-42, 1e-30, 1e-6, 1, 1e6, 1e30, 3e38]) {
    const values = Float32Array.from({ length: 4_000 }, () => (random() - 0.5) * size);
    for (const metric of ['cosine', 'euclidean'] as const) {
      for (const precision of precisions) {
        const scale = scaleOf(values, { dims: 8, metric, precision });
        const shape: GraphShape = { dims: 8, metric, precision, scale };
        const shaped = inShape(values, shape);
        const typical = Math.sqrt(squaredLength(Float32Array.from(shaped)) / shaped.length);
        const [low, high] = precision === 'i8' ? [40, 90] : [0.98, 1.02];
        assert.ok(typical > low && typical < high, `${precision} ${metric} ${size}: ${typical}`);
        const cut = shaped.filter((value) => Math.abs(value) === 127).length;
        assert.ok(precision !== 'i8' || (cut > 0 && cut <= 200), `${cut} of ${size}`);
        assert.ok(fitsShape(shaped, shape) && isInSight(values.subarray(0, 8), shape));
      }
    }
  }
  for (const none of [new Float32Array(), new Float32Array(8)])
    for (const precision of precisions)
      assert.equal(scaleOf(none, { dims: 8, metric: 'euclidean', precision }), 1);
  // Hardly any number is more than zero.
  const sparse = Float32Array.from({ length: 4_000 }, (_, at) => (at === 77 ? 2 : 0));
  assert.equal(scaleOf(sparse, { dims: 8, metric: 'euclidean', precision: 'i8' }), 127 / 2);
});

test('what 16 bits do not hold, and what is too far away to tell, is known', () => {
  const shape: GraphShape = { dims: 2, metric: 'euclidean', precision: 'f16', scale: 1 };
  assert.equal(fitsShape(Float32Array.of(65_504, -65_504), shape), true);
  assert.equal(fitsShape(Float32Array.of(0, -65_520), shape), false);
  assert.equal(fitsShape(Float32Array.of(0, 1e30), { ...shape, precision: 'f32' }), true);
  assert.equal(isInSight(Float32Array.of(1, 2), shape), true);
  assert.equal(isInSight(Float32Array.of(1e3, 0), shape), false);
  assert.equal(isInSight(Float32Array.of(3, 3), { ...shape, precision: 'i8', scale: 20 }), true);
  assert.equal(isInSight(Float32Array.of(9, 9), { ...shape, precision: 'i8', scale: 20 }), false);
  assert.equal(isInSight(Float32Array.of(1e30, 0), { ...shape, metric: 'cosine' }), true);
});

const seen = (vectors: readonly Float32Array[], queries: readonly Float32Array[]) => {
  const sample = new GraphSample(joined(queries), 'euclidean', dims);
  const half = Math.floor(vectors.length / 2);
  const rows = vectors.map((_, row) => row);
  sample.see(rows.slice(0, half), joined(vectors.slice(0, half)));
  sample.see(rows.slice(half), joined(vectors.slice(half)));
  return sample;
};
const named = (rows: readonly number[]) => ({
  rows: Uint32Array.from(rows),
  distances: new Float32Array(rows.length),
});

test('what a graph finds is held against the true neighbours', () => {
  const vectors = vectorsLike(seededRandom(seed), 300, dims);
  const queries = vectors.slice(0, 10);
  const sample = seen(vectors, queries);
  const distance = (a: Float32Array, b: Float32Array) => Math.hypot(...a.map((x, i) => x - (b[i] as number)));
  const truth = (query: Float32Array) =>
    vectors
      .map((vector, row) => ({ row, far: distance(vector, query) }))
      .sort((a, b) => a.far - b.far)
      .map(({ row }) => row);
  const recall = (nearest: Graph['nearest']) => sample.recallOf({ nearest });
  assert.equal(
    recall(() => named([])),
    0,
  );
  assert.equal(
    recall((query) => named(truth(query).slice(100, 126))),
    0,
  );
  assert.equal(
    recall((query, count) => named(truth(query).slice(0, count))),
    1,
  );
  assert.equal(
    recall((query) => named(truth(query).slice(0, 9))),
    0.9,
  );
});

test('among vectors that are all the same any of them will do, but not none', () => {
  const vectors = Array.from({ length: 200 }, () => new Float32Array(dims).fill(2));
  const sample = seen(vectors, vectors.slice(0, 3));
  const recall = (nearest: Graph['nearest']) => sample.recallOf({ nearest });
  assert.equal(
    recall((_, count) => named(Array.from({ length: count }, (_x, at) => 199 - at))),
    1,
  );
  assert.equal(
    recall(() => named([])),
    0,
  );
});

test('a graph that was saved finds the vectors that were added, by their rows', (t) => {
  t.diagnostic(`seed ${seed}`);
  const random = seededRandom(seed);
  const vectors = vectorsLike(random, 500, dims);
  for (const metric of ['cosine', 'euclidean'] as const) {
    for (const precision of precisions) {
      const scale = scaleOf(joined(vectors), { dims, metric, precision });
      const shape: GraphShape = { dims, metric, precision, scale };
      const builder = graphBuilder(shape);
      builder.add([], new Float32Array());
      // Rows with gaps, as where some have no vector.
      const rows = vectors.map((_, at) => at * 3 + 1);
      builder.add(rows.slice(0, 200), inShape(joined(vectors.slice(0, 200)), shape));
      builder.add(rows.slice(200), inShape(joined(vectors.slice(200)), shape));
      assert.equal(builder.count, 500);
      const path = join(scratchFolder, `saved-${metric}-${precision}`);
      builder.save(path);
      const viewed = viewGraph(path, shape, 64);
      for (const [at, query] of vectors.slice(0, 20).entries()) {
        const found = viewed.nearest(query, 10);
        assert.equal(found.rows[0], at * 3 + 1);
        assert.equal(found.rows.length, 10);
        assert.ok((found.distances[0] as number) < 5e-2);
        assert.ok(found.rows.every((row) => row % 3 === 1));
        assert.deepEqual(
          [...found.distances.slice(0, 10)].sort((a, b) => a - b),
          [...found.distances.slice(0, 10)],
        );
      }
      assert.equal(viewed.nearest(vectors[0] as Float32Array, 2_000).rows.length <= 500, true);
    }
  }
});
