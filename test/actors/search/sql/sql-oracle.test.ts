/** Random statements over random documents, answered by us and by DuckDB. SQL_QUERIES sets how many, SQL_SEED which ones. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runSql } from '../../../../actors/search/sql/run-sql.ts';
import { ApiError } from '../../../../protocol/errors.ts';
import { parseJson } from '../../../../src/base/json.ts';
import { Chance } from '../../../simulation/chance.ts';
import { Oracle, type OracleValue } from '../../../support/duckdb.ts';
import { FakeClock } from '../../../support/fake-clock.ts';
import { contextOf } from '../../../support/query-context.ts';
import { SqlHistory } from '../../../support/sql-history.ts';
import { type GeneratedQuery, SqlGenerator } from '../../../support/sql-queries.ts';
import { randomSqlRow, sqlSnapshot, sqlTable, tableStatements } from '../../../support/sql-tables.ts';

const queries = Number(process.env.SQL_QUERIES ?? 400);
const seed = Number(process.env.SQL_SEED ?? 1);
const queriesPerTable = 100;

test(`${queries} random queries, each after more puts, patches and deletes, are answered as DuckDB does`, async (t) => {
  t.diagnostic(`SQL_SEED=${seed}`);
  const oracle = await Oracle.open();
  let refused = 0;
  for (let table = 0; table * queriesPerTable < queries; table++) {
    const chance = new Chance(seed, table);
    const history = new SqlHistory(chance);
    const writes = chance.pick([0, 1, 7, 60, 60, 60, 300, 300, 300]);
    for (let some = 0; some < writes; some += 20) await history.go(Math.min(20, writes - some));
    for (const statement of tableStatements(history.live)) await oracle.rows(statement);
    history.statements();
    const generator = new SqlGenerator(chance);
    for (let query = 0; query < queriesPerTable; query++) {
      await history.go(chance.integer(0, 3));
      for (const statement of history.statements()) await oracle.rows(statement);
      const snapshot = history.snapshot();
      const generated = generator.query();
      const where = `SQL_SEED=${seed}, table ${table}, query ${query}: ${generated.ours}`;
      const answered = await answerOf(() =>
        runSql(contextOf(snapshot, new FakeClock()), { sql: generated.ours }),
      );
      const expected = await oracle.rows(generated.theirs).catch((error: Error) => error.message);
      // A column that no document has any more, or an integer that grew too large.
      if (typeof answered === 'string') {
        const [, missing] = /there is no column "(\w+)"/u.exec(answered) ?? [];
        if (missing !== undefined) assert.ok(!history.keys().includes(missing), `${where}: ${answered}`);
        else assert.match(answered, /does not fit 64 bits/u, where);
        refused++;
        continue;
      }
      assert.ok(typeof expected !== 'string', `${where}: DuckDB says ${String(expected)}`);
      assertSame(answered, expected as OracleValue[][], generated, where);
      if (query % 5 === 0) await assertColumns(history, where);
    }
  }
  t.diagnostic(`${refused} were refused for a column that is not there, or a sum that is too large`);
  assert.ok(refused < queries / 5);
  oracle.close();
});

/** Live documents alone decide which columns there are, in which order, and of which types. */
async function assertColumns(history: SqlHistory, where: string): Promise<void> {
  const rows = await answerOf(() =>
    runSql(contextOf(history.snapshot(), new FakeClock()), { sql: 'SHOW COLUMNS' }),
  );
  assert.ok(typeof rows !== 'string', where);
  const typeOf = (key: string) => {
    const [, type] = sqlTable.find(([name]) => name === key) ?? [];
    const values = history.live.flatMap(({ values: { [key]: value } }) => value ?? []);
    if (values.length === 0) return 'null';
    // JSON writes a float that is whole as an int.
    return values.every(Number.isInteger) ? 'int' : shownTypes[type ?? 'VARCHAR'];
  };
  const expected = history.keys().map((key) => [key, typeOf(key)]);
  const found = rows.map(([name, type]) => [name, type]);
  assert.deepEqual(found, [['id', 'text'], ...expected], `${where}: SHOW COLUMNS`);
  for (const [name, , parts] of rows) assert.ok(Number(parts) > 0 || history.live.length === 0, `${name}`);
}

const shownTypes = {
  BIGINT: 'int',
  DOUBLE: 'float',
  VARCHAR: 'text',
  DATE: 'date',
  TIMESTAMP: 'time',
} as const;

async function answerOf(run: () => Promise<string>): Promise<OracleValue[][] | string> {
  try {
    const answer = parseJson(Buffer.from(await run()), { depthMax: 8 }) as { rows: OracleValue[][] };
    return answer.rows;
  } catch (error) {
    if (error instanceof ApiError) return error.message;
    throw error;
  }
}

function assertSame(
  answered: OracleValue[][],
  expected: OracleValue[][],
  { isOrdered }: GeneratedQuery,
  where: string,
): void {
  const shown = (rows: OracleValue[][]) => {
    const lines = rows.map((row) => row.map(shownValue).join(' | '));
    return isOrdered ? lines : lines.sort();
  };
  assert.deepEqual(shown(answered), shown(expected), where);
}

/** Averages may differ in their last digits. */
function shownValue(value: OracleValue): string {
  if (value === null) return 'NULL';
  if (typeof value === 'string') return JSON.stringify(value);
  const number = Number(value);
  return typeof value === 'bigint' || Number.isInteger(number)
    ? String(BigInt(value))
    : number.toPrecision(12);
}

/** Without an oracle: what the same condition says by other ways. */
test('conditions agree with themselves, however they are asked', async (t) => {
  t.diagnostic(`SQL_SEED=${seed}`);
  for (let table = 0; table < 6; table++) {
    const chance = new Chance(seed, 10_000 + table);
    const rows = Array.from({ length: chance.pick([30, 200]) }, (_, at) => randomSqlRow(chance, at));
    const { snapshot, live } = await sqlSnapshot(chance, rows);
    const generator = new SqlGenerator(chance);
    const asked = (sql: string) => answerOf(() => runSql(contextOf(snapshot, new FakeClock()), { sql }));
    for (let query = 0; query < Math.ceil(queries / 40); query++) {
      const { ours: condition } = generator.condition();
      const where = `SQL_SEED=${seed}, table ${table}: ${condition}`;
      const count = async (of: string) => {
        const answered = await asked(`SELECT COUNT(*) FROM docs WHERE ${of}`);
        return typeof answered === 'string' ? answered : Number(answered[0]?.[0]);
      };
      const filtered = await count(condition);
      if (typeof filtered === 'string') {
        assert.match(filtered, /there is no column|does not fit 64 bits/u, where);
        continue;
      }
      // NoREC: as a value of every row.
      const values = await asked(`SELECT ${condition} FROM docs`);
      assert.ok(typeof values !== 'string', where);
      assert.equal(values.filter(([value]) => value !== null && Number(value) !== 0).length, filtered, where);
      // TLP: a row is in one of three parts.
      const parts = [filtered, await count(`NOT (${condition})`), await count(`(${condition}) IS NULL`)];
      assert.equal(
        parts.reduce((sum: number, part) => sum + Number(part), 0),
        live.length,
        where,
      );
    }
  }
});
