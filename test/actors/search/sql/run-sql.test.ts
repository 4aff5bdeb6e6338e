/** SQL over documents: the older half of them in a segment, the newer one in a memtable. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runSql } from '../../../../actors/search/sql/run-sql.ts';
import { spending, spentBefore } from '../../../../actors/thread/spent.ts';
import { ApiError } from '../../../../protocol/errors.ts';
import { limits } from '../../../../protocol/limits.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { contextOf, holdingOf, snapshotOfRows } from '../../../support/query-context.ts';
import { entryOf, type TestRow } from '../../../support/segments.ts';

function document(sequence: number, meta: string, text = ''): TestRow {
  const id = `d${sequence}`;
  const entry = entryOf({ id, text: Buffer.from(text), meta: Buffer.from(meta), vector: null });
  return { id, sequence, writtenAt: 1.7e15 + sequence, entry };
}

const documents = (...metas: readonly string[]) => metas.map((meta, at) => document(at + 1, meta));

async function answered(rows: readonly TestRow[], sql: string) {
  const empty = { version: 1, sequence: 0, documents: 0, memtables: [], segments: [] };
  const snapshot = rows.length === 0 ? empty : (await snapshotOfRows(rows)).snapshot;
  const text = await runSql(contextOf(snapshot, new FakeClock()), { sql });
  return { text, ...JSON.parse(text) };
}

async function rowsOf(rows: readonly TestRow[], sql: string): Promise<unknown[][]> {
  return (await answered(rows, sql)).rows;
}

async function refusal(work: Promise<unknown>): Promise<ApiError> {
  const error = await work.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof ApiError, String(error));
  return error;
}

test('columns are the id and all keys, with types as wide as their values', async () => {
  const rows = documents(
    '{"n": 1, "f": 1.5, "s": "a", "flag": true, "none": null, "mixed": 1, "#hidden": 1, "id": 7}',
    '{"n": -9223372036854775808, "f": 2, "s": null, "flag": false, "mixed": 0.5, "object": {"a": [1, 2.50]}}',
    '{"n": 9223372036854775807, "late": "x", "mixed": "text", "huge": 1e400, "list": []}',
    '{"big": 123456789012345678901234567890}',
  );
  const { rows: found, columns, types } = await answered(rows, 'SHOW COLUMNS');
  assert.deepEqual(columns, ['name', 'type', 'segments']);
  assert.deepEqual(types, ['text', 'text', 'int']);
  assert.deepEqual(found, [
    ['id', 'text', 2],
    ['n', 'int', 2],
    ['f', 'float', 1],
    ['s', 'text', 1],
    ['flag', 'int', 1],
    ['none', 'null', 1],
    ['mixed', 'text', 2],
    ['object', 'text', 1],
    ['late', 'text', 1],
    ['huge', 'float', 1],
    ['list', 'text', 1],
    ['big', 'float', 1],
  ]);
  assert.deepEqual(await answered(rows, 'DESCRIBE docs').then((answer) => answer.rows), found);
});

test('every kind of value comes back as it was written', async () => {
  const rows = documents(
    '{"i": 435090932899640449, "f": 3.0, "t": true, "s": "it\\"s \\u00e9", "o": { "a" : [ 1, "x y" ] }, "m": 3, "z": null}',
    '{"i": -1, "f": 0.1, "t": false, "s": "", "o": [], "m": "three", "z": 1}',
  );
  const { text } = await answered(rows, 'SELECT id, i, f, t, s, o, m, z FROM docs');
  assert.ok(
    text.includes('["d1",435090932899640449,3,1,"it\\"s é","{\\"a\\":[1,\\"x y\\"]}","3",null]'),
    text,
  );
  assert.ok(text.includes('["d2",-1,0.1,0,"","[]","three",1]'), text);
});

test('SELECT * is the id and every column; the id of a document wins over a key of that name', async () => {
  const rows = documents('{"id": 5, "a": 1, "#x": 2}', '{"b": "y"}');
  const { columns, rows: found } = await answered(rows, 'SELECT * FROM docs');
  assert.deepEqual(columns, ['id', 'a', 'b']);
  assert.deepEqual(found, [
    ['d1', 1, null],
    ['d2', null, 'y'],
  ]);
});

test('columns without a name are named by their places', async () => {
  const { columns } = await answered(
    documents('{"n": 1}'),
    'SELECT n, n + 1, n AS x, COUNT(n) y FROM docs GROUP BY n',
  );
  assert.deepEqual(columns, ['n', 'c2', 'x', 'y']);
});

test('NULL is neither true nor false', async () => {
  const rows = documents('{"n": 1}', '{"n": 2}', '{"n": null}', '{}');
  const count = async (where: string) =>
    (await rowsOf(rows, `SELECT COUNT(*) FROM docs WHERE ${where}`))[0]?.[0];
  assert.equal(await count('n = 1'), 1);
  assert.equal(await count('NOT n = 1'), 1);
  assert.equal(await count('n = NULL'), 0);
  assert.equal(await count('n IS NULL'), 2);
  assert.equal(await count('n IN (1, NULL)'), 1);
  assert.equal(await count('n NOT IN (1, NULL)'), 0);
  assert.equal(await count('n NOT IN (1)'), 1);
  assert.equal(await count('n = 1 OR n IS NULL'), 3);
  assert.equal(await count('n = 1 AND NULL'), 0);
  assert.equal(await count('NOT (n = 1 AND NULL)'), 1);
  assert.equal(await count('TRUE OR NULL'), 4);
  assert.deepEqual(await rowsOf(rows, 'SELECT n, COUNT(*) FROM docs GROUP BY n ORDER BY n NULLS FIRST'), [
    [null, 2],
    [1, 1],
    [2, 1],
  ]);
});

test('aggregates answer for no rows, and for NULLs alone', async () => {
  const sql = 'SELECT COUNT(*), COUNT(n), COUNT(DISTINCT n), SUM(n), AVG(n), MIN(n), MAX(n) FROM docs';
  assert.deepEqual(await rowsOf(documents('{"n": 1}'), `${sql} WHERE n = 5`), [
    [0, 0, 0, null, null, null, null],
  ]);
  assert.deepEqual(await rowsOf(documents('{"n": null}'), sql), [[1, 0, 0, null, null, null, null]]);
  assert.deepEqual(
    await rowsOf(documents('{"n": 1}'), 'SELECT n, COUNT(*) FROM docs WHERE n = 5 GROUP BY n'),
    [],
  );
  assert.deepEqual(await rowsOf([], 'SELECT COUNT(*) FROM docs'), [[0]]);
  assert.deepEqual(await rowsOf([], 'SELECT id FROM docs'), []);
});

test('integers keep 64 bits in sums, comparisons and groups, and are refused beyond', async () => {
  const rows = documents(
    '{"n": 9007199254740993, "m": 1}',
    '{"n": 9007199254740993, "m": 2}',
    '{"n": 9007199254740992, "m": 3}',
    '{"n": -4, "m": 4}',
  );
  const { text } = await answered(
    rows,
    'SELECT n, COUNT(*), SUM(m) FROM docs WHERE n > 9007199254740991 GROUP BY n ORDER BY n DESC',
  );
  assert.match(text, /"rows":\[\[9007199254740993,2,3\],\[9007199254740992,1,3\]\]/);
  assert.match(
    (await answered(rows, 'SELECT SUM(n), MAX(n), MIN(n) FROM docs')).text,
    /\[\[27021597764222974,9007199254740993,-4\]\]/,
  );
  assert.match(
    (await answered(rows, 'SELECT n + 1 FROM docs WHERE n = 9007199254740993 LIMIT 1')).text,
    /\[\[9007199254740994\]\]/,
  );
  const wide = documents('{"n": 9223372036854775807}', '{"n": 1}', '{"n": -9223372036854775808}');
  const tooMuch = await refusal(answered(wide.slice(0, 2), 'SELECT SUM(n) FROM docs'));
  assert.equal(tooMuch.message, 'sql: line 1, column 8: the sum 9223372036854775808 does not fit 64 bits');
  assert.match((await answered(wide, 'SELECT SUM(n), AVG(n) FROM docs')).text, /\[\[0,0\]\]/);
  const overflow = await refusal(answered(wide, 'SELECT n + 1 FROM docs'));
  assert.match(overflow.message, /column 8: 9223372036854775807 \+ 1 does not fit 64 bits/);
});

test('texts are matched as search does, with and without other conditions', async () => {
  const rows = [
    document(1, '{"n": 1}', 'Tide tables'),
    document(2, '{"n": 2}', 'the TIDE'),
    document(3, '{"n": 3}', 'a harbour'),
    document(4, '{"n": 4}', 'tide 10% [x]'),
  ];
  const found = async (where: string) =>
    (await rowsOf(rows, `SELECT n FROM docs WHERE ${where} ORDER BY n`)).map(([n]) => n);
  assert.deepEqual(await found("contains(text, 'tide')"), [1, 2, 4]);
  assert.deepEqual(await found("grep(text, 'tide')"), [4]);
  assert.deepEqual(await found("grep(text, '(?i)^tide')"), [1, 4]);
  assert.deepEqual(await found("contains(text, '10% [x]') OR n = 3"), [3, 4]);
  assert.deepEqual(await found("NOT contains(text, 'tide')"), [3]);
  assert.deepEqual(await found("contains(text, 'tide') AND NOT grep(text, 'the')"), [1, 4]);
  assert.deepEqual(await found("contains(text, '')"), [1, 2, 3, 4]);
  const wrong = await refusal(answered(rows, "SELECT n FROM docs\nWHERE grep(text, '(')"));
  assert.match(wrong.message, /^sql: line 2, column 7: not a valid RE2 regex/);
});

test('LIKE knows characters, not bytes', async () => {
  const rows = documents(
    '{"s": "größe"}',
    '{"s": "x\\ny"}',
    '{"s": "50%"}',
    '{"s": "潮汐"}',
    '{"s": ""}',
    '{"s": "a\\\\b"}',
  );
  const found = async (pattern: string) =>
    (await rowsOf(rows, `SELECT s FROM docs WHERE s LIKE ${pattern}`)).map(([s]) => s);
  assert.deepEqual(await found("'gr__e'"), ['größe']);
  assert.deepEqual(await found("'__'"), ['潮汐']);
  assert.deepEqual(await found("'x_y'"), ['x\ny']);
  assert.deepEqual(await found("'%!%' ESCAPE '!'"), ['50%']);
  assert.deepEqual(await found("''"), ['']);
  assert.deepEqual(await found("'a\\b'"), ['a\\b']);
  assert.deepEqual(await found("'%汐'"), ['潮汐']);
});

test('times that count seconds are cut to minutes, hours and days', async () => {
  const rows = documents('{"t": 1700000059}', '{"t": 0}', '{"t": -1}', '{"t": null}');
  const sql =
    "SELECT DATE_TRUNC('minute', t), DATE_TRUNC('hour', t), DATE_TRUNC('day', t), EXTRACT(MINUTE FROM t) FROM docs";
  const { rows: found, types } = await answered(rows, sql);
  assert.deepEqual(types, ['time', 'time', 'time', 'int']);
  assert.deepEqual(found, [
    ['2023-11-14 22:14:00', '2023-11-14 22:00:00', '2023-11-14 00:00:00', 14],
    ['1970-01-01 00:00:00', '1970-01-01 00:00:00', '1970-01-01 00:00:00', 0],
    ['1969-12-31 23:59:00', '1969-12-31 23:00:00', '1969-12-31 00:00:00', 59],
    [null, null, null, null],
  ]);
  for (const t of [435_090_932_899_640_449n, 253_402_300_800n, -62_167_219_201n, 9_000_000_000_000n]) {
    const error = await refusal(answered(documents(`{"t": ${t}}`), "SELECT DATE_TRUNC('day', t) FROM docs"));
    assert.match(error.message, /outside of the years 0 to 9999/, String(t));
  }
  assert.deepEqual(
    await rowsOf(documents('{"t": 253402300799}'), "SELECT DATE_TRUNC('minute', t) FROM docs"),
    [['9999-12-31 23:59:00']],
  );
  const since = "SELECT t FROM docs WHERE DATE_TRUNC('day', t) >= '2023-11-14'";
  assert.deepEqual(await rowsOf(rows, since), [[1_700_000_059]]);
});

test('REGEXP_REPLACE replaces every match, with groups', async () => {
  const rows = documents('{"s": "http://www.example.org/a/b"}', '{"s": "cost: $5"}', '{"s": null}');
  const replaced = async (how: string) =>
    (await rowsOf(rows, `SELECT REGEXP_REPLACE(s, ${how}) FROM docs`)).map(([s]) => s);
  assert.deepEqual(await replaced("'^https?://(?:www\\.)?([^/]+)/.*$', '\\1'"), [
    'example.org',
    'cost: $5',
    null,
  ]);
  assert.deepEqual(await replaced("'[0-9]', '$&\\0'"), ['http://www.example.org/a/b', 'cost: $$&5', null]);
  assert.deepEqual(await replaced("'w', '\\\\'"), ['http://\\\\\\.example.org/a/b', 'cost: $5', null]);
  assert.match((await refusal(answered(rows, "SELECT REGEXP_REPLACE(s, '(', '') FROM docs"))).message, /RE2/);
  for (const [sql, place] of [
    ["SELECT s,\n  REGEXP_REPLACE(s, '(', '') FROM docs", 'line 2, column 21: '],
    ["SELECT s FROM docs WHERE s = 'a' OR grep(text, '(')", 'line 1, column 37: '],
    ["SELECT LENGTH(REGEXP_REPLACE(s, 'a', '\\9')) FROM docs", 'line 1, column 33: '],
  ] as const)
    assert.ok((await refusal(answered(rows, sql))).fields?.sql?.startsWith(place), sql);
});

test('values that columns leave to the documents are read from these', async () => {
  const long = 'x'.repeat(5_000);
  const rows = documents(
    `{"s": "${long}", "n": 1}`,
    '{"s": "short", "n": 123456789012345678901234567890}',
    '{"n": 2}',
  );
  assert.deepEqual(await rowsOf(rows, 'SELECT LENGTH(s) FROM docs'), [[5_000], [5], [null]]);
  assert.deepEqual(await rowsOf(rows, `SELECT COUNT(*) FROM docs WHERE s = '${long}'`), [[1]]);
  assert.deepEqual(await rowsOf(rows, 'SELECT n FROM docs ORDER BY n DESC'), [
    [1.2345678901234568e29],
    [2],
    [1],
  ]);
});

test('an answer has at most 10,000 rows, and says where there were more', async () => {
  const rows = Array.from({ length: limits.sqlRowsMax + 5 }, (_, at) => document(at + 1, `{"n": ${at}}`));
  const all = await answered(rows, 'SELECT n FROM docs');
  assert.equal(all.rows.length, limits.sqlRowsMax);
  assert.equal(all.truncated, true);
  assert.deepEqual(all.rows[0], [0]);
  const last = await answered(rows, `SELECT n FROM docs ORDER BY n DESC LIMIT 3 OFFSET ${limits.sqlRowsMax}`);
  assert.deepEqual(last.rows, [[4], [3], [2]]);
  assert.equal(last.truncated, false);
  const exact = await answered(rows, `SELECT n FROM docs LIMIT ${limits.sqlRowsMax}`);
  assert.deepEqual([exact.rows.length, exact.truncated], [limits.sqlRowsMax, false]);
  const grouped = await answered(rows, 'SELECT n, COUNT(*) FROM docs GROUP BY n');
  assert.deepEqual([grouped.rows.length, grouped.truncated], [limits.sqlRowsMax, true]);
  assert.deepEqual(await rowsOf(rows, 'SELECT n FROM docs LIMIT 0'), []);
});

test('many groups, and replaced texts, are the same over several frames', async () => {
  const count = 40_000;
  const rows = Array.from({ length: count }, (_, at) =>
    document(at + 1, `{"n": ${at}, "s": "a${at % 3_000}"}`),
  );
  const { snapshot } = await snapshotOfRows(rows);
  const asked = async (sql: string) =>
    JSON.parse(await runSql(contextOf(snapshot, new FakeClock()), { sql })).rows as unknown[][];
  assert.deepEqual(await asked('SELECT n, COUNT(*) FROM docs GROUP BY n ORDER BY n DESC LIMIT 2'), [
    [count - 1, 1],
    [count - 2, 1],
  ]);
  assert.deepEqual(await asked('SELECT n - 1, s, COUNT(*) FROM docs GROUP BY 1, 2 HAVING n - 1 > 39997'), [
    [39_998, 'a999', 1],
  ]);
  const replaced =
    "SELECT REGEXP_REPLACE(s, '^a([0-9])', 'b\\1-') AS r, COUNT(*) AS c FROM docs GROUP BY r ORDER BY c DESC, r LIMIT 2";
  assert.deepEqual(await asked(replaced), [
    ['b0-', 14],
    ['b1-', 14],
  ]);
});

test('rows that WHERE leaves of many frames are grouped, summed and ordered as one by one', async () => {
  const count = 40_000;
  const made = Array.from({ length: count }, (_, at) => ({
    n: at % 7_001,
    big: 2 ** 40 + (at % 90),
    few: at % 11 === 0 ? null : at % 5,
    s: `a${at % 13}`,
    keep: at % 3,
  }));
  const { snapshot } = await snapshotOfRows(made.map((meta, at) => document(at + 1, JSON.stringify(meta))));
  const asked = async (sql: string) =>
    JSON.parse(await runSql(contextOf(snapshot, new FakeClock()), { sql })).rows as unknown[][];
  const sums = new Map<string, [number, string, number, number, number, number]>();
  for (const { n, big, few, s, keep } of made) {
    if (keep !== 1 || few === 0) continue;
    const key = `${n} ${s}`;
    const known = sums.get(key) ?? [n, s, 0, 0, 0, 0];
    sums.set(key, [n, s, known[2] + 1, known[3] + big, known[4] + (few ?? 0), known[5] + s.length]);
  }
  const first = [...sums.values()].sort(
    (a, b) => b[2] - a[2] || b[3] - a[3] || a[0] - b[0] || (a[1] < b[1] ? -1 : 1),
  );

  const sql =
    'SELECT n, s, COUNT(*) AS c, SUM(big) AS b, COALESCE(SUM(few), 0), SUM(LENGTH(s)) FROM docs ' +
    'WHERE keep IN (1, 9) AND (few <> 0 OR few IS NULL) GROUP BY n, s ORDER BY c DESC, b DESC, n, s LIMIT 50 OFFSET 7';
  assert.deepEqual(await asked(sql), first.slice(7, 57));
});

test('a float that leaves all bounds is refused, not answered as something else', async () => {
  const rows = documents('{"x": 1.5e308}', '{"x": 1.5e308}');
  const error = await refusal(answered(rows, 'SELECT SUM(x) FROM docs'));
  assert.match(error.message, /^sql: a number of the answer is larger than a float can be/);
});

test('an answer counts the chunks, and those that were read', async () => {
  const rows = Array.from({ length: 10_000 }, (_, at) => document(at + 1, `{"n": ${at}}`));
  const all = await answered(rows, 'SELECT SUM(n) FROM docs');
  assert.deepEqual(all.rows, [[49_995_000]]);
  assert.equal(all.scanned, all.chunks);
  // The older half is in a segment, whose directory knows the range.
  for (const where of ['n >= 5000', 'n = 7000', 'n IN (6000, 9999)', 'n > 0 AND n > 4999.5', '4999 < n']) {
    const found = await answered(rows, `SELECT COUNT(*) > 0, MIN(n) >= 5000 FROM docs WHERE ${where}`);
    assert.deepEqual(found.rows, [[1, 1]], where);
    assert.equal(found.scanned, all.chunks - 1, where);
  }
  assert.equal((await answered(rows, "SELECT n FROM docs WHERE id = '' OR n > 8000")).scanned, all.chunks);
  const some = await answered(rows, 'SELECT n FROM docs LIMIT 1');
  assert.equal(some.scanned, 1);
  assert.ok(some.chunks >= 2);
});

test('a query that takes too long ends with query_timeout', async () => {
  const rows = Array.from({ length: 3_000 }, (_, at) => document(at + 1, `{"n": ${at}}`, `text ${at}`));
  const { snapshot } = await snapshotOfRows(rows);
  for (const sql of ['SELECT SUM(n) FROM docs', "SELECT COUNT(*) FROM docs WHERE contains(text, 'ext')"]) {
    const context = contextOf(snapshot, new FakeClock(), 0);
    context.slice.due = () => true;
    const error = await refusal(runSql(context, { sql }));
    assert.equal(error.code, 'query_timeout');
  }
});

test('the memory of groups and distinct values is bounded', async () => {
  const long = 'x'.repeat(900);
  const rows = Array.from({ length: 400 }, (_, at) => document(at + 1, `{"s": "${long}${at}"}`));
  const { snapshot } = await snapshotOfRows(rows);
  for (const sql of [
    'SELECT s, COUNT(*) FROM docs GROUP BY s',
    'SELECT COUNT(DISTINCT s) FROM docs',
    'SELECT MIN(s) FROM docs GROUP BY s',
    'SELECT s FROM docs ORDER BY s',
  ]) {
    const context = { ...contextOf(snapshot, new FakeClock()), sqlHolding: holdingOf(100_000) };
    const error = await refusal(spending(context, () => runSql(context, { sql })));
    assert.equal(error.status, 422);
    assert.match(error.fields?.sql ?? '', /take more than/);
    assert.ok(spentBefore(error).cpuMs > 0, 'it was a query');
  }
});

test('rows beyond a limit or a budget are on later pages, which make up the answer', async () => {
  const rows = documents(...Array.from({ length: 40 }, (_, i) => `{"n": ${i}, "s": "${'x'.repeat(i)}"}`));
  const context = contextOf((await snapshotOfRows(rows)).snapshot, new FakeClock());
  const sql = 'SELECT n, s FROM docs ORDER BY n';
  const whole = JSON.parse(await runSql(context, { sql }));

  for (const budget of [{ limit: 7 }, { max_bytes: 1_200 }, { limit: 30, max_bytes: 1_500 }]) {
    const pages: unknown[][] = [];
    for (let cursor = ''; ; ) {
      const text = await runSql(context, { sql, ...budget, cursor });
      const page = JSON.parse(text);
      pages.push(page.rows);
      assert.ok(page.rows.length <= (budget.limit ?? 40));
      assert.ok(Buffer.byteLength(text) <= (budget.max_bytes ?? 100_000));
      assert.equal(page.truncated, page.next !== undefined);
      if (page.next === undefined) break;
      cursor = page.next;
    }
    assert.ok(pages.length > 1);
    assert.deepEqual(pages.flat(), whole.rows);
  }
  assert.deepEqual([whole.truncated, whole.next], [false, undefined]);
});

test('a cursor goes with its statement, and a row that is over the budget is refused', async () => {
  const rows = documents('{"n": 1}', `{"n": 2, "s": "${'x'.repeat(3_000)}"}`);
  const context = contextOf((await snapshotOfRows(rows)).snapshot, new FakeClock());
  const { next } = JSON.parse(await runSql(context, { sql: 'SELECT n FROM docs', limit: 1 }));

  const foreign = await refusal(runSql(context, { sql: 'SELECT id FROM docs', cursor: next }));
  const large = await refusal(runSql(context, { sql: 'SELECT s FROM docs WHERE n = 2', max_bytes: 2_000 }));

  assert.deepEqual(Object.keys(foreign.fields ?? {}), ['cursor']);
  assert.match(large.fields?.max_bytes ?? '', /the next row alone takes 4005 bytes/);
  const listed = JSON.parse(await runSql(context, { sql: 'SHOW COLUMNS', limit: 1 }));
  assert.deepEqual([listed.rows.length, listed.truncated, typeof listed.next], [1, true, 'string']);
});
