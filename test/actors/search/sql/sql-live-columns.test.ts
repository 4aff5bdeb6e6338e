/** Which columns there are, and of which types, is said by documents that live. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { rowIndexes } from '../../../../actors/compute/row-indexes.ts';
import { runSql } from '../../../../actors/search/sql/run-sql.ts';
import { BlockCache, BlockFetcher, emptyReadTally } from '../../../../actors/storage/block-fetch.ts';
import { SegmentReader } from '../../../../actors/storage/segment-reader.ts';
import type { Snapshot } from '../../../../actors/storage/snapshot.ts';
import { deletedBetween, noTombstones, withDeleted } from '../../../../actors/storage/tombstones.ts';
import { searchableMemtable } from '../../../../actors/text/searchable-memtable.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { contextOf } from '../../../support/query-context.ts';
import { buildSegment, CountingStore, entryOf, type TestRow } from '../../../support/segments.ts';

function rowOf(at: number, meta: string): TestRow {
  const entry = entryOf({ id: `d${at}`, text: Buffer.from('x'), meta: Buffer.from(meta), vector: null });
  return { id: `d${at}`, sequence: at + 1, writtenAt: 1.7e15 + at, entry };
}

const key = 'ns/ab/n/segment/s';

async function segmentOf(metas: readonly string[], temporalKeys: readonly string[] = []) {
  const store = new CountingStore();
  const { toc, bytes } = await buildSegment(
    metas.map((meta, at) => rowOf(at, meta)),
    {
      indexes: rowIndexes(temporalKeys),
    },
  );
  await store.putIfAbsent(key, [bytes]);
  const fetcher = new BlockFetcher({ store, warmCache: null, cache: new BlockCache(10_000_000) });
  const reader = new SegmentReader(key, toc, fetcher);
  const without = (dead: readonly number[]): Snapshot => ({
    version: 1,
    sequence: metas.length,
    documents: metas.length - dead.length,
    memtables: [],
    segments: [
      { id: 's', size: bytes.length, reader, tombstones: withDeleted(noTombstones, dead), graphs: null },
    ],
    temporalKeys: new Set(temporalKeys),
  });
  return { store, without };
}

async function asked(snapshot: Snapshot, sql: string) {
  const tally = emptyReadTally();
  const context = { ...contextOf(snapshot, new FakeClock()), tally };
  const { rows, columns, types } = JSON.parse(await runSql(context, { sql }));
  return { rows, columns, types, tally };
}

test('a corrected value takes its type with it, and an older reader still sees it', async () => {
  const { without } = await segmentOf(['{"k": 1}', '{"k": "oops"}', '{"k": 2}', '{"k": 0.5}', '{"k": 3}']);
  for (const [dead, sql, rows] of [
    [[1, 3], 'SELECT SUM(k), MIN(k) FROM docs', [[6, 1]]],
    [[1], 'SELECT SUM(k) FROM docs', [[6.5]]],
    [[], "SELECT COUNT(*) FROM docs WHERE k = 'oops'", [[1]]],
    [[0, 1, 2, 3, 4], 'SHOW COLUMNS', [['id', 'text', 0]]],
    [
      [1, 3],
      'SELECT k + 1, k FROM docs WHERE k > 1 ORDER BY k DESC',
      [
        [4, 3],
        [3, 2],
      ],
    ],
  ] as const)
    assert.deepEqual((await asked(without(dead), sql)).rows, rows, `${sql} without ${dead}`);
});

test('integers of 64 bits stay exact beside dead values of other types', async () => {
  const { without } = await segmentOf([
    '{"k": 9007199254740993}',
    '{"k": "a"}',
    '{"k": [1]}',
    '{"k": 1.5}',
    '{"k": true}',
  ]);
  const sql = 'SELECT SUM(k), MAX(k + 1), COUNT(k) FROM docs';
  assert.match(
    await runSql(contextOf(without([1, 2, 3]), new FakeClock()), { sql }),
    /\[9007199254740994,9007199254740994,2\]/,
  );
});

test('a date column is one again when the text in it is gone', async () => {
  const { without } = await segmentOf(['{"d": "2024-02-28"}', '{"d": "soon"}', '{"d": "2024-02-29"}'], ['d']);
  assert.deepEqual((await asked(without([1]), 'SELECT MAX(d) FROM docs')).types, ['date']);
  assert.deepEqual((await asked(without([]), 'SELECT MAX(d) FROM docs')).types, ['text']);
});

test('keys of dead documents are no columns, and do not say where the others stand', async () => {
  const { without } = await segmentOf([
    '{"typo": 1, "b": 1, "a": 1}',
    '{"a": 2, "b": 2}',
    '{"c": 3, "a": 3, "z": null}',
    '{"b": 4, "c": 4}',
  ]);
  assert.deepEqual((await asked(without([0]), 'SELECT * FROM docs')).columns, ['id', 'a', 'b', 'c', 'z']);
  assert.deepEqual((await asked(without([0, 1]), 'SELECT * FROM docs')).columns, ['id', 'c', 'a', 'z', 'b']);
  assert.deepEqual((await asked(without([0, 1, 2]), 'SELECT * FROM docs')).columns, ['id', 'b', 'c']);
  assert.deepEqual((await asked(without([]), 'SELECT * FROM docs')).columns, [
    'id',
    'typo',
    'b',
    'a',
    'c',
    'z',
  ]);
  await assert.rejects(
    asked(without([0]), 'SELECT typo FROM docs'),
    /no column "typo"; there are: id, a, b, c, z$/,
  );
});

test('a memtable counts by what lives in it, and an empty one not at all', async () => {
  const { without } = await segmentOf(['{"k": 1}']);
  const memtable = searchableMemtable();
  const snapshotOf = (sequence: number): Snapshot => ({
    ...without([]),
    sequence,
    memtables: [{ memtable, rowCount: memtable.rowCount }],
  });
  assert.deepEqual((await asked(snapshotOf(1), 'SHOW COLUMNS')).rows, [
    ['id', 'text', 1],
    ['k', 'int', 1],
  ]);
  memtable.add(rowOf(1, '{"k": "oops", "typo": 1}').entry, 0, 2, 1);
  assert.deepEqual((await asked(snapshotOf(2), 'SHOW COLUMNS')).rows, [
    ['id', 'text', 2],
    ['k', 'text', 2],
    ['typo', 'int', 1],
  ]);
  memtable.add(rowOf(1, '{"k": 5}').entry, 0, 3, 1);
  assert.deepEqual((await asked(snapshotOf(3), 'SHOW COLUMNS')).rows, [
    ['id', 'text', 2],
    ['k', 'int', 2],
  ]);
  assert.deepEqual((await asked(snapshotOf(3), 'SELECT SUM(k) FROM docs')).rows, [[6]]);
  memtable.supersede('d1', 4);
  assert.deepEqual((await asked(snapshotOf(4), 'SHOW COLUMNS')).rows, [
    ['id', 'text', 1],
    ['k', 'int', 1],
  ]);
});

test('a column is read for its live kinds only where fewer rows have a kind than are dead, and once', async () => {
  const metas = Array.from(
    { length: 3_000 },
    (_, at) => `{"n": ${at}, "s": "a${at}", "rare": 1${at === 9 ? ', "typo": 1' : ''}}`,
  );
  const { store, without } = await segmentOf(metas);
  await asked(without([]), 'SELECT COUNT(*) FROM docs');
  const before = store.gets;
  const { columns, rows } = await asked(without([9]), 'SELECT * FROM docs WHERE n < 0');
  assert.deepEqual([columns, rows], [['id', 'n', 's', 'rare'], []]);
  const first = store.gets - before;
  assert.ok(first <= 3, `${first}`);
  await asked(without([9, 10]), 'SELECT SUM(n) FROM docs WHERE n < 0');
  assert.equal(store.gets - before, first);
});

test('deleted rows are counted by bits, from any row to any other', () => {
  const rows = Array.from({ length: 900 }, (_, at) => (at * 7_919) % 140_000);
  const tombstones = withDeleted(noTombstones, rows);
  for (const [from, end] of [
    [0, 140_000],
    [3, 65_539],
    [65_535, 65_537],
    [70_001, 139_993],
    [200_000, 300_000],
  ] as const)
    assert.equal(
      deletedBetween(tombstones, from, end),
      rows.filter((row) => row >= from && row < end).length,
    );
});
