import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { Oracle } from '../../support/duckdb.ts';
import {
  endImporting,
  importFileName,
  importInto,
  sqlRows,
  sqlTypes,
  startImporting,
} from '../../support/imports.ts';
import type { InProcess } from '../../support/in-process.ts';
import { seededRandom } from '../../support/segments.ts';

let server: InProcess;
let oracle: Oracle;
let names = 0;

before(async () => {
  server = await startImporting();
  await server.createTenant();
  oracle = await Oracle.open();
});
after(async () => {
  oracle.close();
  await server.drain();
  endImporting();
});

const fresh = () => `parquet-${++names}`;

async function written(select: string, options = ''): Promise<Buffer> {
  const path = importFileName('t.parquet');
  await oracle.rows(`COPY (${select}) TO '${path}' (FORMAT parquet${options})`);
  return readFileSync(path);
}

async function imported(bytes: Uint8Array, query: Record<string, string> = {}): Promise<string> {
  const namespace = fresh();
  const { status, body } = await importInto(server, namespace, bytes, { format: 'parquet', ...query });
  assert.equal(status, 200, JSON.stringify(body));
  return namespace;
}

const everything = `SELECT i::TINYINT AS tiny, (i * 3)::USMALLINT AS small, i - 500 AS whole, (i * 9000000000000000)::BIGINT AS wide,
  i / 7.0 AS part, (i / 3)::FLOAT AS single, i % 2 = 0 AS truth, DATE '2000-02-28' + i::INT AS day,
  TIMESTAMP '1969-12-31 23:00:00' + to_seconds(i * 61) AS moment, 'text ' || i AS text, CASE WHEN i % 3 = 0 THEN NULL ELSE 'é' || (i % 5) END AS maybe,
  (i / 100)::DECIMAL(9, 2) AS price, NULL::INT AS nothing, repeat('x', (i % 40)::INT) AS long FROM range(120) t(i)`;

const expected = `SELECT tiny, small, whole, wide, part, single::DOUBLE, truth::INT, day::VARCHAR, strftime(moment, '%Y-%m-%d %H:%M:%S'), text, maybe, price::DOUBLE, nothing, long`;
const columns =
  'tiny, small, whole, wide, part, single, truth, day, moment, text, maybe, price, nothing, long';

describe('files that DuckDB writes are what DuckDB reads', () => {
  const writers = ['UNCOMPRESSED', 'SNAPPY', 'ZSTD', 'GZIP', 'BROTLI', 'LZ4_RAW'].flatMap((codec) => [
    `, COMPRESSION ${codec}`,
    `, COMPRESSION ${codec}, PARQUET_VERSION v2, ROW_GROUP_SIZE 2048`,
  ]);
  for (const options of [...writers, ', DICTIONARY_SIZE_LIMIT 0']) {
    test(options.slice(2), async () => {
      const namespace = await imported(await written(everything, options), { text: 'text' });
      const ours = await sqlRows(server, namespace, `SELECT ${columns} FROM docs ORDER BY whole`);
      const theirs = await oracle.rows(`${expected} FROM (${everything}) ORDER BY whole`);
      const shown = (rows: readonly (readonly unknown[])[]) =>
        rows.map((row) => row.map((value) => (value === null ? null : String(value))));
      assert.deepEqual(shown(ours), shown(theirs));
    });
  }

  test('their types, texts, nulls and ids', async () => {
    const namespace = await imported(await written(everything), { id: 'text', text: 'text,maybe' });
    const types = await sqlTypes(server, namespace);
    assert.deepEqual(
      ['tiny', 'wide', 'part', 'truth', 'day', 'moment', 'text', 'price', 'nothing'].map(
        (name) => types[name],
      ),
      ['int', 'int', 'float', 'int', 'date', 'time', 'text', 'float', 'null'],
    );
    const { text, meta } = (await server.get(namespace, 'text 3')).body;
    assert.deepEqual([text, meta.maybe, meta.day], ['text 3', null, '2000-03-02']);
    assert.equal((await server.count(namespace, { q: 'é4' })).body.count, 16);
  });

  test('many rows in many pages', async () => {
    const namespace = await imported(
      await written("SELECT i AS n, 'v' || (i % 1000) AS v FROM range(70000) t(i)"),
    );
    assert.deepEqual(
      await sqlRows(server, namespace, 'SELECT COUNT(*), SUM(n), COUNT(DISTINCT v) FROM docs'),
      [[70_000, 2_449_965_000, 1_000]],
    );
  });
});

const refused: readonly (readonly [string, string, RegExp])[] = [
  ['lists', 'SELECT [1, 2] AS list', /nested: flat columns/u],
  ['structs', "SELECT {'a': 1} AS struct", /nested: flat columns/u],
  [
    'bytes that are no text',
    "SELECT '\\xFF'::BLOB AS bytes",
    /row 1, column "bytes": its bytes are no UTF-8/u,
  ],
  ['intervals', 'SELECT INTERVAL 1 DAY AS i', /type that is not imported/u],
  ['no rows', 'SELECT 1 AS a WHERE false', /no rows/u],
];
for (const [what, select, message] of refused)
  test(`${what} are refused`, async () => {
    const namespace = fresh();
    const { status, body } = await importInto(server, namespace, await written(select), {
      format: 'parquet',
    });
    assert.equal(status, 422, JSON.stringify(body));
    assert.match(body.error, message);
    assert.equal((await server.count(namespace)).status, 404);
  });

test('files that are cut, too short or something else are refused', async () => {
  const whole = await written(everything);
  const files = [
    Buffer.from('PAR1'),
    Buffer.from('a,b\n1,2\n'),
    whole.subarray(0, whole.length - 1),
    whole.subarray(100),
  ];
  for (let end = 1; end < whole.length; end += 997) files.push(whole.subarray(0, end));
  for (const file of files) {
    const { status, body } = await importInto(server, fresh(), file, { format: 'parquet' });
    assert.equal(status, 422, JSON.stringify(body));
  }
});

test('a page that says it unpacks to far more than it has bytes is refused before it is unpacked', async () => {
  // A million equal values: 60 MB in a page of some kilobytes.
  const bytes = await written(
    "SELECT repeat('x', 15000) AS x FROM range(4000)",
    ', COMPRESSION ZSTD, DICTIONARY_SIZE_LIMIT 0, ROW_GROUP_SIZE 4000',
  );
  const before = process.memoryUsage().arrayBuffers;
  const { status, body } = await importInto(server, fresh(), bytes, { format: 'parquet' });
  assert.equal(status, 422, JSON.stringify(body).slice(0, 300));
  assert.match(body.error, /unpacks to/u);
  assert.ok(process.memoryUsage().arrayBuffers - before < 200e6);
});

test('damaged files are refused, or give what is still readable; nothing breaks', async () => {
  const random = seededRandom(77);
  const files = [
    await written(everything, ', COMPRESSION SNAPPY'),
    await written(everything, ', COMPRESSION ZSTD, PARQUET_VERSION v2'),
  ];
  const statuses = new Map<number, number>();
  for (let round = 0; round < 400; round++) {
    const file = Buffer.from(files[round % files.length] as Buffer);
    const flips = 1 + Math.floor(random() * 4);
    // Lengths and counts stand in heads and in the footer.
    const from = random() < 0.5 ? Math.max(0, file.length - 1_500) : 0;
    for (let flip = 0; flip < flips; flip++)
      file[from + Math.floor(random() * (file.length - from))] = Math.floor(random() * 256);
    const { status, body } = await importInto(server, fresh(), file, { format: 'parquet' });
    assert.ok([200, 413, 422].includes(status), JSON.stringify(body));
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
  }
  assert.deepEqual(
    [...statuses.keys()].filter((status) => ![200, 413, 422].includes(status)),
    [],
  );
  assert.ok((statuses.get(422) ?? 0) > 100, JSON.stringify([...statuses]));
});
