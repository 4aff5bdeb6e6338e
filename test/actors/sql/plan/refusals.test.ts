/** What is wrong with a statement, where it stands, and what to write instead. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseSql } from '../../../../actors/sql/parse/parser.ts';
import { functions } from '../../../../actors/sql/parse/syntax.ts';
import { bindSelect } from '../../../../actors/sql/plan/bind.ts';
import type { SqlColumn } from '../../../../actors/sql/plan/bound.ts';
import { locating } from '../../../../actors/sql/sql-error.ts';
import { ApiError } from '../../../../protocol/errors.ts';
import { limits } from '../../../../protocol/limits.ts';
import { tools } from '../../../../protocol/mcp-tools.ts';

const columns: readonly SqlColumn[] = [
  { name: 'id', type: 'text' },
  { name: 'n', type: 'int' },
  { name: 'f', type: 'float' },
  { name: 's', type: 'text' },
  { name: 'day', type: 'date' },
  { name: 'at', type: 'time' },
  { name: 'nothing', type: 'null' },
  { name: 'Twice', type: 'int' },
  { name: 'twice', type: 'int' },
];

function problemOf(sql: string): string {
  try {
    locating(sql, () => {
      const statement = parseSql(sql);
      if (statement.kind === 'select') bindSelect(statement, columns);
    });
  } catch (error) {
    assert.ok(error instanceof ApiError, String(error));
    assert.equal(error.code, 'invalid');
    assert.equal(error.status, 422);
    const problem = error.fields?.sql ?? '';
    assert.equal(error.message, `sql: ${problem}`);
    return problem;
  }
  return '';
}

const refusals: readonly (readonly [sql: string, place: string, says: RegExp])[] = [
  ['', '1, column 1', /statement ends where SELECT/],
  ['SELEC n FROM docs', '1, column 1', /"SELEC" where SELECT/],
  ['INSERT INTO docs VALUES (1)', '1, column 1', /"INSERT" where SELECT/],
  ['SELECT n', '1, column 9', /statement ends where FROM/],
  ['SELECT n FROM', '1, column 14', /statement ends where docs/],
  ['SELECT n FROM users', '1, column 15', /the only table is docs, not "users"/],
  ['SELECT n FROM docs, docs', '1, column 19', /joins are not supported/],
  ['SELECT n FROM docs JOIN docs ON 1 = 1', '1, column 20', /joins are not supported/],
  ['SELECT n FROM docs UNION SELECT n FROM docs', '1, column 20', /UNION is not supported/],
  ['WITH x AS (SELECT n FROM docs) SELECT n FROM x', '1, column 1', /WITH is not supported/],
  ['SELECT DISTINCT n FROM docs', '1, column 8', /GROUP BY/],
  ['SELECT *, n FROM docs', '1, column 9', /\* stands alone/],
  ['SELECT n FROM docs WHERE n IN (SELECT n FROM docs)', '1, column 32', /subqueries/],
  ['SELECT (SELECT 1) FROM docs', '1, column 9', /subqueries/],
  ['SELECT n * 2 FROM docs', '1, column 10', /\* is not supported: \+ and - are/],
  ['SELECT n / 2 FROM docs', '1, column 10', /\/ is not supported/],
  ['SELECT n % 2 FROM docs', '1, column 10', /% is not supported/],
  ["SELECT s || 'x' FROM docs", '1, column 10', /\|\| is not supported/],
  ['SELECT n FROM docs WHERE n BETWEEN 1 AND 2', '1, column 28', /x >= a AND x <= b/],
  ['SELECT NULLIF(n, 1) FROM docs', '1, column 8', /NULLIF is not supported/],
  ['SELECT MEDIAN(n) FROM docs', '1, column 8', /MEDIAN is not known here; these are: COUNT/],
  ['SELECT STDDEV(n) FROM docs', '1, column 8', /STDDEV is not known here/],
  ['SELECT ROW_NUMBER() OVER () FROM docs', '1, column 8', /ROW_NUMBER is not known/],
  ['SELECT SUM(n) OVER () FROM docs', '1, column 15', /window functions/],
  ['SELECT SUM(n) FILTER (WHERE n > 1) FROM docs', '1, column 15', /CASE inside/],
  ['SELECT CAST(n AS TEXT) FROM docs', '1, column 8', /CAST is not supported/],
  ["SELECT s FROM docs WHERE s ILIKE 'a'", '1, column 28', /contains\(text/],
  ['SELECT n FROM docs WHERE 1 < n < 3', '1, column 32', /a < b AND b < c/],
  ['SELECT SUM(COUNT(n)) FROM docs', '1, column 12', /can not stand in another/],
  ['SELECT n FROM docs WHERE COUNT(*) > 1', '1, column 26', /HAVING takes aggregates/],
  ['SELECT n FROM docs GROUP BY COUNT(*)', '1, column 29', /can not stand in GROUP BY/],
  ['SELECT COUNT(n, f) FROM docs', '1, column 15', /COUNT takes one value/],
  ['SELECT SUM(*) FROM docs', '1, column 12', /COUNT\(\*\)/],
  ['SELECT SUM(s) FROM docs', '1, column 8', /SUM takes numbers, not text/],
  ['SELECT AVG(day) FROM docs', '1, column 8', /AVG takes numbers, not a date/],
  ['SELECT n, COUNT(*) FROM docs', '1, column 8', /"n" must stand in GROUP BY or in an aggregate/],
  ['SELECT n FROM docs GROUP BY f', '1, column 8', /must stand in GROUP BY/],
  ['SELECT * FROM docs GROUP BY n', '1, column 1', /SELECT \* does not go with GROUP BY/],
  ['SELECT n FROM docs GROUP BY 2', '1, column 29', /positions from 1 to 1/],
  ['SELECT n FROM docs ORDER BY 0', '1, column 29', /positions from 1 to 1/],
  ['SELECT COUNT(*) AS c FROM docs GROUP BY c', '1, column 8', /an aggregate can not be grouped by/],
  ['SELECT nope FROM docs', '1, column 8', /no column "nope"; there are: id, n, f/],
  ['SELECT constructor FROM docs', '1, column 8', /no column "constructor"/],
  ['SELECT toString(n) FROM docs', '1, column 8', /TOSTRING is not known here/],
  ['SELECT "N" FROM docs', '1, column 8', /no column "N"/],
  ['SELECT TWICE FROM docs', '1, column 8', /may be "Twice" and "twice"/],
  ['SELECT text FROM docs', '1, column 8', /no column: contains\(text/],
  ['SELECT docs.n FROM docs', '1, column 12', /without a table/],
  ['SELECT n FROM docs WHERE s = 1', '1, column 26', /text and an int can not be compared/],
  ["SELECT n FROM docs WHERE n = '1'", '1, column 26', /an int and text/],
  ['SELECT n FROM docs WHERE s', '1, column 26', /a condition is needed here, and this is text/],
  ["SELECT n FROM docs WHERE day = 'soon'", '1, column 26', /"soon" does not read as YYYY-MM-DD/],
  ["SELECT n FROM docs WHERE at = '2024-02-30'", '1, column 26', /does not read/],
  ['SELECT n FROM docs WHERE day = s', '1, column 26', /a date and text/],
  ["SELECT n FROM docs WHERE n IN (1, 'a')", '1, column 35', /an int and text/],
  ['SELECT n FROM docs WHERE n IN (f)', '1, column 32', /IN takes values/],
  ['SELECT n FROM docs WHERE n IN ()', '1, column 32', /"\)" where a value/],
  ["SELECT n FROM docs WHERE n LIKE 'a'", '1, column 26', /LIKE takes text, not an int/],
  ['SELECT n FROM docs WHERE s LIKE s', '1, column 33', /a pattern in single quotes/],
  ["SELECT n FROM docs WHERE s LIKE 'a' ESCAPE 'ab'", '1, column 44', /one character/],
  ['SELECT n FROM docs WHERE n IS 1', '1, column 31', /"1" where NULL/],
  ['SELECT n FROM docs WHERE n NOT 1', '1, column 32', /IN or LIKE/],
  ['SELECT LENGTH(n) FROM docs', '1, column 15', /LENGTH takes text, not an int/],
  ['SELECT LENGTH(s, s) FROM docs', '1, column 8', /LENGTH takes one value/],
  ["SELECT DATE_TRUNC('year', at) FROM docs", '1, column 19', /'minute', 'hour' or 'day'/],
  ["SELECT DATE_TRUNC('day', s) FROM docs", '1, column 26', /takes a time or a date or an int, not text/],
  ["SELECT DATE_TRUNC('day') FROM docs", '1, column 8', /takes a unit and a value/],
  ['SELECT EXTRACT(HOUR FROM at) FROM docs', '1, column 16', /MINUTE alone/],
  ['SELECT EXTRACT(MINUTE at) FROM docs', '1, column 23', /"at" where FROM/],
  ['SELECT REGEXP_REPLACE(s, s, s) FROM docs', '1, column 26', /pattern of REGEXP_REPLACE is a string/],
  ["SELECT REGEXP_REPLACE(s, 'a') FROM docs", '1, column 8', /a value, a pattern and a replacement/],
  ['SELECT COALESCE() FROM docs', '1, column 8', /at least one value/],
  ['SELECT COALESCE(n, s) FROM docs', '1, column 8', /an int and text can not be results/],
  ["SELECT CASE WHEN n = 1 THEN 1 ELSE 'a' END FROM docs", '1, column 8', /an int and text/],
  ['SELECT CASE n WHEN 1 THEN 2 END FROM docs', '1, column 13', /followed by WHEN/],
  ['SELECT CASE WHEN n = 1 THEN 2 FROM docs', '1, column 31', /"FROM" where END/],
  ["SELECT contains(text, 'a') FROM docs", '1, column 8', /in WHERE alone/],
  ["SELECT n FROM docs WHERE contains(s, 'a')", '1, column 35', /looks at the text of documents/],
  ['SELECT n FROM docs WHERE grep(text, s)', '1, column 37', /what to look for, in single quotes/],
  ['SELECT n FROM docs LIMIT -1', '1, column 26', /a whole number after LIMIT/],
  ['SELECT n FROM docs LIMIT 1.5', '1, column 26', /a whole number after LIMIT/],
  ['SELECT n FROM docs OFFSET x', '1, column 27', /a whole number after OFFSET/],
  ['SELECT n FROM docs; SELECT n FROM docs', '1, column 21', /"SELECT" where the end/],
  ['SELECT n FROM docs ORDER BY n NULLS', '1, column 36', /LAST/],
  ["SELECT 'a FROM docs", '1, column 8', /a string does not end: close it/],
  ['SELECT "a FROM docs', '1, column 8', /a name does not end: close it/],
  ['SELECT "" FROM docs', '1, column 8', /a name is empty/],
  ['SELECT n /* FROM docs', '1, column 10', /a comment does not end: close it/],
  ['SELECT n FROM docs WHERE n = 1x', '1, column 31', /a letter stands right after a number/],
  ['SELECT 1e999 FROM docs', '1, column 8', /too large/],
  ['SELECT ? FROM docs', '1, column 8', /"\?" means nothing in SQL/],
  ['SELECT n\nFROM docs\nWHERE größe = 1', '3, column 7', /no column "größe"/],
  ['SELECT "𝒳", nope FROM docs', '1, column 8', /no column/],
  ['SHOW TABLES', '1, column 6', /"TABLES" where COLUMNS/],
  ['DESCRIBE users', '1, column 10', /the only table is docs/],
];

for (const [sql, place, says] of refusals) {
  test(`refused: ${sql === '' ? 'nothing' : sql}`, () => {
    const problem = problemOf(sql);
    assert.match(problem, says);
    assert.ok(problem.startsWith(`line ${place}: `), problem);
  });
}

test('columns count characters, and lines from 1', () => {
  assert.match(problemOf("SELECT '𝒳𝒳', nope FROM docs"), /^line 1, column 14: /);
});

test('what is too deep, too long or too often is refused by its limit', () => {
  const deep = (levels: number) => `SELECT ${'('.repeat(levels)}n${')'.repeat(levels)} FROM docs`;
  assert.equal(problemOf(deep(limits.sqlDepthMax - 1)), '');
  assert.match(problemOf(deep(limits.sqlDepthMax)), /more than 64 deep/);
  assert.match(problemOf(`SELECT ${'NOT '.repeat(9_000)}n FROM docs WHERE ${'-'.repeat(1)}n = 1`), /^$/);
  const many = (count: number) => Array.from({ length: count }, () => 1).join(', ');
  assert.equal(problemOf(`SELECT n FROM docs WHERE n IN (${many(limits.sqlInListMax)})`), '');
  assert.match(
    problemOf(`SELECT n FROM docs WHERE n IN (${many(limits.sqlInListMax + 1)})`),
    /at most 10000 values/,
  );
  assert.match(
    problemOf(`SELECT n FROM docs GROUP BY ${many(limits.sqlExpressionsMax)}`),
    /at most 4096 expressions/,
  );
  const sum = (terms: number) => `SELECT ${Array.from({ length: terms }, () => 'n').join(' + ')} FROM docs`;
  assert.equal(problemOf(sum(limits.sqlTermsMax)), '');
  assert.match(problemOf(sum(limits.sqlTermsMax + 1)), /at most 256 terms/);
  assert.equal(problemOf(`SELECT ${'- '.repeat(20_001)}n, ${'- '.repeat(20_000)}1 FROM docs`), '');
  assert.match(problemOf(`SELECT n FROM docs WHERE s LIKE '${'%a'.repeat(501)}'`), /at most 1000 characters/);
  assert.match(problemOf(`SELECT REGEXP_REPLACE(s, 'a', '${'b'.repeat(1_001)}') FROM docs`), /at most 1000/);
  assert.match(problemOf(`SELECT ${many(limits.sqlColumnsMax + 1)} FROM docs`), /at most 1024 columns/);
  const nested = (levels: number): string => (levels === 0 ? 'n' : `COALESCE(${nested(levels - 1)}, n + 1)`);
  assert.equal(problemOf(`SELECT ${nested(30)} AS k, COUNT(*) FROM docs GROUP BY k ORDER BY k`), '');
  const keys = (clause: string, count: number) =>
    `SELECT n FROM docs ${clause} BY ${Array.from({ length: count }, (_, at) => `n + ${at}`).join(', ')}`;
  assert.equal(problemOf(keys('ORDER', limits.sqlOrderKeysMax)), '');
  assert.match(problemOf(keys('ORDER', limits.sqlOrderKeysMax + 1)), /ORDER BY takes at most 128 keys/);
  assert.match(problemOf(keys('GROUP', limits.sqlGroupKeysMax + 1)), /GROUP BY takes at most 128 keys/);
  const aggregates = (name: string, count: number) =>
    `SELECT n FROM docs GROUP BY n HAVING ${Array.from({ length: count }, (_, at) => `${name}n - ${at} - n) > 1`).join(' OR ')}`;
  assert.match(
    problemOf(aggregates('COUNT(DISTINCT ', limits.sqlDistinctAggregatesMax + 1)),
    /at most 64 aggregates with DISTINCT/,
  );
  const texts = (count: number) =>
    `SELECT n FROM docs WHERE ${Array.from({ length: count }, () => "contains(text, 'a')").join(' OR ')}`;
  assert.equal(problemOf(texts(limits.sqlTextPredicatesMax)), '');
  assert.match(problemOf(texts(limits.sqlTextPredicatesMax + 1)), /at most 8 of contains\(\) and grep\(\)/);
});

test('the tool for agents names every function', () => {
  const description = tools.get('sql_query')?.description ?? '';

  const unnamed = functions.filter((name) => !description.includes(name.toUpperCase()));

  assert.deepEqual(unnamed, [], 'the description of sql_query in protocol/mcp-tools.ts leaves them out');
});

const accepted: readonly string[] = [
  'select n from docs',
  'SELECT n FROM docs;',
  'SELECT n -- the number\nFROM docs /* all of them */',
  'SELECT N, "n", Id FROM DOCS',
  'SELECT n AS "from", f AS g, s t FROM docs',
  'SELECT n AS k, COUNT(*) FROM docs GROUP BY k HAVING k > 1 AND COUNT(*) > 2 ORDER BY k DESC NULLS FIRST LIMIT 3 OFFSET 2',
  'SELECT n + 1, COUNT(*) AS c FROM docs GROUP BY n + 1 HAVING c > 1 ORDER BY COUNT(*), n + 1',
  'SELECT COUNT(*), COUNT(n), COUNT(DISTINCT s), SUM(n), AVG(f), MIN(day), MAX(at), SUM(DISTINCT n), AVG(DISTINCT f) FROM docs',
  "SELECT n FROM docs WHERE day >= '2024-01-01' AND at < '2024-01-01 10:00:00' AND day < at AND day IN ('2024-01-01')",
  "SELECT n FROM docs WHERE s IN ('a', NULL) OR s NOT IN ('b') OR n != 1 AND NOT n <> 2",
  "SELECT n FROM docs WHERE s LIKE 'a%' ESCAPE '!' OR s NOT LIKE '_' OR f IS NOT NULL",
  "SELECT CHAR_LENGTH(s), STRLEN(s), LENGTH('x'), EXTRACT(minute FROM at), DATE_TRUNC('DAY', day) FROM docs",
  "SELECT REGEXP_REPLACE(s, '^a', '\\1'), COALESCE(n, f, 1.5), CASE WHEN n THEN s END FROM docs",
  "SELECT n FROM docs WHERE contains(text, 'it''s') AND (grep(text, '(?i)x') OR NOT contains(TEXT, 'y'))",
  'SELECT n = 1, n > f, TRUE, NULL, -n, +1, - 2.5e-3 FROM docs',
  'SELECT nothing, COUNT(nothing), nothing = 1 FROM docs GROUP BY nothing',
  'SELECT MIN(DISTINCT n) FROM docs',
  'SHOW COLUMNS',
  'show columns from docs;',
  'DESCRIBE',
  'DESCRIBE docs',
];

for (const sql of accepted) test(`accepted: ${sql}`, () => assert.equal(problemOf(sql), ''));
