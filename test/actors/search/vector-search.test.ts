import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withDeleted } from '../../../actors/storage/tombstones.ts';
import type { VectorConfig } from '../../../protocol/namespace.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { contextOf, row, search, snapshotOfRows } from '../../support/query-context.ts';
import { seededRandom } from '../../support/segments.ts';

const seed = Number(process.env.TIDEBASE_TEST_SEED ?? 60);
const dims = 4;

interface NaiveRow {
  readonly sequence: number;
  readonly text: string | null;
  readonly vector: Float32Array | null;
}

/** Vectors of a few small numbers, so that many are equally far, and some are zeros. */
function randomRows(random: () => number, count: number): NaiveRow[] {
  const numbers = [-1, 0, 0, 0.5, 2];
  return Array.from({ length: count }, (_, at) => {
    const vector = Float32Array.from({ length: dims }, () => numbers[Math.floor(random() * 5)] ?? 0);
    return {
      sequence: at + 1,
      text: random() < 0.2 ? null : `${random() < 0.3 ? 'a tide' : 'a calm'} of ${at}`,
      vector: random() < 0.2 ? null : vector,
    };
  });
}

function naiveDistance({ metric }: VectorConfig, a: readonly number[], b: readonly number[]): number {
  const sum = (term: (i: number) => number) => a.reduce((total, _, i) => total + term(i), 0);
  if (metric === 'euclidean') return Math.sqrt(sum((i) => ((a[i] ?? 0) - (b[i] ?? 0)) ** 2));
  const squares = sum((i) => (a[i] ?? 0) ** 2) * sum((i) => (b[i] ?? 0) ** 2);
  const cosine = squares === 0 ? 0 : sum((i) => (a[i] ?? 0) * (b[i] ?? 0)) / Math.sqrt(squares);
  return 1 - Math.max(-1, Math.min(1, cosine));
}

const metaOf = (sequence: number) => sequence % 3;

async function setUp(metric: VectorConfig['metric'], count: number) {
  const random = seededRandom(seed);
  const rows = randomRows(random, count);
  const made = await snapshotOfRows(rows.map(({ sequence, text, vector }) => row(sequence, text, vector)));
  const deleted = [3, 7, 8].filter((at) => at < count / 2);
  const [segment] = made.snapshot.segments;
  assert.ok(segment !== undefined);
  const segments = [{ ...segment, tombstones: withDeleted(segment.tombstones, deleted) }];
  const live = rows.filter((_, at) => !deleted.includes(at));
  const snapshot = { ...made.snapshot, segments };
  const ask = (body: object) =>
    search({ ...contextOf(snapshot, new FakeClock()), vector: { dims, metric } }, body);
  return { random, live, ask };
}

for (const metric of ['cosine', 'euclidean'] as const) {
  test(`${metric}: the answer is that of sorting all that match by their distance`, async (t) => {
    t.diagnostic(`seed ${seed}`);
    const { random, live, ask } = await setUp(metric, 300);
    for (let n = 0; n < 60; n++) {
      const query = Array.from({ length: dims }, () => Math.round(random() * 8 - 4) / 2);
      const limit = 1 + Math.floor(random() * 40);
      const q = random() < 0.5 ? 'TIDE' : '';
      const filter = random() < 0.5 ? { n: 1 } : undefined;
      const { hits, next } = await ask({ vector: query, limit, q, ...(filter && { filter }) });

      const expected = live
        .filter(({ text }) => q === '' || (text ?? '').includes('tide'))
        .filter(({ sequence }) => filter === undefined || metaOf(sequence) === 1)
        .flatMap(({ sequence, vector }) =>
          vector === null
            ? []
            : [{ sequence, distance: naiveDistance({ dims, metric }, query, [...vector]) }],
        )
        .sort((a, b) => a.distance - b.distance || b.sequence - a.sequence)
        .slice(0, limit);
      assert.deepEqual(
        hits.map(({ id, distance }: { id: string; distance: number }) => [id, distance]),
        expected.map(({ sequence, distance }) => [`d${sequence}`, distance]),
      );
      for (const { score, distance, match } of hits) {
        assert.equal(score, metric === 'cosine' ? 1 - distance : 1 / (1 + distance));
        assert.equal(match, q === '' ? '' : 'tide');
      }
      assert.equal(next, '');
    }
  });
}

test('ranks of text and vector are fused: both lists count, and who has no vector is there too', async () => {
  const { live, ask } = await setUp('euclidean', 60);
  const query = [0.5, 0, 2, -1];
  const { hits } = await ask({ vector: query, q: 'tide', rank: 'rrf', limit: 10 });

  const matching = live.filter(({ text }) => (text ?? '').includes('tide')).reverse();
  const near = matching
    .flatMap(({ sequence, vector }) =>
      vector === null
        ? []
        : [{ sequence, distance: naiveDistance({ dims, metric: 'euclidean' }, query, [...vector]) }],
    )
    .sort((a, b) => a.distance - b.distance || b.sequence - a.sequence);
  const placeIn = (list: readonly { readonly sequence: number }[], sequence: number) => {
    const at = list.findIndex((each) => each.sequence === sequence);
    return at < 0 ? 0 : 1 / (61 + at);
  };
  const expected = matching
    .map(({ sequence }) => ({ sequence, score: placeIn(matching, sequence) + placeIn(near, sequence) }))
    .sort((a, b) => b.score - a.score || b.sequence - a.sequence)
    .slice(0, 10);
  assert.deepEqual(
    hits.map(({ id, score }: { id: string; score: number }) => [id, score]),
    expected.map(({ sequence, score }) => [`d${sequence}`, score]),
  );
});

test('hits that do not fit are cut from the end, the nearest stays', async () => {
  const { ask } = await setUp('cosine', 60);
  const all = await ask({ vector: [1, 0, 0, 0], limit: 40 });
  const cut = await ask({ vector: [1, 0, 0, 0], limit: 40, max_bytes: 3_000 });

  assert.equal(cut.truncated, true);
  assert.ok(cut.hits.length > 2 && cut.hits.length < all.hits.length);
  assert.deepEqual(cut.hits, all.hits.slice(0, cut.hits.length));
  assert.equal(all.truncated, undefined);
});
