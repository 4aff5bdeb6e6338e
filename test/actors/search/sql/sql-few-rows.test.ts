/** A wide table in the store: of a few rows, no whole columns are read. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { rowIndexes } from '../../../../actors/compute/row-indexes.ts';
import { runSql } from '../../../../actors/search/sql/run-sql.ts';
import { BlockCache, BlockFetcher, emptyReadTally } from '../../../../actors/storage/block-fetch.ts';
import { SegmentReader } from '../../../../actors/storage/segment-reader.ts';
import type { Snapshot } from '../../../../actors/storage/snapshot.ts';
import { noTombstones, withDeleted } from '../../../../actors/storage/tombstones.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { contextOf } from '../../../support/query-context.ts';
import { buildSegment, CountingStore, entryOf, seededRandom } from '../../../support/segments.ts';

const rowCount = 4_000;
const padded = 24;
const random = seededRandom(5);

function metaOf(at: number): string {
  const members = [`"n":${at}`, `"d":"2024-02-${10 + (at % 19)}"`, `"big":9007199254740${993 + (at % 7)}`];
  if (at % 3 === 0) members.push(`"f":${at / 4}`, '"nested":{"a": [1, 2.50]}', '"nothing":null');
  if (at % 5 === 0) members.push(`"mixed":${at % 2 === 0 ? '"text"' : '1.5'}`, '"flag":true');
  for (let column = 0; column < padded; column++)
    members.push(
      `"p${column}":"${Math.floor(random() * 1e15).toString(36)}${Math.floor(random() * 1e15).toString(36)}"`,
    );
  return `{${members.join(',')}}`;
}

async function wideTable() {
  const rows = Array.from({ length: rowCount }, (_, at) => ({
    id: `d${at}`,
    sequence: at + 1,
    writtenAt: 1.7e15 + at,
    entry: entryOf({ id: `d${at}`, text: null, meta: Buffer.from(metaOf(at)), vector: Float32Array.of(1) }),
  }));
  const { toc, bytes } = await buildSegment(rows, { indexes: rowIndexes(['d']) });
  const store = new CountingStore();
  await store.putIfAbsent('ns/ab/n/segment/s', [bytes]);
  const snapshotOf = (dead: readonly number[]): Snapshot => {
    const fetcher = new BlockFetcher({ store, warmCache: null, cache: new BlockCache(100_000_000) });
    const reader = new SegmentReader('ns/ab/n/segment/s', toc, fetcher);
    const tombstones = withDeleted(noTombstones, dead);
    return {
      version: 1,
      sequence: rowCount,
      documents: rowCount - dead.length,
      memtables: [],
      segments: [{ id: 's', size: bytes.length, reader, tombstones, graphs: null }],
      temporalKeys: new Set(['d']),
    };
  };
  return { snapshotOf, bytes: bytes.length };
}

const table = wideTable();

async function asked(snapshot: Snapshot, sql: string) {
  const tally = emptyReadTally();
  const context = { ...contextOf(snapshot, new FakeClock()), tally };
  const { rows, columns, types } = JSON.parse(await runSql(context, { sql }));
  return { rows, columns, types, read: tally.storeBytes };
}

test('SELECT * with LIMIT and without an order reads documents, not columns, and answers the same', async () => {
  const { snapshotOf, bytes } = await table;
  for (const [dead, where, limit] of [
    [[], '', 'LIMIT 1'],
    [[], '', 'LIMIT 7 OFFSET 2500'],
    [[0, 1, 2, 5], '', 'LIMIT 3'],
    [[], 'WHERE n >= 3000', 'LIMIT 5'],
    [[3_001], 'WHERE n >= 3000 AND n < 3003', 'LIMIT 5'],
  ] as const) {
    const few = await asked(snapshotOf(dead), `SELECT * FROM docs ${where} ${limit}`);
    const all = await asked(snapshotOf(dead), `SELECT * FROM docs ${where} ORDER BY n ${limit}`);
    assert.deepEqual(
      [few.columns, few.types, few.rows],
      [all.columns, all.types, all.rows],
      `${where} ${limit}`,
    );
    assert.ok(few.rows.length > 0);
    assert.ok(all.read > bytes / 4, `${all.read}`);
    assert.ok(few.read < all.read / 4, `${few.read} of ${all.read}: ${where} ${limit}`);
  }
});

test('a share of memory that no column fits lets a row through', async () => {
  const { snapshotOf, bytes } = await table;
  const sql = 'SELECT id, p0, p1, p2, p3, p4, p5, p6, p7, p8, p9, n, mixed FROM docs LIMIT 2';
  const { rows, read } = await asked(snapshotOf([]), sql);
  assert.deepEqual([rows[0][0], rows[1][0], rows[0][11], rows[0][12]], ['d0', 'd1', 0, 'text']);
  assert.ok(read < bytes / 8, `${read} of ${bytes}`);
});

test('a narrow table, or many rows, are read by columns', async () => {
  const { snapshotOf } = await table;
  const narrow = await asked(snapshotOf([]), 'SELECT n FROM docs LIMIT 1');
  assert.deepEqual(narrow.rows, [[0]]);
  const many = await asked(snapshotOf([]), 'SELECT n, f FROM docs WHERE n >= 2 LIMIT 3000');
  assert.equal(many.rows.length, 3_000);
  assert.deepEqual(many.rows.slice(0, 3), [
    [2, null],
    [3, 0.75],
    [4, null],
  ]);
});

test('a query of few rows ends, and answers the same, however often it is interrupted', async () => {
  const { snapshotOf } = await table;
  const snapshot = snapshotOf([]);
  for (const sql of [
    "SELECT REGEXP_REPLACE(id, '([02468])', '<\\1>') AS x, p1, p2 FROM docs WHERE n < 40",
    "SELECT id, id LIKE '%7%' AS x, p3 FROM docs WHERE n < 40",
  ]) {
    const context = contextOf(snapshot, new FakeClock());
    let turns = 0;
    context.slice.due = () => true;
    context.slice.giveWay = async () => {
      assert.ok(turns++ < 2_000, 'it ends');
    };

    const { rows } = JSON.parse(await runSql(context, { sql }));

    assert.deepEqual(rows, (await asked(snapshot, sql)).rows);
    assert.equal(rows.length, 40);
  }
});
