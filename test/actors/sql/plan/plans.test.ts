import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parseSql } from '../../../../actors/sql/parse/parser.ts';
import { bindSelect } from '../../../../actors/sql/plan/bind.ts';
import type { SqlColumn } from '../../../../actors/sql/plan/bound.ts';
import { planText } from '../../../../actors/sql/plan/plan-text.ts';
import { repositoryRoot } from '../../../support/repository.ts';

const columns: readonly SqlColumn[] = [
  { name: 'id', type: 'text' },
  { name: 'n', type: 'int' },
  { name: 'f', type: 'float' },
  { name: 's', type: 'text' },
  { name: 'day', type: 'date' },
  { name: 'at', type: 'time' },
  { name: 'nothing', type: 'null' },
];

const statements: readonly string[] = [
  'SELECT * FROM docs LIMIT 5',
  'SELECT s, n FROM docs WHERE n > 1 AND f < 2 ORDER BY f DESC, s NULLS FIRST LIMIT 10 OFFSET 20',
  "SELECT n FROM docs WHERE day >= '2024-02-29' AND at < '2024-03-01' AND day < at AND n IN (1, NULL) AND n + f > 1",
  'SELECT s AS k, COUNT(*), COUNT(DISTINCT n), SUM(n + 1) - 1, AVG(f) FROM docs GROUP BY k HAVING COUNT(*) > 2 ORDER BY 2 DESC, k',
  "SELECT DATE_TRUNC('hour', day), EXTRACT(MINUTE FROM n), REGEXP_REPLACE(s, 'a', 'b'), LENGTH(s) FROM docs WHERE s LIKE 'a%'",
  "SELECT COUNT(*) FROM docs WHERE (contains(text, 'x') OR NOT grep(text, 'y')) AND nothing IS NULL",
  'SELECT COALESCE(n, f, 0), CASE WHEN n THEN s ELSE NULL END, n = NULL FROM docs',
  'SELECT n + 1, n + 1 + SUM(f) FROM docs GROUP BY n + 1',
];

test('the statements of the golden file have the plans that stand there', () => {
  const path = join(repositoryRoot(), 'test/golden/sql-plans.txt');
  const made = statements
    .map((sql) => {
      const statement = parseSql(sql);
      assert.equal(statement.kind, 'select');
      return `${sql}\n${statement.kind === 'select' ? planText(bindSelect(statement, columns)) : ''}`;
    })
    .join('\n');
  if (process.env.UPDATE_GOLDEN === '1') writeFileSync(path, made);
  assert.equal(made, readFileSync(path, 'utf8'), 'UPDATE_GOLDEN=1 writes the plans anew');
});
