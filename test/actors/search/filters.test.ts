import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { columnsWriter } from '../../../actors/columns/columns-writer.ts';
import { mergeSegments } from '../../../actors/compute/merge-segments.ts';
import { runCount, runSearch } from '../../../actors/search/run-search.ts';
import { BlockCache, BlockFetcher } from '../../../actors/storage/block-fetch.ts';
import type { SegmentToc } from '../../../actors/storage/segment-format.ts';
import { SegmentReader } from '../../../actors/storage/segment-reader.ts';
import type { OpenSegment, Snapshot } from '../../../actors/storage/snapshot.ts';
import {
  noTombstones,
  type Tombstones,
  tombstonesToWire,
  withDeleted,
} from '../../../actors/storage/tombstones.ts';
import { searchableMemtable } from '../../../actors/text/searchable-memtable.ts';
import { textIndexWriter } from '../../../actors/text/text-index.ts';
import { ApiError } from '../../../protocol/errors.ts';
import { filterMatches, type MetaObject } from '../../../protocol/filter.ts';
import { parseCountBody, parseSearchBody } from '../../../protocol/search.ts';
import { systemClock } from '../../../src/base/clock.ts';
import { parseJson } from '../../../src/base/json.ts';
import { BusyClock } from '../../support/busy-clock.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { randomFilter, randomMeta } from '../../support/metas.ts';
import { contextOf } from '../../support/query-context.ts';
import { buildSegment, CountingStore, entryOf, seededRandom, type TestRow } from '../../support/segments.ts';

const seed = Number(process.env.TIDEBASE_TEST_SEED ?? Math.floor(Math.random() * 1e9));
const clock = { ...systemClock, sleep: () => Promise.resolve() };
const parse = (text: string) => parseJson(Buffer.from(text), { depthMax: 32 });

interface Document {
  readonly id: string;
  readonly text: string;
  /** JSON text, or none. */
  readonly meta: string | null;
}

function rowsOf(documents: readonly Document[]): TestRow[] {
  return documents.map(({ id, text, meta }, at) => ({
    id,
    sequence: at + 1,
    writtenAt: 1.7e15 + at,
    entry: entryOf({
      id,
      text: Buffer.from(text),
      meta: meta === null ? null : Buffer.from(meta),
      vector: null,
    }),
  }));
}

interface Place {
  readonly name: string;
  readonly snapshot: Snapshot;
  readonly store: CountingStore;
  /** A new process: nothing is in memory. */
  readonly cold: () => Snapshot;
}

interface Stored {
  readonly key: string;
  readonly toc: SegmentToc;
  readonly tombstones: Tombstones;
}

function placeOf(name: string, store: CountingStore, stored: readonly Stored[], documents: number): Place {
  const cold = (): Snapshot => {
    const fetcher = new BlockFetcher({ store, warmCache: null, cache: new BlockCache(50_000_000) });
    const segments: OpenSegment[] = stored.map(({ key, toc, tombstones }) => ({
      id: key,
      size: 0,
      reader: new SegmentReader(key, toc, fetcher),
      tombstones,
      graphs: null,
    }));
    return { version: 1, sequence: 1e9, documents, memtables: [], segments: segments.reverse() };
  };
  return { name, store, snapshot: cold(), cold };
}

async function storedSegment(store: CountingStore, key: string, rows: readonly TestRow[], rowsMax?: number) {
  const columns = columnsWriter(rowsMax === undefined ? {} : { rowsMax });
  const indexes = [textIndexWriter(), columns];
  const { toc, bytes } = await buildSegment(rows, { documentBlockBytes: 600, indexes }, key);
  await store.putIfAbsent(key, [bytes]);
  return { key, toc, tombstones: noTombstones };
}

/** The same documents in a memtable, in segments of small chunks, and in a segment that was merged. */
async function placesOf(documents: readonly Document[]): Promise<Place[]> {
  const rows = rowsOf(documents);
  const store = new CountingStore();
  const memtable = searchableMemtable();
  for (const { entry, sequence, writtenAt } of rows) memtable.add(entry, 0, sequence, writtenAt);
  const memory: Snapshot = {
    version: 1,
    sequence: 1e9,
    documents: rows.length,
    memtables: [{ memtable, rowCount: memtable.rowCount }],
    segments: [],
  };
  const half = Math.ceil(rows.length / 2);
  const pieces = [rows.slice(0, half), rows.slice(half)].filter((piece) => piece.length > 0);
  const small: Stored[] = [];
  const inputs: Stored[] = [];
  for (const [at, piece] of pieces.entries()) {
    small.push(await storedSegment(store, `ns/ab/n/segment/s${at}`, piece, 5));
    // What is deleted is no part of what is merged.
    const { id, writtenAt } = piece[0] as TestRow;
    const deleted = { id, writtenAt, sequence: 0, entry: (piece[0] as TestRow).entry };
    const moved = [deleted, ...piece].map((row, i) => ({ ...row, sequence: (at * half + i) * 2 }));
    const input = await storedSegment(store, `ns/ab/n/segment/in${at}`, moved);
    inputs.push({ ...input, tombstones: withDeleted(noTombstones, [0]) });
  }
  const key = 'ns/ab/n/segment/out';
  const merged = await mergeSegments(
    { store, clock },
    {
      task: 'merge-segments',
      key,
      inputs: inputs.map((input) => ({ ...input, tombstones: tombstonesToWire(input.tombstones) })),
    },
  );
  assert.ok(merged !== null);
  return [
    { name: 'a memtable', snapshot: memory, store, cold: () => memory },
    placeOf('segments of several chunks', store, small, rows.length),
    placeOf('segments with deleted rows', store, inputs, rows.length),
    placeOf('a merged segment', store, [{ key, toc: merged.toc, tombstones: noTombstones }], rows.length),
  ];
}

const bodyOf = (filter: string, q: string, more = '') =>
  parse(`{"filter":${filter},"q":${JSON.stringify(q)}${more}}`);

async function searched(snapshot: Snapshot, filter: string, q = ''): Promise<string[]> {
  const body = parseSearchBody(bodyOf(filter, q, ',"limit":1000'));
  const { hits, partial } = JSON.parse(String(await runSearch(contextOf(snapshot, new FakeClock()), body)));
  assert.equal(partial, false);
  return hits.map(({ id }: { id: string }) => id);
}

async function counted(snapshot: Snapshot, filter: string, q = ''): Promise<number> {
  return JSON.parse(await runCount(contextOf(snapshot, new FakeClock()), parseCountBody(bodyOf(filter, q))))
    .count;
}

interface Rule {
  readonly rule: string;
  readonly filter: string;
  readonly keeps: readonly string[];
  readonly drops: readonly string[];
}

/** Every rule of filters, one by one, with what it keeps and drops; what is refused is in test/protocol/filter.test.ts. */
const rules: readonly Rule[] = [
  {
    rule: '{key: value} keeps documents whose key equals the value',
    filter: '{"kind":"note"}',
    keeps: ['{"kind":"note"}', '{"more":1,"kind":"note"}', '{"kind":"no\\u0074e"}'],
    drops: [
      '{"kind":"memo"}',
      '{"kind":"note "}',
      '{"kind":["note"]}',
      '{"kind":{"note":1}}',
      '{"other":"note"}',
    ],
  },
  {
    rule: '{key: {eq: value}} keeps the same',
    filter: '{"kind":{"eq":"note"}}',
    keeps: ['{"kind":"note"}'],
    drops: ['{"kind":"memo"}', '{}'],
  },
  {
    rule: '{key: [v1, v2]} keeps documents whose key is one of the values',
    filter: '{"k":["a",2,null,true]}',
    keeps: ['{"k":"a"}', '{"k":2}', '{"k":2.0}', '{"k":null}', '{"k":true}'],
    drops: ['{"k":"b"}', '{"k":"2"}', '{"k":["a",2,null,true]}', '{"k":false}', '{}'],
  },
  {
    rule: '{key: {in: [..]}} keeps the same',
    filter: '{"k":{"in":[1,2,3,4,5,6,7,1000000]}}',
    keeps: ['{"k":2}', '{"k":1e6}', '{"k":1000000}'],
    drops: ['{"k":8}', '{"k":2.5}', '{"k":"2"}'],
  },
  {
    rule: 'in of nothing keeps nothing',
    filter: '{"k":[]}',
    keeps: [],
    drops: ['{"k":1}', '{"k":[]}', '{}'],
  },
  {
    rule: '{key: {ne: value}} keeps documents whose key differs, and those without the key',
    filter: '{"k":{"ne":"a"}}',
    keeps: ['{"k":"b"}', '{"k":null}', '{"k":1}', '{"k":["a"]}', '{"other":"a"}', '{}'],
    drops: ['{"k":"a"}'],
  },
  {
    rule: 'a range keeps numbers, operators combine, and non-numbers and missing keys fail',
    filter: '{"n":{"gte":1,"lt":5}}',
    keeps: ['{"n":1}', '{"n":1.0}', '{"n":4.9999}', '{"n":4}'],
    drops: ['{"n":5}', '{"n":0.9999}', '{"n":"3"}', '{"n":true}', '{"n":null}', '{"n":[3]}', '{}'],
  },
  {
    rule: 'gt and lte are the other two ranges',
    filter: '{"n":{"gt":1,"lte":5}}',
    keeps: ['{"n":5}', '{"n":1.5}'],
    drops: ['{"n":1}', '{"n":5.5}', '{"n":6}'],
  },
  {
    rule: '{key: true} matches booleans only',
    filter: '{"done":true}',
    keeps: ['{"done":true}'],
    drops: ['{"done":false}', '{"done":1}', '{"done":"true"}', '{}'],
  },
  {
    rule: 'all keys must hold',
    filter: '{"a":1,"b":{"ne":2,"gt":0}}',
    keeps: ['{"a":1,"b":3}'],
    drops: ['{"a":1,"b":2}', '{"a":2,"b":3}', '{"a":1}', '{"b":3}'],
  },
  { rule: 'an empty filter keeps everything', filter: '{}', keeps: ['{"a":1}', '{}'], drops: [] },
  {
    rule: 'strings compare exactly, with their case and their accents',
    filter: '{"k":"Größe"}',
    keeps: ['{"k":"Größe"}', '{"k":"Gr\\u00f6\\u00dfe"}'],
    drops: ['{"k":"größe"}', '{"k":"Gro\\u0308ße"}', '{"k":"GRÖSSE"}'],
  },
  {
    rule: '3 equals 3.0 but not the string 3',
    filter: '{"n":3}',
    keeps: ['{"n":3}', '{"n":3.0}', '{"n":3e0}', '{"n":30e-1}'],
    drops: ['{"n":"3"}', '{"n":3.0000001}', '{"n":[3]}'],
  },
  {
    rule: '3.0 equals 3',
    filter: '{"n":3.0}',
    keeps: ['{"n":3}', '{"n":3.0}'],
    drops: ['{"n":"3.0"}'],
  },
  {
    rule: 'integers keep 64 bits',
    filter: '{"n":435090932899640449}',
    keeps: ['{"n":435090932899640449}'],
    drops: ['{"n":435090932899640448}', '{"n":435090932899640450}', '{"n":435090932899640449.0}'],
  },
  {
    rule: 'ranges over integers keep 64 bits',
    filter: '{"n":{"gt":9007199254740992,"lt":9223372036854775807}}',
    keeps: ['{"n":9007199254740993}', '{"n":9223372036854775806}', '{"n":9007199254740994.0}'],
    drops: ['{"n":9007199254740992}', '{"n":9223372036854775807}', '{"n":9223372036854775808}'],
  },
  {
    rule: 'integers beyond 64 bits still compare',
    filter: '{"n":{"gt":18446744073709551616}}',
    keeps: ['{"n":18446744073709551617}', '{"n":1e20}'],
    drops: ['{"n":18446744073709551616}', '{"n":9223372036854775807}', '{"n":-1e20}'],
  },
  {
    rule: '0 equals -0',
    filter: '{"n":-0.0}',
    keeps: ['{"n":0}', '{"n":-0}', '{"n":0.0}'],
    drops: ['{"n":false}'],
  },
  {
    rule: 'null matches JSON null and not a missing key',
    filter: '{"k":null}',
    keeps: ['{"k":null}'],
    drops: ['{}', '{"k":0}', '{"k":""}', '{"k":false}', '{"k":"null"}'],
  },
  {
    rule: 'an array equals only an identical array',
    filter: '{"k":{"eq":[1,"a"]}}',
    keeps: ['{"k":[1,"a"]}', '{"k":[1.0,"a"]}', '{"k": [ 1 , "a" ] }'],
    drops: ['{"k":["a",1]}', '{"k":[1]}', '{"k":1}', '{"k":"a"}', '{"k":[[1,"a"]]}'],
  },
  {
    rule: 'only top-level keys are filterable',
    filter: '{"deep":1}',
    keeps: [],
    drops: ['{"k":{"deep":1}}', '{"k":[{"deep":1}]}'],
  },
  {
    rule: 'of a key that comes twice the last value counts',
    filter: '{"k":2}',
    keeps: ['{"k":1,"k":2}', '{"k":"x","\\u006b":2}'],
    drops: ['{"k":2,"k":1}', '{"k":2,"k":null}'],
  },
  {
    rule: 'keys are compared by what they mean, and none is special',
    filter: '{"__proto__":1,"constructor":{"ne":5},"":2}',
    keeps: ['{"__proto__":1,"":2}', '{"\\u005f_proto__":1,"":2}'],
    drops: ['{"":2}', '{"__proto__":1,"":2,"constructor":5}', '{"__proto__":1}'],
  },
  {
    rule: 'a string too long for columns is still compared',
    filter: `{"k":"${'y'.repeat(3000)}"}`,
    keeps: [`{"k":"${'y'.repeat(3000)}"}`],
    drops: [`{"k":"${'y'.repeat(2999)}z"}`, '{"k":"y"}'],
  },
];

describe('a filter, on a memtable and on columns', () => {
  for (const { rule, filter, keeps, drops } of rules) {
    test(rule, async () => {
      // Among others, so that columns have every kind; twice, so that there are several chunks.
      const others = ['{"k":{}}', '{"n":[1]}', '{"kind":7.5}', null, '{"n":-12,"k":"zz","done":null}'];
      const metas = [...keeps, ...drops, ...others, ...keeps, ...drops];
      const documents = metas.map((meta, at) => ({ id: `d${at}`, text: `tide ${at}`, meta }));
      const kept = documents.filter(({ meta }) => meta !== null && keeps.includes(meta)).map(({ id }) => id);
      const dropped = new Set(
        documents.filter(({ meta }) => meta !== null && drops.includes(meta)).map(({ id }) => id),
      );

      for (const { name, snapshot } of await placesOf(documents)) {
        const found = await searched(snapshot, filter);
        const foundKept = found.filter((id) => kept.includes(id));
        assert.deepEqual(foundKept, kept.toReversed(), name);
        assert.deepEqual(
          found.filter((id) => dropped.has(id)),
          [],
          name,
        );
        assert.equal(await counted(snapshot, filter), found.length, name);
      }
    });
  }

  for (const filter of [
    '[1]',
    '"note"',
    '{"n":{"gt":"3"}}',
    '{"n":{"like":"a"}}',
    '{"n":{"deep":{"a":1}}}',
  ]) {
    test(`the bad filter ${filter} is refused with 422`, async () => {
      const [place] = await placesOf([{ id: 'a', text: 'a', meta: '{"n":1}' }]);
      const snapshot = place?.snapshot ?? assert.fail();

      await assert.rejects(
        async () => searched(snapshot, filter),
        (error: unknown) => error instanceof ApiError && error.code === 'invalid' && error.status === 422,
      );
    });
  }

  test('random filters over random metas find the same documents everywhere', async (t) => {
    t.diagnostic(`TIDEBASE_TEST_SEED=${seed}`);
    const random = seededRandom(seed);
    const words = ['tide', 'harbour', 'block', 'fence'];
    const documents = Array.from({ length: 150 }, (_, at) => ({
      id: `d${at}`,
      text: words.filter(() => random() < 0.4).join(' '),
      meta: randomMeta(random),
    }));
    const parsedMetas = documents.map(({ meta }) => (meta === null ? {} : (parse(meta) as MetaObject)));
    const places = await placesOf(documents);
    let asked = 0;
    for (let n = 0; n < 120; n++) {
      const filter = randomFilter(random);
      const q = random() < 0.5 ? '' : (words[Math.floor(random() * words.length)] ?? '');
      let request: ReturnType<typeof parseSearchBody>;
      try {
        request = parseSearchBody(bodyOf(filter, q));
      } catch (error) {
        if (error instanceof ApiError) continue;
        throw error;
      }
      asked++;
      const terms = request.filter ?? { terms: [] };
      const wanted = documents
        .filter(({ text }, at) => text.includes(q) && filterMatches(terms, parsedMetas[at] ?? {}))
        .map(({ id }) => id)
        .reverse();
      for (const { name, snapshot, cold } of places) {
        assert.deepEqual(await searched(snapshot, filter, q), wanted, `${name}: ${filter} ${q}`);
        if (n % 10 === 0) assert.deepEqual(await searched(cold(), filter, q), wanted, `cold, ${name}`);
      }
    }
    assert.ok(asked > 60, `${asked} filters`);
  });
});

/** Rows of about 100 bytes, six of which make a block. */
function numbered(count: number): Document[] {
  return Array.from({ length: count }, (_, at) => ({
    id: `d${at}`,
    text: `${at % 2 === 0 ? 'even' : 'odd'} ${'tide '.repeat(10)}`,
    meta: `{"n":${at},"tenth":${at % 10 === 3},"word":"w${at % 50}"}`,
  }));
}

describe('what a filter reads', () => {
  const columnsPlace = async (count: number) => {
    const store = new CountingStore();
    const stored = await storedSegment(store, 'ns/ab/n/segment/s', rowsOf(numbered(count)), 100);
    return placeOf('a segment', store, [stored], count);
  };

  /** Bytes of documents read by a search of a cold segment, and how many reads it took. */
  async function reads(place: Place, filter: string, q = '') {
    const { store } = place;
    const snapshot = place.cold();
    const before = store.ranges.length;
    const found = await searched(snapshot, filter, q);
    const { reader } = snapshot.segments[0] as OpenSegment;
    const blocks = Array.from({ length: reader.blockCount ?? 0 }, (_, at) => at);
    const read = blocks.filter((at) => reader.bytesAtHand(at) > 0).length;
    return { found: found.length, blocks: read, of: blocks.length, gets: store.ranges.length - before };
  }

  test('blocks without a row that passes are not read', async () => {
    const place = await columnsPlace(1000);

    const one = await reads(place, '{"n":500}');
    assert.deepEqual([one.found, one.blocks], [1, 1]);
    assert.ok(one.of > 100, `${one.of} blocks`);
    const range = await reads(place, '{"n":{"gte":400,"lt":412},"tenth":true}');
    assert.deepEqual([range.found, range.blocks], [1, 1]);
    const words = await reads(place, '{"word":"w7"}');
    assert.deepEqual([words.found, words.blocks], [20, 20]);
  });

  test('a filter that no row passes reads no document, and what the directory tells no column either', async () => {
    const place = await columnsPlace(1000);

    const noWord = await reads(place, '{"word":"w50"}');
    assert.deepEqual([noWord.found, noWord.blocks], [0, 0]);
    const outside = await reads(place, '{"n":1000}');
    assert.deepEqual([outside.found, outside.blocks], [0, 0]);
    assert.ok(outside.gets <= 2, `${outside.gets} reads: indexes and directory`);
    assert.ok((await reads(place, '{"nobody":1}')).gets <= 2);
  });

  test('text and filter together read only what both let pass', async () => {
    const place = await columnsPlace(1000);

    const both = await reads(place, '{"n":{"gte":500,"lt":504}}', 'even');

    assert.equal(both.found, 2);
    assert.ok(both.blocks <= 2, `${both.blocks} blocks`);
  });

  test('a search that finds its page in the newest rows leaves older columns alone', async () => {
    const place = await columnsPlace(3000);
    const snapshot = place.cold();
    const body = parseSearchBody(bodyOf('{"tenth":true}', '', ',"limit":3'));

    const { hits } = JSON.parse(String(await runSearch(contextOf(snapshot, new FakeClock()), body)));

    assert.deepEqual(
      hits.map(({ id }: { id: string }) => id),
      ['d2993', 'd2983', 'd2973'],
    );
    const { reader } = snapshot.segments[0] as OpenSegment;
    const read = Array.from({ length: reader.blockCount ?? 0 }, (_, at) => at).filter(
      (at) => reader.bytesAtHand(at) > 0,
    );
    assert.ok(read.length < 80, `${read.length} of ${reader.blockCount} blocks`);
  });

  test('columns that cannot be read make an answer partial, or another time whole', async () => {
    const place = await columnsPlace(500);
    const snapshot = place.cold();
    const { reader } = snapshot.segments[0] as OpenSegment;
    const section = reader.section('columns');
    const { store } = place;
    store.spoil = (bytes, range) => {
      const offset = range !== undefined && 'offset' in range ? range.offset : 0;
      const at = section.offset - offset;
      if (at < 0 || at >= bytes.length) return bytes;
      const spoiled = Buffer.from(bytes);
      spoiled.fill(0, at);
      return spoiled;
    };
    const failures: unknown[] = [];
    const context = {
      ...contextOf(snapshot, new FakeClock()),
      readFailed: (failure: unknown) => void failures.push(failure),
    };

    const answer = JSON.parse(String(await runSearch(context, parseSearchBody(bodyOf('{"n":7}', '')))));

    assert.equal(answer.partial, true);
    assert.equal(failures.length, 1);
    store.spoil = (bytes) => bytes;
    assert.deepEqual(await searched(snapshot, '{"n":7}'), ['d7']);
  });

  test('a search that runs out of time over columns goes on where it stopped', async () => {
    const place = await columnsPlace(2000);
    const seen: string[] = [];
    let timeouts = 0;
    for (let cursor = '', pages = 0; ; pages++) {
      assert.ok(pages < 1000, 'it makes progress');
      const body = parseSearchBody(
        bodyOf('{"word":"w7"}', '', `,"limit":1000,"cursor":${JSON.stringify(cursor)}`),
      );
      const answer = JSON.parse(
        String(await runSearch(contextOf(place.snapshot, new BusyClock(), 25), body)),
      );
      if (answer.timed_out) timeouts++;
      seen.push(...answer.hits.map((hit: { id: string }) => hit.id));
      if (answer.next === '') break;
      cursor = answer.next;
    }
    assert.deepEqual(seen, await searched(place.snapshot, '{"word":"w7"}'));
    assert.ok(timeouts > 0);
  });
});
