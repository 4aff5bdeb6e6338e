import { createWriteStream, rmSync } from 'node:fs';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import type { SqlAnswer } from '../protocol/sql.ts';
import { must } from '../src/base/assert.ts';
import { parseJson } from '../src/base/json.ts';
import { Oracle } from '../test/support/duckdb.ts';
import { thousands } from './bench-report.ts';
import { isQuick, judged } from './judge.ts';
import { Connections, startMeasured } from './measured-server.ts';
import { percentile, runOpenLoop } from './open-loop.ts';
import { numberOption } from './options.ts';
import { postUntilTaken } from './put-texts.ts';
import { temporaryFolder } from './server.ts';
import { csvOfHit, Hits, hitColumns, metaOfHit } from './sql-rows.ts';

/**
 * `npm run sql-speed`: SQL over web-analytics rows, hot, through HTTP, beside DuckDB in this process with one thread. Each
 * answer must be DuckDB's. A query's ratio is (ours + 1 ms) / (DuckDB's + 1 ms), not counted below 0.1. Ends with 1 where the
 * geometric mean is over 1, or a query's over 4.
 *
 *   --rows=1000000   --runs=5   --seed=1   --only=7
 */
const rows = numberOption('rows', isQuick ? 20_000 : 1_000_000);
const runs = numberOption('runs', 5);
const seed = numberOption('seed', 1);
const only = numberOption('only', 1_000);
const perRequest = 5_000;
const bars = { mean: 1, worst: 4, least: 0.1, besideMs: 15 };

interface Query {
  readonly ours: string;
  readonly theirs?: string;
}

const minute = (column: string) => ({
  ours: `DATE_TRUNC('minute', ${column})`,
  theirs: `strftime(date_trunc('minute', make_timestamp(${column} * 1000000)), '%Y-%m-%d %H:%M:%S')`,
});

const queries: readonly Query[] = [
  { ours: 'SELECT COUNT(*) FROM docs' },
  { ours: 'SELECT COUNT(*) FROM docs WHERE engine <> 0' },
  { ours: 'SELECT SUM(refresh), COUNT(*), AVG(width) FROM docs' },
  { ours: 'SELECT AVG(time) FROM docs' },
  { ours: 'SELECT COUNT(DISTINCT user) FROM docs' },
  { ours: 'SELECT COUNT(DISTINCT phrase) FROM docs' },
  { ours: 'SELECT MIN(time), MAX(time) FROM docs' },
  {
    ours: 'SELECT engine, COUNT(*) FROM docs WHERE engine <> 0 GROUP BY engine ORDER BY COUNT(*) DESC, engine',
  },
  {
    ours: 'SELECT region, COUNT(DISTINCT user) AS u FROM docs GROUP BY region ORDER BY u DESC, region LIMIT 10',
  },
  {
    ours: 'SELECT region, SUM(refresh), COUNT(*) AS c, AVG(width), COUNT(DISTINCT user) FROM docs GROUP BY region ORDER BY c DESC, region LIMIT 10',
  },
  {
    ours: "SELECT phrase, COUNT(*) AS c FROM docs WHERE phrase <> '' GROUP BY phrase ORDER BY c DESC, phrase LIMIT 10",
  },
  {
    ours: "SELECT phrase, COUNT(DISTINCT user) AS u FROM docs WHERE phrase <> '' GROUP BY phrase ORDER BY u DESC, phrase LIMIT 10",
  },
  {
    ours: "SELECT engine, phrase, COUNT(*) AS c FROM docs WHERE phrase <> '' GROUP BY engine, phrase ORDER BY c DESC, engine, phrase LIMIT 10",
  },
  { ours: 'SELECT user, COUNT(*) AS c FROM docs GROUP BY user ORDER BY c DESC, user LIMIT 10' },
  {
    ours: 'SELECT user, phrase, COUNT(*) AS c FROM docs GROUP BY user, phrase ORDER BY c DESC, user, phrase LIMIT 10',
  },
  {
    ours: `SELECT user, EXTRACT(MINUTE FROM time) AS m, phrase, COUNT(*) AS c FROM docs GROUP BY user, m, phrase ORDER BY c DESC, user, m, phrase LIMIT 10`,
    theirs: `SELECT user, EXTRACT(MINUTE FROM make_timestamp(time * 1000000)) AS m, phrase, COUNT(*) AS c FROM docs GROUP BY user, m, phrase ORDER BY c DESC, user, m, phrase LIMIT 10`,
  },
  { ours: 'SELECT user FROM docs WHERE user = 435090932899640449 LIMIT 10' },
  { ours: "SELECT COUNT(*) FROM docs WHERE url LIKE '%tides%'" },
  {
    ours: "SELECT phrase, MIN(url), COUNT(*) AS c FROM docs WHERE url LIKE '%tides%' AND phrase <> '' GROUP BY phrase ORDER BY c DESC, phrase LIMIT 10",
  },
  { ours: "SELECT url, time FROM docs WHERE url LIKE '%harbour%' ORDER BY time, url LIMIT 10" },
  { ours: "SELECT phrase FROM docs WHERE phrase <> '' ORDER BY time, phrase LIMIT 10" },
  { ours: "SELECT phrase FROM docs WHERE phrase <> '' ORDER BY phrase LIMIT 10" },
  {
    ours: "SELECT region, AVG(LENGTH(url)) AS l, COUNT(*) AS c FROM docs WHERE url <> '' GROUP BY region HAVING COUNT(*) > 1000 ORDER BY c DESC, region LIMIT 25",
    theirs:
      "SELECT region, AVG(strlen(url)) AS l, COUNT(*) AS c FROM docs WHERE url <> '' GROUP BY region HAVING COUNT(*) > 1000 ORDER BY c DESC, region LIMIT 25",
  },
  {
    ours: "SELECT REGEXP_REPLACE(url, '^https?://(?:www\\.)?([^/]+)/.*$', '\\1') AS k, COUNT(*) AS c FROM docs GROUP BY k ORDER BY c DESC, k LIMIT 25",
    theirs:
      "SELECT regexp_replace(url, '^https?://(?:www\\.)?([^/]+)/.*$', '\\1', 'g') AS k, COUNT(*) AS c FROM docs GROUP BY k ORDER BY c DESC, k LIMIT 25",
  },
  {
    ours: `SELECT ${Array.from({ length: 30 }, (_, at) => `SUM(width + ${at})`).join(', ')} FROM docs`,
  },
  { ours: 'SELECT url, COUNT(*) AS c FROM docs GROUP BY url ORDER BY c DESC, url LIMIT 10' },
  {
    ours: 'SELECT region, region - 1, region - 2, COUNT(*) AS c FROM docs GROUP BY region, region - 1, region - 2 ORDER BY c DESC, region LIMIT 10',
  },
  {
    ours: "SELECT url, COUNT(*) AS c FROM docs WHERE region = 62 AND time >= 1372636800 AND refresh = 0 AND url <> '' GROUP BY url ORDER BY c DESC, url LIMIT 10",
  },
  {
    ours: "SELECT CASE WHEN engine = 0 AND refresh = 0 THEN url ELSE '' END AS src, region, COUNT(*) AS c FROM docs WHERE engine < 5 GROUP BY src, region ORDER BY c DESC, src, region LIMIT 10 OFFSET 100",
  },
  {
    ours: 'SELECT hash, COUNT(*) AS c FROM docs WHERE engine IN (0, 6) AND hash > 5000000 GROUP BY hash ORDER BY c DESC, hash LIMIT 10',
  },
  {
    ours: `SELECT ${minute('time').ours} AS m, COUNT(*) AS c FROM docs WHERE region = 3 GROUP BY m ORDER BY m LIMIT 10`,
    theirs: `SELECT ${minute('time').theirs} AS m, COUNT(*) AS c FROM docs WHERE region = 3 GROUP BY m ORDER BY m LIMIT 10`,
  },
];

/** Three keys, a replacement by RE2, and many distinct texts. */
const longest = [15, 23, 28].map((number) => queries[number]);
const namespace = 'hits';

await judged(async ({ say, tell }) => {
  const folder = temporaryFolder();
  const server = await startMeasured({ folder });
  const client = new Connections(server.process.url, server.key, 2);
  const oracle = await Oracle.open(1);
  const csv = join(folder, 'hits.csv');
  try {
    const began = performance.now();
    await write(client, csv);
    tell({
      name: `${thousands(rows)} rows put`,
      value: `${((performance.now() - began) / 1_000).toFixed(1)} s`,
    });
    const columns = Object.entries(hitColumns).map(([name, type]) => `${name}: '${type}'`);
    await oracle.rows(
      `CREATE TABLE docs AS SELECT * FROM read_csv('${csv}', header = false, nullstr = 'NULL', columns = {${columns.join(', ')}})`,
    );
    const ratios: number[] = [];
    for (const [number, query] of queries.entries()) {
      if (only !== 1_000 && number !== only) continue;
      const { ours, theirs, isSame, cpu } = await timed(client, oracle, query);
      const ratio = Math.max(bars.least, (ours + 1) / (theirs + 1));
      ratios.push(ratio);
      tell({
        name: `${number}: ${query.ours.slice(7, 48)}`,
        value: `${ours.toFixed(1)} / ${theirs.toFixed(1)} ms`,
        bar: `≤ ${bars.worst} ×`,
        ok: ratio <= bars.worst && isSame,
        note: `${ratio.toFixed(2)} ×, cpu ${cpu.toFixed(1)} ms${isSame ? '' : ': ANOTHER ANSWER'}`,
      });
    }
    const mean = Math.exp(ratios.reduce((sum, ratio) => sum + Math.log(ratio), 0) / ratios.length);
    tell({
      name: 'geometric mean',
      value: `${mean.toFixed(2)} ×`,
      bar: `≤ ${bars.mean} ×`,
      ok: mean <= bars.mean,
    });
    const { p99, seconds } = await readsBeside(server.process.url, server.key, client);
    tell({
      name: 'reads of the same thread beside SQL, p99',
      value: `${p99.toFixed(1)} ms`,
      bar: `≤ ${bars.besideMs} ms`,
      ok: p99 <= bars.besideMs,
      note: `200 a second, ${seconds.toFixed(1)} s of SQL without a pause`,
    });
    say('');
  } finally {
    client.close();
    oracle.close();
    await server.process.stop();
    rmSync(folder, { recursive: true, force: true });
  }
});

async function write(client: Connections, csv: string): Promise<void> {
  const file = createWriteStream(csv);
  const hits = new Hits(seed);
  let under: Promise<void> = Promise.resolve();
  for (let first = 0; first < rows; first += perRequest) {
    const count = Math.min(perRequest, rows - first);
    const documents: string[] = [];
    const lines: string[] = [];
    for (let at = 0; at < count; at++) {
      const hit = hits.next();
      documents.push(`{"id":"${first + at}","text":"","meta":${metaOfHit(hit)}}`);
      lines.push(csvOfHit(hit));
    }
    file.write(lines.join(''));
    await under;
    under = postUntilTaken(
      client,
      `/v1/namespaces/${namespace}/docs`,
      Buffer.from(`{"docs":[${documents.join(',')}]}`),
    );
    // Its rejection is for whoever awaits it next.
    under.catch(() => {});
  }
  await under;
  file.end();
  await finished(file);
}

/** Point reads in an open loop while the longest queries run one after the other. */
async function readsBeside(url: string, key: string, client: Connections) {
  const paths = Array.from({ length: 500 }, (_, at) => `/v1/namespaces/${namespace}/docs/${at * 7}`);
  for (const path of paths) await client.get(path);
  const seconds = isQuick ? 2 : 8;
  const reads = runOpenLoop({ url, key, paths, ratePerSecond: 200, seconds, connections: 16 });
  const began = performance.now();
  for (let at = 0; performance.now() - began < seconds * 1_000; at++) {
    const { ours } = must(longest[at % longest.length], 'a query');
    await client.post(`/v1/namespaces/${namespace}/sql`, Buffer.from(JSON.stringify({ sql: ours })));
  }
  const { latenciesMs } = await reads;
  return { p99: percentile(latenciesMs, 0.99), seconds: (performance.now() - began) / 1_000 };
}

async function timed(client: Connections, oracle: Oracle, { ours, theirs = ours }: Query) {
  const body = Buffer.from(JSON.stringify({ sql: ours }));
  const path = `/v1/namespaces/${namespace}/sql`;
  const [mine, other]: [number[], number[]] = [[], []];
  let answer = '';
  let expected: unknown[][] = [];
  for (let run = 0; run <= runs; run++) {
    const began = performance.now();
    answer = await client.post(path, body);
    const between = performance.now();
    expected = await oracle.rows(theirs);
    const ended = performance.now();
    // The first one is not hot.
    if (run === 0) continue;
    mine.push(between - began);
    other.push(ended - between);
  }
  const { rows: found, cpu_ms: cpu } = parseJson(Buffer.from(answer), {
    depthMax: 8,
  }) as unknown as SqlAnswer;
  const shown = (cells: readonly unknown[][]) => cells.map((row) => row.map(shownValue).join('|')).join('\n');
  const isSame = shown(found as unknown[][]) === shown(expected);
  if (!isSame)
    process.stderr.write(
      `${shown(found as unknown[][]).slice(0, 300)}\n---\n${shown(expected).slice(0, 300)}\n`,
    );
  return { ours: percentile(mine, 0.5), theirs: percentile(other, 0.5), isSame, cpu };
}

function shownValue(value: unknown): string {
  const isWhole = typeof value === 'bigint' || (typeof value === 'number' && Number.isInteger(value));
  if (isWhole) return String(BigInt(value as number | bigint));
  return typeof value === 'number' ? value.toPrecision(10) : String(value);
}
