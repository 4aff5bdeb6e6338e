import { importLogRows, logNamespace, writeLogRows } from '../log-rows.ts';
import { postOf, throughputAndLatency } from '../phases.ts';
import type { Scenario } from '../scenario.ts';
import { sizedCount } from '../sizes.ts';

const statements = [
  ['count', 'SELECT COUNT(*) AS n FROM docs'],
  ['filtered sum', "SELECT SUM(bytes) AS total FROM docs WHERE level = 'ERROR' AND status = 500"],
  [
    'by host',
    'SELECT host, COUNT(*) AS n, AVG(took_ms) AS mean FROM docs GROUP BY host ORDER BY n DESC, host LIMIT 10',
  ],
  [
    'by minute',
    'SELECT at_minute, MAX(took_ms) AS most FROM docs WHERE status >= 400 GROUP BY at_minute ORDER BY at_minute LIMIT 60',
  ],
  [
    'distinct users',
    'SELECT region, COUNT(DISTINCT user_id) AS users FROM docs GROUP BY region ORDER BY region',
  ],
  ['slowest', 'SELECT id, took_ms FROM docs ORDER BY took_ms DESC, id LIMIT 20'],
] as const;

export const sqlMix: Scenario = {
  name: 'sql-mix',
  about:
    'Six statements in turn: counts, sums, groups, distinct values and an order; each also asked of DuckDB.',
  async prepare(stage) {
    const rows = await writeLogRows(sizedCount(stage.sizes, 200_000));
    await importLogRows(stage, rows);
    const { Oracle } = await import('../../../test/support/duckdb.ts');
    const oracle = await Oracle.open(1);
    await oracle.rows(`CREATE TABLE docs AS SELECT * FROM read_json_auto('${rows.file}')`);
    const ask = (sql: string) => postOf(`/v1/namespaces/${logNamespace}/sql`, { sql });
    const requests = statements.map(([, sql]) => ask(sql));
    return {
      settings: { rows: rows.rows, columns: 8, statements: statements.length },
      keys: [stage.server.key],
      phases: [
        ...throughputAndLatency({ name: 'statements', tool: 'autocannon', connections: 8, requests }),
        {
          kind: 'peer',
          name: 'DuckDB',
          questions: statements.map(([name, sql]) => ({
            name,
            ours: ask(sql),
            theirs: () => oracle.rows(sql),
          })),
          close: () => oracle.close(),
        },
      ],
    };
  },
};
