import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { GraphSource } from '../../../actors/search/graph-source.ts';
import { emptyReadTally } from '../../../actors/storage/block-fetch.ts';
import type { Snapshot } from '../../../actors/storage/snapshot.ts';
import { withDeleted } from '../../../actors/storage/tombstones.ts';
import { searchableMemtable } from '../../../actors/text/searchable-memtable.ts';
import type { Metric } from '../../../actors/vector/distance.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import {
  CountingGraphs,
  type GraphedSegment,
  graphedSegment,
  type NaiveVector,
  naiveNearest,
  vectorRow,
  vectorsLike,
} from '../../support/graphs.ts';
import { alwaysDue, contextOf, search } from '../../support/query-context.ts';
import { seededRandom, type TestRow } from '../../support/segments.ts';

const seed = Number(process.env.TIDEBASE_TEST_SEED ?? 61);
/** At which looking at all vectors costs more than a graph does. */
const count = 2_000;
const dims = 256;

interface Hit {
  readonly id: string;
  readonly distance: number;
}

/** Whole searches over segments and newer rows of a memtable; each counts whether the graphs were asked. */
function searcher(
  graphed: GraphedSegment,
  { metric, memtableRows = [], source }: { metric: Metric; memtableRows?: TestRow[]; source?: GraphSource },
) {
  const graphs = new CountingGraphs(graphed, { dims, metric });
  const memtable = searchableMemtable();
  for (const { entry, sequence, writtenAt } of memtableRows) memtable.add(entry, 0, sequence, writtenAt);
  const snapshot: Snapshot = {
    version: 1,
    sequence: 1_000_000,
    documents: 0,
    memtables: [{ memtable, rowCount: memtable.rowCount }],
    segments: [graphed.segment],
  };
  const clock = new FakeClock();
  const context = (deadlineMs?: number) => ({
    ...contextOf(snapshot, clock, deadlineMs),
    vector: { dims, metric },
    tally: emptyReadTally(),
    graphs: source ?? graphs,
  });
  const ask = (body: object, deadlineMs?: number) => search(context(deadlineMs), body);
  return { graphs, ask, context };
}

const rowsOf = (vectors: readonly NaiveVector[], metaOf: (sequence: number) => object = () => ({})) =>
  vectors.map(({ sequence, vector }) => vectorRow(sequence, vector, metaOf(sequence)));

const numbered = (vectors: readonly Float32Array[]): NaiveVector[] =>
  vectors.map((vector, at) => ({ sequence: at + 1, vector }));

/** Near some vector of the same kind, as questions are. */
function queriesLike(random: () => number, vectors: readonly NaiveVector[], many: number): number[][] {
  return Array.from({ length: many }, () => {
    const { vector } = vectors[Math.floor(random() * vectors.length)] as NaiveVector;
    const other = vectors[Math.floor(random() * vectors.length)] as NaiveVector;
    return Array.from(vector, (value, i) => value + 0.3 * (other.vector[i] as number));
  });
}

/** How much of what is nearest was found; that distances are right and in order is asserted. */
function recallOf(hits: readonly Hit[], truth: ReturnType<typeof naiveNearest>): number {
  const farthest = truth.at(-1)?.distance ?? 0;
  assert.equal(new Set(hits.map(({ id }) => id)).size, hits.length, 'no document comes twice');
  assert.deepEqual(
    hits.map(({ distance }) => distance),
    hits.map(({ distance }) => distance).sort((a, b) => a - b),
  );
  return truth.length === 0 ? 1 : hits.filter(({ distance }) => distance <= farthest).length / truth.length;
}

const asPairs = (hits: readonly Hit[]) => hits.map(({ id, distance }) => [id, distance]);
const asHits = (truth: ReturnType<typeof naiveNearest>) =>
  truth.map(({ sequence, distance }) => [`d${sequence}`, distance]);

/** The mean over queries, said aloud. */
function assertRecall(t: TestContext, name: string, recalls: readonly number[]): void {
  const mean = recalls.reduce((sum, each) => sum + each, 0) / recalls.length;
  t.diagnostic(`seed ${seed}, ${name}: recall ${mean.toFixed(4)}`);
  assert.ok(mean >= 0.98, `${name}: recall ${mean}`);
}

/** What columns decide, and what they leave to documents. */
const metaOf = (sequence: number) => ({
  m: (sequence * 7) % 100,
  tags: [sequence % 4],
  ...(sequence % 40 < 30 ? {} : { long: `${'x'.repeat(5_000)}${sequence % 4}` }),
});

/** Vectors and their segment, made with the first test that asks for them. */
const worlds = new Map<Metric, Promise<{ vectors: NaiveVector[]; graphed: GraphedSegment }>>();

function worldOf(metric: Metric) {
  const known = worlds.get(metric);
  if (known !== undefined) return known;
  const vectors = numbered(vectorsLike(seededRandom(seed), count, dims));
  const world = graphedSegment(rowsOf(vectors, metaOf), { metric }).then((graphed) => ({ vectors, graphed }));
  worlds.set(metric, world);
  return world;
}

for (const metric of ['cosine', 'euclidean'] as const) {
  test(`${metric}: graphs find what is nearest, with and without a filter, and after deletions`, async (t) => {
    const random = seededRandom(seed + 1);
    const { vectors, graphed } = await worldOf(metric);
    const deleted = vectors.flatMap((_, row) => (random() < 0.2 ? [row] : []));
    for (const gone of [[], deleted]) {
      // Graphs were built before the deletions: they name rows that do not live any more.
      const tombstones = withDeleted(graphed.segment.tombstones, gone);
      const { graphs, ask } = searcher(
        { ...graphed, segment: { ...graphed.segment, tombstones } },
        { metric },
      );
      const isGone = new Set(gone);
      const live = vectors.filter((_, row) => !isGone.has(row));
      for (const percent of [100, 50, 10, 1]) {
        const matching = live.filter(({ sequence }) => metaOf(sequence).m < percent);
        const recalls: number[] = [];
        graphs.asked = 0;
        for (const query of queriesLike(random, vectors, 20)) {
          const limit = 1 + Math.floor(random() * 12);
          const filter = percent === 100 ? {} : { filter: { m: { lt: percent } } };
          const { hits, partial } = await ask({ vector: query, limit, ...filter });
          assert.equal(partial ?? false, false);
          assert.equal(hits.length, Math.min(limit, matching.length));
          for (const { meta, id } of hits) {
            assert.ok(meta.m < percent);
            assert.ok(!isGone.has(Number(id.slice(1)) - 1));
          }
          recalls.push(recallOf(hits, naiveNearest(matching, query, { metric, limit })));
        }
        if (percent >= 50) assert.ok(graphs.asked > 0, `graphs were asked at ${percent} %`);
        assertRecall(t, `${gone.length} deleted, ${percent} %`, recalls);
      }
    }
  });

  test(`${metric}: queries far from all vectors find the nearest of them too`, async (t) => {
    const random = seededRandom(seed + 2);
    const { vectors, graphed } = await worldOf(metric);
    const { graphs, ask } = searcher(graphed, { metric });
    const recalls: number[] = [];
    for (const size of [1e-30, 1e-3, 1, 3, 10, 100, 1e6, 1e12]) {
      for (const near of queriesLike(random, vectors, 5)) {
        const query = near.map((value) => value * size);
        const { hits } = await ask({ vector: query, limit: 10 });
        assert.equal(hits.length, 10);
        const recall = recallOf(hits, naiveNearest(vectors, query, { metric, limit: 10 }));
        assert.ok(recall >= 0.7, `times ${size}: ${recall}`);
        recalls.push(recall);
      }
    }
    assert.ok(graphs.asked > 0);
    assertRecall(t, 'near and far queries', recalls);
  });
}

test('exact answers are those of sorting, and no graph is asked', async () => {
  const { vectors, graphed } = await worldOf('cosine');
  const { graphs, ask } = searcher(graphed, { metric: 'cosine' });
  const none = searcher(graphed, { metric: 'cosine', source: { open: async () => null } });
  for (const query of queriesLike(seededRandom(seed + 3), vectors, 10)) {
    const truth = asHits(naiveNearest(vectors, query, { metric: 'cosine', limit: 20 }));
    assert.deepEqual(asPairs((await ask({ vector: query, limit: 20, exact: true })).hits), truth);
    assert.equal(graphs.asked, 0);
    const without = await none.ask({ vector: query, limit: 20 });
    assert.deepEqual(asPairs(without.hits), truth, 'graphs are not to be had');
  }
});

test('a graph that names too few rows, or none, leaves the page full and right', async () => {
  const { vectors, graphed } = await worldOf('cosine');
  for (const named of [0, 3]) {
    let asked = 0;
    const nearest = () => {
      asked++;
      return { rows: new Uint32Array(named).map((_, at) => at), distances: new Float32Array(named) };
    };
    const source: GraphSource = {
      open: async () => graphed.built.map(({ graph: of }) => ({ graph: { nearest }, of })),
    };
    const { ask } = searcher(graphed, { metric: 'cosine', source });
    const [query = []] = queriesLike(seededRandom(seed + 4), vectors, 1);
    const truth = asHits(naiveNearest(vectors, query, { metric: 'cosine', limit: 10 }));
    assert.deepEqual(asPairs((await ask({ vector: query, limit: 10 })).hits), truth);
    assert.ok(asked > 0 && asked < 10);
  }
});

test('vectors without a direction come where the distance 1 puts them, each document once', async (t) => {
  const random = seededRandom(seed + 5);
  t.diagnostic(`seed ${seed}`);
  // All but a few of one half space, so that a query of the other one finds hardly anything nearer than 1.
  const vectors = numbered(
    vectorsLike(random, count, dims).map((vector, at) => {
      if (at % 300 === 7) return new Float32Array(dims);
      vector[0] = at % 500 === 3 ? -20 : 20;
      return vector;
    }),
  );
  const graphed = await graphedSegment(rowsOf(vectors), { metric: 'cosine' });
  assert.equal(graphed.built.length, 1);
  assert.equal(graphed.built[0]?.graph.leftOut, 7);
  const { graphs, ask } = searcher(graphed, { metric: 'cosine' });
  const query = Array.from({ length: dims }, (_, i) => (i === 0 ? -1 : 0));
  for (const limit of [10, 12, 20]) {
    const truth = asHits(naiveNearest(vectors, query, { metric: 'cosine', limit }));
    assert.deepEqual(asPairs((await ask({ vector: query, limit })).hits), truth, `the nearest ${limit}`);
  }
  assert.ok(graphs.asked > 0);
  const zeros = Array.from({ length: dims }, () => 0);
  const newest = asHits(naiveNearest(vectors, zeros, { metric: 'cosine', limit: 10 }));
  assert.deepEqual(asPairs((await ask({ vector: zeros, limit: 10 })).hits), newest, 'of a query of zeros');
});

test('filters that only documents decide give full pages of documents that pass', async (t) => {
  const random = seededRandom(seed + 6);
  const { vectors, graphed } = await worldOf('cosine');
  const { graphs, ask } = searcher(graphed, { metric: 'cosine' });
  const filters = [
    [{ tags: [[2]] }, (sequence: number) => sequence % 4 === 2],
    [{ long: `${'x'.repeat(5_000)}1` }, (sequence: number) => sequence % 40 >= 30 && sequence % 4 === 1],
  ] as const;
  for (const [filter, passes] of filters) {
    const matching = vectors.filter(({ sequence }) => passes(sequence));
    const recalls: number[] = [];
    for (const query of queriesLike(random, vectors, 5)) {
      const { hits } = await ask({ vector: query, limit: 10, filter });
      assert.equal(hits.length, 10);
      for (const { id } of hits) assert.ok(passes(Number(id.slice(1))), id);
      recalls.push(recallOf(hits, naiveNearest(matching, query, { metric: 'cosine', limit: 10 })));
    }
    assertRecall(t, JSON.stringify(filter).slice(0, 30), recalls);
  }
  assert.ok(graphs.asked > 0);
});

test('others have their turn between two documents that a filter refuses', async () => {
  const { vectors, graphed } = await worldOf('cosine');
  const { context } = searcher(graphed, { metric: 'cosine' });
  const [vector = []] = queriesLike(seededRandom(seed + 6), vectors, 1);
  const asked = context();
  const counted = alwaysDue(asked);

  const { hits } = await search(asked, { vector, limit: 10, filter: { tags: [[2]] } });

  // A quarter of the documents passes.
  assert.equal(hits.length, 10);
  assert.ok(counted.turns >= 30, `${counted.turns} turns`);
});

test('rows of a memtable and of a segment with graphs are one answer', async (t) => {
  const { vectors: older, graphed } = await worldOf('euclidean');
  const random = seededRandom(seed + 7);
  const newer = older.slice(0, 300).map(({ sequence, vector }) => ({
    sequence: count + sequence,
    vector: vector.map((value) => value * 1.01),
  }));
  const vectors = [...older, ...newer];
  const { graphs, ask } = searcher(graphed, { metric: 'euclidean', memtableRows: rowsOf(newer) });
  const recalls: number[] = [];
  let ofMemtable = 0;
  for (const query of queriesLike(random, vectors, 20)) {
    const { hits } = await ask({ vector: query, limit: 10 });
    assert.equal(hits.length, 10);
    ofMemtable += hits.filter(({ id }: Hit) => Number(id.slice(1)) > count).length;
    recalls.push(recallOf(hits, naiveNearest(vectors, query, { metric: 'euclidean', limit: 10 })));
  }
  assert.ok(graphs.asked >= 20);
  assert.ok(ofMemtable > 0 && ofMemtable < 200);
  assertRecall(t, 'memtable and segment', recalls);
});

test('a search whose time is over says that its answer is partial', async () => {
  const { vectors, graphed } = await worldOf('cosine');
  const { ask } = searcher(graphed, { metric: 'cosine' });
  const [query = []] = queriesLike(seededRandom(seed + 8), vectors, 1);
  const { partial, hits } = await ask({ vector: query, limit: 10 }, 0);
  assert.equal(partial, true);
  assert.ok(hits.length <= 10);
});

test('fused ranks whose two orders are found apart are those of walking all documents', async (t) => {
  const random = seededRandom(seed + 9);
  const { vectors, graphed } = await worldOf('cosine');
  const newer = vectors.slice(0, 30).map(({ sequence, vector }) => ({ sequence: count + sequence, vector }));
  const { ask } = searcher(graphed, { metric: 'cosine', memtableRows: rowsOf(newer, metaOf) });
  for (const narrowed of [{}, { filter: { m: { lt: 50 } } }, { filter: { tags: [[2]] } }]) {
    const shared: number[] = [];
    for (const query of queriesLike(random, vectors, 10)) {
      const limit = 1 + Math.floor(random() * 20);
      const body = { vector: query, rank: 'rrf', limit, ...narrowed };
      const walked: { hits: { id: string; score: number }[] } = await ask({ ...body, exact: true });
      const { hits }: typeof walked = await ask(body);
      assert.equal(hits.length, walked.hits.length);
      assert.deepEqual(
        hits.map(({ score }) => score),
        hits.map(({ score }) => score).sort((a, b) => b - a),
      );
      const expected = new Set(walked.hits.map(({ id }) => id));
      shared.push(hits.length === 0 ? 1 : hits.filter(({ id }) => expected.has(id)).length / hits.length);
    }
    assertRecall(t, JSON.stringify(narrowed), shared);
  }
});
