import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { memtableColumns } from '../../../actors/search/memtable-columns.ts';
import { runCount, runSearch } from '../../../actors/search/run-search.ts';
import { ApiError } from '../../../protocol/errors.ts';
import { filterMatches } from '../../../protocol/filter.ts';
import { parseCountBody, parseSearchBody } from '../../../protocol/search.ts';
import { parseJson } from '../../../src/base/json.ts';
import { BusyClock } from '../../support/busy-clock.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { randomFilter, randomMeta } from '../../support/metas.ts';
import { contextOf } from '../../support/query-context.ts';
import { seededRandom } from '../../support/segments.ts';
import { type Written, type WrittenDocument, writtenRows } from '../../support/written-rows.ts';

const seed = Number(process.env.TIDEBASE_TEST_SEED ?? Math.floor(Math.random() * 1e9));
const words = ['tide', 'harbour', 'block', 'fence'];
const dims = 2;
const filtersAsked = 40;

/** More rows in memory than have columns at once, and some behind them that have none. */
const sizes = { segments: [400, 900], frozen: 700, memtable: 4_900, later: 300 };

const bodyOf = (filter: string, more: object) =>
  parseJson(Buffer.from(`{"filter":${filter},${JSON.stringify(more).slice(1)}`), { depthMax: 32 });

async function searched({ snapshot }: Written, filter: string, q: string): Promise<string[]> {
  const body = parseSearchBody(bodyOf(filter, { q, limit: 1000 }));
  const { hits } = JSON.parse(String(await runSearch(contextOf(snapshot, new FakeClock()), body)));
  return hits.map(({ id }: { id: string }) => id);
}

async function counted({ snapshot }: Written, filter: string, more: object) {
  const body = parseCountBody(bodyOf(filter, more));
  return JSON.parse(await runCount(contextOf(snapshot, new FakeClock()), body));
}

/** The nearest by every number, of which many are equal: the newest of them come first. */
async function nearest({ snapshot }: Written, filter: string, vector: readonly number[]): Promise<string[]> {
  const body = parseSearchBody(bodyOf(filter, { vector, limit: 15 }));
  const context = { ...contextOf(snapshot, new FakeClock()), vector: { dims, metric: 'euclidean' as const } };
  return JSON.parse(String(await runSearch(context, body))).hits.map(({ id }: { id: string }) => id);
}

function naiveNearest(matching: readonly WrittenDocument[], vector: readonly number[]): string[] {
  return matching
    .flatMap(({ id, sequence, vector: own }) =>
      own === null
        ? []
        : [{ id, sequence, distance: Math.hypot(...vector.map((x, i) => x - (own[i] ?? 0))) }],
    )
    .sort((a, b) => a.distance - b.distance || b.sequence - a.sequence)
    .slice(0, 15)
    .map(({ id }) => id);
}

describe('filters over memtables and segments with replaced and deleted documents', () => {
  it('find, count and rank what a document-by-document judge finds', async (t) => {
    t.diagnostic(`TIDEBASE_TEST_SEED=${seed}`);
    const random = seededRandom(seed);
    const written = await writtenRows(random, sizes, {
      // Long ones in segments, so that their text indexes have many groups.
      text: (chance, sequence) =>
        `${words.filter(() => chance() < 0.3).join(' ')}${sequence < 1_400 ? ' .'.repeat(700) : ''}`,
      meta: randomMeta,
      vector: (chance) =>
        chance() < 0.3 ? null : Float32Array.from({ length: dims }, () => Math.floor(chance() * 9)),
    });
    assert.ok(written.live.length > 5_000 && written.live.length < 6_500, `${written.live.length} live`);
    let asked = 0;
    while (asked < filtersAsked) {
      const filter = randomFilter(random);
      const q = random() < 0.5 ? '' : (words[Math.floor(random() * words.length)] ?? '');
      let terms: ReturnType<typeof parseSearchBody>['filter'];
      try {
        terms = parseSearchBody(bodyOf(filter, { q })).filter;
      } catch (error) {
        if (error instanceof ApiError) continue;
        throw error;
      }
      asked++;
      const passing = written.live.filter(({ meta }) => filterMatches(terms ?? { terms: [] }, meta));
      const ids = passing.filter(({ text }) => text.includes(q)).map(({ id }) => id);

      const what = `${filter} ${q}`;
      assert.deepEqual(await searched(written, filter, q), ids.slice(0, 1000), what);
      const whole = await counted(written, filter, { q });
      assert.deepEqual([whole.count, whole.ids], [ids.length, ids.slice(0, 10)], what);
      const none = await counted(written, filter, { q, limit: 0 });
      assert.deepEqual([none.count, none.ids], [ids.length, []], what);
      const everywhere = await counted(written, '{}', { q, limit: asked % 3 });
      const withText = written.live.filter(({ text }) => text.includes(q)).map(({ id }) => id);
      assert.deepEqual([everywhere.count, everywhere.ids], [withText.length, withText.slice(0, asked % 3)]);
      const query = [Math.floor(random() * 9), Math.floor(random() * 9)];
      assert.deepEqual(await nearest(written, filter, query), naiveNearest(passing, query), what);
    }
  });

  it('count rows of which columns are sure without reading their documents', async () => {
    const written = await writtenRows(seededRandom(5), sizes, {
      text: () => 'tide',
      meta: (chance) =>
        JSON.stringify({
          level: chance() < 0.25 ? 'error' : 'info',
          long: 'y'.repeat(chance() < 0.01 ? 1_100 : 3),
        }),
    });
    const readers = written.snapshot.segments.map(({ reader }) => reader);
    const blocksAtHand = () =>
      readers.flatMap((reader) =>
        Array.from({ length: reader.blockCount ?? 0 }, (_, at) => reader.bytesAtHand(at)),
      );
    const errors = written.live.filter(({ meta }) => meta.level === 'error').length;
    const long = written.live.filter(({ meta }) => String(meta.long).length > 1_000).length;

    assert.equal((await counted(written, '{"level":"error"}', { limit: 0 })).count, errors);
    assert.ok(
      blocksAtHand().every((bytes) => bytes === 0),
      'documents were read',
    );
    const ofLong = JSON.stringify({ long: 'y'.repeat(1_100) });
    assert.equal((await counted(written, ofLong, { limit: 0 })).count, long);
    const read = blocksAtHand().filter((bytes) => bytes > 0).length;
    assert.ok(read > 0 && read < blocksAtHand().length, `${read} blocks were read`);
  });

  it('find everything once by pages that end with their time, in memory too', async (t) => {
    t.diagnostic(`TIDEBASE_TEST_SEED=${seed}`);
    const random = seededRandom(seed);
    const parts = {
      text: (chance: () => number) => words.filter(() => chance() < 0.5).join(' '),
      meta: (chance: () => number) =>
        JSON.stringify({ level: chance() < 0.1 ? 'error' : 'info', host: Math.floor(chance() * 100) }),
    };
    const written = await writtenRows(random, { ...sizes, segments: [300] }, parts);
    for (const [filter, q] of [
      ['{"level":"error"}', ''],
      ['{"level":"error"}', 'harbour'],
      ['{"host":7}', 'tide'],
      ['{"level":{"ne":"error"}}', 'block'],
    ] as const) {
      const { filter: terms } = parseSearchBody(bodyOf(filter, { q }));
      const wanted = written.live.filter(
        ({ meta, text }) => filterMatches(terms ?? { terms: [] }, meta) && text.includes(q),
      );
      const seen: string[] = [];
      let timeouts = 0;
      for (let cursor = '', pages = 0; ; pages++) {
        assert.ok(pages < 10_000, 'it makes progress');
        const limit = 1 + Math.floor(random() * 40);
        const body = parseSearchBody(bodyOf(filter, { q, limit, cursor }));
        const context = contextOf(written.snapshot, new BusyClock(), 5 + Math.floor(random() * 40));
        const answer = JSON.parse(String(await runSearch(context, body)));
        if (answer.timed_out) timeouts++;
        seen.push(...answer.hits.map(({ id }: { id: string }) => id));
        if (answer.next === '') break;
        cursor = answer.next;
      }
      assert.deepEqual(
        seen,
        wanted.map(({ id }) => id),
        `${filter} ${q}`,
      );
      assert.ok(timeouts > 0, `${filter} ${q}: no page ran out of time`);
    }
  });

  it('count a memtable’s rows once, whenever somebody else has their columns made', async () => {
    const parts = {
      text: () => 'tide',
      meta: (chance: () => number) => JSON.stringify({ level: chance() < 0.25 ? 'error' : 'info' }),
    };
    let lasting = true;
    for (let turn = 1; lasting; turn++) {
      // So few rows behind those that have columns that a filter goes without.
      const few = { segments: [200, 200], frozen: 100, memtable: 4_300, later: 100 };
      const written = await writtenRows(seededRandom(5), few, parts);
      const context = contextOf(written.snapshot, new FakeClock());
      const { slice } = context;
      slice.due = () => true;
      const giveWay = slice.giveWay.bind(slice);
      let turns = 0;
      slice.giveWay = async () => {
        await giveWay();
        // As SQL does, which has columns made of every row.
        if (++turns === turn)
          for (const { memtable, rowCount } of written.snapshot.memtables)
            memtableColumns(memtable, written.snapshot.temporalKeys ?? new Set()).chunks(rowCount);
      };
      const { count } = JSON.parse(
        await runCount(context, parseCountBody(bodyOf('{"level":"error"}', { limit: 0 }))),
      );
      const errors = written.live.filter(({ meta }) => meta.level === 'error').length;
      assert.equal(count, errors, `columns were made in turn ${turn}`);
      lasting = turns >= turn;
      assert.ok(lasting || turn > 3, `a count has ${turns} turns`);
    }
  });
});
