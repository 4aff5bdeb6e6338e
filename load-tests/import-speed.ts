/**
 * `npm run measure -- import-speed`: a table of 20 columns, one of them a text that is indexed, imported as CSV, NDJSON and Parquet: from the first
 * byte sent to the answer, after which every row is found. DuckDB makes the files, and reads them into tables of its own beside it, by two threads and
 * without an index. Ends with 1 where a bar is missed.
 *
 *   --rows=1000000
 */
import { execFileSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { allocator } from '../src/cli/supervise.ts';
import { Oracle } from '../test/support/duckdb.ts';
import { megabytes, thousands } from './bench-report.ts';
import { importFile } from './import-file.ts';
import { isQuick, judged } from './judge.ts';
import { Connections, type MeasuredServer, startMeasured } from './measured-server.ts';
import { numberOption } from './options.ts';
import { temporaryFolder } from './server.ts';

const rows = numberOption('rows', isQuick ? 50_000 : 1_000_000);
const bars = { csv: 60, ndjson: 70, parquet: 200_000, residentBytes: 600e6 };

const table = `CREATE TABLE t AS SELECT
  i AS id, (hash(i) % 1000000)::BIGINT AS user_id, (hash(i * 7) % 4611686018427387904)::BIGINT AS session,
  DATE '2024-01-01' + (i % 365)::INT AS day, TIMESTAMP '2024-01-01 00:00:00' + to_seconds((i * 31) % 31536000) AS at,
  ['de', 'fr', 'us', 'jp', 'br', 'in'][(1 + hash(i * 3) % 6)::BIGINT] AS country,
  ['chrome', 'safari', 'firefox', 'edge'][(1 + hash(i * 5) % 4)::BIGINT] AS browser,
  (hash(i * 11) % 3000)::INT AS width, (hash(i * 13) % 2000)::INT AS height,
  round((hash(i * 17) % 100000) / 100.0, 2) AS price, (hash(i * 19) % 100) / 10.0 AS score,
  hash(i * 23) % 10 = 0 AS is_new, (hash(i * 29) % 5)::INT AS rating,
  'https://www.example.com/shop/' || (hash(i * 31) % 20000) || '/item?ref=' || (hash(i * 37) % 50) AS url,
  CASE WHEN hash(i * 41) % 4 = 0 THEN 'https://search.example.org/?q=' || (hash(i * 43) % 5000) END AS referrer,
  CASE WHEN hash(i * 47) % 10 = 0 THEN 'tide table ' || (hash(i * 53) % 3000) END AS phrase,
  'The ' || ['quick', 'old', 'red', 'tall'][(1 + hash(i * 59) % 4)::BIGINT] || ' ship left harbour ' || (hash(i * 61) % 9000) ||
    ' at dawn with ' || (hash(i * 67) % 400) || ' crates' AS note,
  (hash(i * 71) % 256)::INT AS red, (hash(i * 73) % 65536)::INT AS port, ['a', 'b', 'c'][(1 + hash(i * 79) % 3)::BIGINT] AS variant
  FROM range(${rows}) r(i)`;

await judged(async ({ say, tell }) => {
  const folder = temporaryFolder();
  const oracle = await Oracle.open(2);
  await oracle.rows(table);
  const [[columns]] = (await oracle.rows('SELECT count(*) FROM (DESCRIBE t)')) as [[bigint]];
  const [[found]] = (await oracle.rows("SELECT count(*) FROM t WHERE note LIKE '%harbour 77 %'")) as [
    [bigint],
  ];
  const formats = [
    { format: 'csv', written: '(HEADER)', reader: 'read_csv' },
    { format: 'ndjson', written: '(FORMAT json)', reader: 'read_json' },
    { format: 'parquet', written: '(FORMAT parquet)', reader: 'read_parquet' },
  ] as const;
  const fileOf = (format: string) => join(folder, `t.${format}`);
  for (const { format, written } of formats) await oracle.rows(`COPY t TO '${fileOf(format)}' ${written}`);
  await oracle.rows('DROP TABLE t');
  const peerSeconds = new Map<string, number>();
  for (const { format, reader } of formats) {
    const began = performance.now();
    await oracle.rows(`CREATE OR REPLACE TABLE peer AS SELECT * FROM ${reader}('${fileOf(format)}')`);
    peerSeconds.set(format, (performance.now() - began) / 1_000);
  }
  oracle.close();
  // What the files' making has left to be written would be written while they are read.
  execFileSync('sync');
  say(`${thousands(rows)} rows of ${columns} columns; the text "note" is indexed\n`);
  // By itself, so that its memory is read, with the memory's settings of `npm start`.
  const server = await startMeasured({ env: allocator });
  try {
    for (const { format } of formats) {
      const file = fileOf(format);
      const { size } = statSync(file);
      const idle = server.process.residentBytes();
      const watched = watchResident(server);
      const began = performance.now();
      const answer = await importFile(
        server,
        `/v1/namespaces/${format}/import?format=${format}&id=id&text=note`,
        file,
      );
      const seconds = (performance.now() - began) / 1_000;
      const most = watched();
      if (answer.rows !== rows) throw new Error(`${format}: ${JSON.stringify(answer)}`);
      const count = await countOf(server, format);
      const speed = size / 1e6 / seconds;
      const perSecond = rows / seconds;
      const isParquet = format === 'parquet';
      tell({
        name: `${format}, ${megabytes(size)}`,
        value: isParquet ? `${thousands(Math.round(perSecond))} rows/s` : `${speed.toFixed(1)} MB/s`,
        bar: isParquet ? `≥ ${thousands(bars.parquet)} rows/s` : `≥ ${bars[format]} MB/s`,
        ok: (isParquet ? perSecond : speed) >= bars[format] && count === Number(found),
        note: `${seconds.toFixed(2)} s, ${thousands(Math.round(perSecond))} rows/s; ${count} of ${found} texts found; DuckDB ${peerSeconds.get(format)?.toFixed(2)} s`,
      });
      tell({
        name: `${format}, memory above idle`,
        value: megabytes(most - idle),
        bar: `≤ ${megabytes(bars.residentBytes)}`,
        ok: most - idle <= bars.residentBytes,
      });
    }
    say('');
  } finally {
    await server.process.stop();
  }
});

/** Looks ten times a second; answers the most that was seen. */
function watchResident(server: MeasuredServer): () => number {
  let most = server.process.residentBytes();
  const timer = setInterval(() => {
    most = Math.max(most, server.process.residentBytes());
  }, 100);
  return () => {
    clearInterval(timer);
    return most;
  };
}

async function countOf(server: MeasuredServer, namespace: string): Promise<number> {
  const client = new Connections(server.process.url, server.key, 1);
  const answer = await client.post(`/v1/namespaces/${namespace}/count`, Buffer.from('{"q":"harbour 77 "}'));
  client.close();
  return (JSON.parse(answer) as { count: number }).count;
}
