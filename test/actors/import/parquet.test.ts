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

  test('their types, texts, nulls and ids are kept', async () => {
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

  test('rows in many pages are all imported', async () => {
    const namespace = await imported(
      await written("SELECT i AS n, 'v' || (i % 1000) AS v FROM range(70000) t(i)"),
    );
    assert.deepEqual(
      await sqlRows(server, namespace, 'SELECT COUNT(*), SUM(n), COUNT(DISTINCT v) FROM docs'),
      [[70_000, 2_449_965_000, 1_000]],
    );
  });

  const everyKind = `SELECT (hash(i % 3000) % 30000)::INT - 9000 AS a, ((hash(i % 2500) // 2)::BIGINT - 4611686018427387904) AS b,
    hash(i)::UBIGINT AS c, (hash(i % 777) % 100000)::DOUBLE / 100 AS d, CASE WHEN i % 7 > 0 THEN (i % 900) / 8.0 END AS e,
    (hash(i) % 1000000)::DECIMAL(18, 3) / 7 AS f, (hash(i % 50)::HUGEINT * 1000000007)::DECIMAL(38, 5) AS g,
    DATE '1999-12-31' + (hash(i % 1234) % 9000)::INT AS h, TIMESTAMP_NS '1969-01-01 00:00:00' + to_seconds((hash(i % 3333) % 999999999)::BIGINT) AS j,
    CASE WHEN i % 5 > 0 THEN 'tab' || chr(9) || '"é' || (hash(i % 3001) % 5000) END AS k, TIME '00:00:00' + to_seconds((i % 86400)::BIGINT) AS l,
    ('00000000-0000-0000-0000-' || lpad((i % 1500)::VARCHAR, 12, '0'))::UUID AS m, i % 3 = 0 AS n, i AS row`;
  for (const [options, rows] of [
    ['', 9_000],
    [', DICTIONARY_SIZE_LIMIT 0', 5_000],
    [', DICTIONARY_SIZE_LIMIT 0, PARQUET_VERSION v2', 5_000],
    [', DICTIONARY_SIZE_LIMIT 9000, ROW_GROUP_SIZE 4096, PARQUET_VERSION v2', 9_000],
  ] as const)
    test(`values of every kind, of dictionaries and not, in windows of their rows: ${rows}${options}`, async () => {
      const select = `${everyKind} FROM range(${rows}) t(i)`;
      const namespace = await imported(await written(select, options), { id: 'row', text: 'k,l,h,b' });
      const names = 'a, b, c, d, e, f, g, h, j, k, l, m, n';
      const shown = (rows: readonly (readonly unknown[])[]) =>
        rows.map((row) => row.map((value) => (value === null ? null : String(value))));
      const ours = await sqlRows(server, namespace, `SELECT ${names} FROM docs ORDER BY row`);
      const theirs = await oracle.rows(
        `SELECT a, b::DOUBLE, c::DOUBLE, d, e, f::DOUBLE, g::DOUBLE, h::VARCHAR, strftime(j, '%Y-%m-%d %H:%M:%S'), k, l::VARCHAR, m::VARCHAR, n::INT
         FROM (${select}) ORDER BY row`,
      );
      assert.deepEqual(shown(ours), shown(theirs));
      // JSON's numbers are doubles here: the last digits of wide ones are seen in a text, and in a comparison.
      const [[text, b, count]] = (await oracle.rows(
        `SELECT concat_ws(chr(10), k, l, h, b), b, (SELECT count(*) FROM (${select}) WHERE b = s.b)
         FROM (${select}) s WHERE row = 4321`,
      )) as [[string, bigint, bigint]];
      assert.equal((await server.get(namespace, '4321')).body.text, text);
      assert.deepEqual(await sqlRows(server, namespace, `SELECT COUNT(*) FROM docs WHERE b = ${b}`), [
        [Number(count)],
      ]);
    });

  test('a dictionary too large to be rendered at once', async () => {
    const namespace = await imported(
      await written(
        "SELECT i % 140000 AS n, 'v' || (i % 140000) AS v FROM range(280000) t(i)",
        ', DICTIONARY_SIZE_LIMIT 1000000, ROW_GROUP_SIZE 300000',
      ),
    );
    assert.deepEqual(
      await sqlRows(
        server,
        namespace,
        "SELECT COUNT(*), SUM(n), COUNT(DISTINCT n), COUNT(DISTINCT v) FROM docs WHERE v LIKE 'v%'",
      ),
      [[280_000, 19_599_860_000, 140_000, 140_000]],
    );
  });

  test('rows of long values among short ones', async () => {
    const select =
      "SELECT i AS id, repeat(chr(1) || 'long', CASE WHEN i % 10 = 9 THEN 1500 ELSE i END) AS v FROM range(40) t(i)";
    const namespace = await imported(await written(select), { id: 'id', text: 'v' });
    assert.equal((await server.get(namespace, '19')).body.text.length, 7_500);
    assert.equal((await server.get(namespace, '18')).body.meta.v, '\u0001long'.repeat(18));
  });
});

test('a long text is left out of its meta, of rows that share its dictionary or not', async () => {
  for (const distinct of [1, 1_000]) {
    const namespace = fresh();
    const select = `SELECT i AS id, 'title ' || i AS title, CASE WHEN i % 3 = 0 THEN repeat(chr(97 + (i % ${distinct} % 20)::INT), 17000) ELSE 'short' END AS body FROM range(30) t(i)`;
    const { status, body } = await importInto(server, namespace, await written(select), {
      format: 'parquet',
      id: 'id',
      text: 'title,body',
    });
    assert.deepEqual([status, body.rows, body.text_only], [200, 30, 10], JSON.stringify(body));
    const [long, short] = [(await server.get(namespace, '3')).body, (await server.get(namespace, '4')).body];
    assert.deepEqual([long.meta, long.text.length], [{ id: 3, title: 'title 3' }, 17_008]);
    assert.deepEqual(short.meta, { id: 4, title: 'title 4', body: 'short' });
    assert.deepEqual(await sqlRows(server, namespace, 'SELECT COUNT(*), COUNT(body) FROM docs'), [[30, 20]]);
  }
});

const refused: readonly (readonly [string, string, RegExp])[] = [
  [
    'a row whose values take too much',
    "SELECT CASE WHEN i = 2 THEN repeat('a', 6000000) END AS a, CASE WHEN i = 2 THEN repeat('b', 3000000) END AS b FROM range(5) t(i)",
    /row 3: its values take more than 8388608 bytes/u,
  ],
  [
    'intervals',
    'SELECT INTERVAL 1 DAY AS i',
    /the column "i" has the type INTERVAL, which is not imported: skip it/u,
  ],
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

const nested = `SELECT CASE WHEN i % 5 > 0 THEN list_transform(range(i % 4), x -> CASE WHEN x <> 1 THEN x + i END) END AS list,
  {'a': i, 'b': CASE WHEN i % 3 > 0 THEN ['x' || i, NULL] END} AS struct, MAP {'k' || (i % 2): i / 3.0} AS map FROM range(150) t(i)`;

const damages = Number(process.env.PARQUET_DAMAGES ?? 100);

test('damaged files are refused, or give what is still readable; nothing breaks', async () => {
  const random = seededRandom(77);
  const files = [
    await written(everything, ', COMPRESSION SNAPPY'),
    await written(everything, ', COMPRESSION ZSTD, PARQUET_VERSION v2'),
    await written(nested, ', COMPRESSION UNCOMPRESSED'),
    await written(nested, ', COMPRESSION GZIP, PARQUET_VERSION v2'),
  ];
  const statuses = new Map<number, number>();
  for (let round = 0; round < damages; round++) {
    const file = Buffer.from(files[round % files.length] as Buffer);
    const flips = 1 + Math.floor(random() * 4);
    // Lengths and counts stand in heads and in the footer.
    const from = random() < 0.5 ? Math.max(0, file.length - 1_500) : 0;
    for (let flip = 0; flip < flips; flip++)
      file[from + Math.floor(random() * (file.length - from))] = Math.floor(random() * 256);
    const { status, body } = await importInto(server, fresh(), file, { format: 'parquet' });
    assert.ok([200, 413, 422].includes(status), JSON.stringify(body));
    // In words of ours, not of what failed within.
    if (status === 422)
      assert.doesNotMatch(
        body.error,
        /cannot|undefined|property|function|bounds|offset|invalid|thrift|\bat \d/iu,
      );
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
  }
  assert.deepEqual(
    [...statuses.keys()].filter((status) => ![200, 413, 422].includes(status)),
    [],
  );
  assert.ok((statuses.get(422) ?? 0) > damages / 4, JSON.stringify([...statuses]));
});
