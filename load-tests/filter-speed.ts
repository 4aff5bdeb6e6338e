/**
 * `npm run measure -- filter-speed`: searches and counts with filters, counts of a phrase and estimates, in one namespace of many short lines with
 * metas (corpus/service-lines.ts), through HTTP: the first time, then the median of warm ones. Once with everything in segments, once with a full
 * memtable on top. Beside ripgrep, which counts the phrase in the same lines by two threads, and DuckDB, which has the metas, with one thread.
 * Every answer is compared with a count of the lines. Ends with 1 where a bar is missed or an answer is wrong; the bars are for 4,000,000
 * lines and hold for fewer. They are of a machine where those two take the times of `barMachine`: it is told how fast they are here.
 *
 *   --documents=1000000   --memory=50000   --runs=40   --cpu-prof=FOLDER
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { CountAnswer, SearchAnswer } from '../protocol/search.ts';
import { Oracle } from '../test/support/duckdb.ts';
import { type Measurement, median, thousands } from './bench-report.ts';
import { frequentWord, hostsOf, phrase, serviceLines, tookBound } from './corpus/service-lines.ts';
import { countAnswers, hasPhrase, type LineFiles, type Question, writeLines } from './filter-speed-data.ts';
import { importFile } from './import-file.ts';
import { isQuick, judged } from './judge.ts';
import { Connections, type MeasuredServer, startMeasured } from './measured-server.ts';
import { numberOption, textOption } from './options.ts';
import { missingPrograms, timeProgram } from './outside-programs.ts';
import { postUntilTaken } from './put-texts.ts';
import { temporaryFolder } from './server.ts';
import { whenSegmentsRest } from './store-counts.ts';

const documents = numberOption('documents', isQuick ? 20_000 : 1_000_000);
const inMemory = Math.min(numberOption('memory', 50_000), Math.floor(documents / 4));
const runs = numberOption('runs', isQuick ? 3 : 40);
const profiles = textOption('cpu-prof');
const seed = 20_261_123;
const namespace = 'lines';
const pageHits = 20;
const batch = 1_000;

/** Milliseconds for 4,000,000 lines: ripgrep's count of the phrase, and DuckDB's of a host. */
const barMachine = { lines: 4_000_000, ripgrep: 645, duckDb: 31 };

const hosts = hostsOf(documents);
const host = `h${hosts >> 1}`;
const someHosts = Array.from({ length: 20 }, (_, at) => `h${(at * 7) % hosts}`);
const range = { gte: tookBound >> 1, lt: (tookBound >> 1) + 100 };

const questions: readonly Question[] = [
  {
    name: 'host = one',
    request: { filter: { host } },
    holds: ({ meta }) => meta.host === host,
    sql: `host = '${host}'`,
    asksRipgrep: false,
    barMs: 5,
  },
  {
    name: 'host in 20',
    request: { filter: { host: { in: someHosts } } },
    holds: ({ meta }) => someHosts.includes(meta.host),
    sql: `host IN ('${someHosts.join("','")}')`,
    asksRipgrep: false,
    barMs: 10,
  },
  {
    name: 'range of 100 values',
    request: { filter: { took: range } },
    holds: ({ meta }) => meta.took >= range.gte && meta.took < range.lt,
    sql: `took >= ${range.gte} AND took < ${range.lt}`,
    asksRipgrep: false,
    barMs: 5,
  },
  {
    name: 'level = error, a quarter',
    request: { filter: { level: 'error' } },
    holds: ({ meta }) => meta.level === 'error',
    sql: "level = 'error'",
    asksRipgrep: false,
    barMs: 20,
  },
  {
    name: 'phrase and host',
    request: { q: phrase, filter: { host } },
    holds: (line) => line.meta.host === host && hasPhrase(line),
    sql: null,
    asksRipgrep: false,
    barMs: 10,
  },
  {
    name: 'phrase, in 4 %',
    request: { q: phrase },
    holds: hasPhrase,
    sql: null,
    asksRipgrep: true,
    barMs: Number.POSITIVE_INFINITY,
  },
];

const estimated: readonly Question[] = [
  {
    name: 'estimate of a frequent word',
    request: { q: frequentWord, exact: false },
    holds: ({ text }) => text.includes(frequentWord),
    sql: null,
    asksRipgrep: false,
    barMs: 10,
  },
  {
    name: 'estimate of the phrase',
    request: { q: phrase, exact: false },
    holds: hasPhrase,
    sql: null,
    asksRipgrep: false,
    barMs: 10,
  },
];

/** Milliseconds: the first time, and the median of the later ones. */
interface Times {
  readonly first: number;
  readonly warm: number;
}

async function timesOf(ask: () => unknown): Promise<Times> {
  const times: number[] = [];
  for (let run = 0; run <= runs; run++) {
    const began = performance.now();
    await ask();
    times.push(performance.now() - began);
  }
  return { first: times[0] as number, warm: median(times.slice(1)) };
}

const shown = ({ first, warm }: Times) => `${warm.toFixed(1)} ms, first ${first.toFixed(0)}`;

/** What the other programs take for the questions, by their names. */
async function peersTimes(files: LineFiles): Promise<ReadonlyMap<string, Times>> {
  const times = new Map<string, Times>();
  const oracle = await Oracle.open(1);
  const list = files.imports.map((file) => `'${file}'`).join(', ');
  const columns = "{host: 'VARCHAR', level: 'VARCHAR', took: 'BIGINT', region: 'VARCHAR'}";
  await oracle.rows(
    `CREATE TABLE docs AS SELECT * FROM read_json([${list}], format = 'newline_delimited', columns = ${columns})`,
  );
  for (const { name, sql } of questions)
    if (sql !== null)
      times.set(name, await timesOf(() => oracle.rows(`SELECT count(*) FROM docs WHERE ${sql}`)));
  oracle.close();
  if (missingPrograms('rg').length === 0) {
    const command = ['rg', '-c', '-i', '-F', '-j2', '--no-filename', '--no-config', '--', phrase, '.'];
    const { timesMs } = timeProgram(command, 6, { cwd: files.texts });
    times.set(phrase, { first: timesMs[0] as number, warm: median(timesMs.slice(1)) });
  }
  return times;
}

/** How long the other programs take here, as parts of what they take on the machine that the bars are from. */
function besideBarMachine(peers: ReadonlyMap<string, Times>): string {
  const part = (name: string, ms: number, lines: number) => {
    const times = peers.get(name);
    return times === undefined
      ? 'unknown'
      : `${((times.warm / lines) * (barMachine.lines / ms)).toFixed(2)} ×`;
  };
  const ripgrep = part(phrase, barMachine.ripgrep, documents - inMemory);
  const duckDb = part('host = one', barMachine.duckDb, documents - inMemory);
  return `beside the machine of the bars, ripgrep takes ${ripgrep} and DuckDB ${duckDb} as long here`;
}

class Asking {
  readonly #client: Connections;
  readonly #peers: ReadonlyMap<string, Times>;

  constructor(client: Connections, peers: ReadonlyMap<string, Times>) {
    this.#client = client;
    this.#peers = peers;
  }

  async search({ name, request, barMs }: Question, matching: number): Promise<Measurement> {
    let last: SearchAnswer | undefined;
    const times = await timesOf(async () => {
      last = await this.#ask<SearchAnswer>('search', { ...request, limit: pageHits });
    });
    const hits = last?.hits.length ?? 0;
    const isRight = hits === Math.min(pageHits, matching);
    return line(`search: ${name}`, times, {
      barMs: Math.min(barMs, 10),
      isRight,
      note: `${thousands(matching)} match${isRight ? '' : `: WRONG, ${hits} hits`}`,
    });
  }

  async count({ name, request, barMs, asksRipgrep }: Question, matching: number): Promise<Measurement> {
    let last: CountAnswer | undefined;
    const times = await timesOf(async () => {
      last = await this.#ask<CountAnswer>('count', request);
    });
    const peer = this.#peers.get(asksRipgrep ? phrase : name);
    const beside =
      peer === undefined
        ? []
        : [
            `${asksRipgrep ? 'ripgrep' : 'DuckDB'} ${shown(peer)}`,
            `${(times.warm / peer.warm).toFixed(2)} ×`,
          ];
    const isRight = last?.count === matching && last.exact;
    const wrong = isRight ? [] : [`WRONG: ${last?.count}`];
    return line(`count: ${name}`, times, {
      barMs: asksRipgrep ? (peer?.warm ?? barMs) : barMs,
      isRight,
      note: [`${thousands(matching)} match`, ...beside, ...wrong].join('; '),
    });
  }

  async estimate({ name, request, barMs }: Question, matching: number): Promise<Measurement> {
    let last: CountAnswer | undefined;
    const times = await timesOf(async () => {
      last = await this.#ask<CountAnswer>('count', request);
    });
    const { count = 0, low = 0, high = 0, likely_low = 0, likely_high = 0 } = last ?? {};
    const isRight = low <= matching && matching <= high;
    return line(name, times, {
      barMs,
      isRight,
      note: `${thousands(matching)} match; estimated ${thousands(count)}, likely ${thousands(likely_low)} to ${thousands(likely_high)}, surely ${thousands(low)} to ${thousands(high)}`,
    });
  }

  async #ask<Answer>(operation: string, request: object): Promise<Answer> {
    const body = Buffer.from(JSON.stringify(request));
    return JSON.parse(await this.#client.post(`/v1/namespaces/${namespace}/${operation}`, body)) as Answer;
  }
}

function line(
  name: string,
  times: Times,
  { barMs, isRight, note }: { readonly barMs: number; readonly isRight: boolean; readonly note: string },
): Measurement {
  const ok = times.warm <= barMs && isRight;
  const bar = Number.isFinite(barMs) ? { bar: `≤ ${barMs.toFixed(0)} ms`, ok } : { ok: isRight };
  return { name, value: shown(times), ...bar, note };
}

async function importAll(server: MeasuredServer, files: LineFiles): Promise<void> {
  // Metas have four keys, and not the id and the text again.
  const asked = new URLSearchParams({ format: 'ndjson', id: 'id', text: 'text', skip: 'id,text' });
  for (const file of files.imports)
    await importFile(server, `/v1/namespaces/${namespace}/import?${asked}`, file);
  await whenSegmentsRest(server.process);
}

/** The newest lines, which stay in memory. */
async function writeNewest(server: MeasuredServer): Promise<void> {
  // A connection of its own: while lines are made, nobody would notice that the server closes an idle one.
  const client = new Connections(server.process.url, server.key, 1);
  let number = 0;
  let docs: string[] = [];
  const path = `/v1/namespaces/${namespace}/docs`;
  for (const { id, text, meta } of serviceLines(documents, seed)) {
    if (number++ < documents - inMemory) continue;
    docs.push(JSON.stringify({ id, text, meta }));
    if (docs.length < batch && number < documents) continue;
    await postUntilTaken(client, path, Buffer.from(`{"docs":[${docs.join(',')}]}`));
    docs = [];
  }
  client.close();
}

await judged(async ({ say, tell }) => {
  const folder = temporaryFolder();
  const stored = documents - inMemory;
  const files = writeLines(folder, { documents, stored, seed });
  const peers = await peersTimes(files);
  const nodeArguments = profiles === null ? [] : ['--cpu-prof', `--cpu-prof-dir=${profiles}`];
  const server = await startMeasured({ folder: join(folder, 'data'), nodeArguments });
  const askAll = async (lines: number) => {
    const all = [...questions, ...estimated];
    const counts = countAnswers(all, { documents, lines, seed });
    // As in writeNewest: counting has taken a while.
    const client = new Connections(server.process.url, server.key, 1);
    const asking = new Asking(client, peers);
    const matching = (question: Question) => counts[all.indexOf(question)] as number;
    for (const question of questions) {
      tell(await asking.search(question, matching(question)));
      tell(await asking.count(question, matching(question)));
    }
    for (const question of estimated) tell(await asking.estimate(question, matching(question)));
    client.close();
  };
  try {
    await importAll(server, files);
    say(
      `${thousands(documents)} lines; ${thousands(stored)} of them in segments; ${besideBarMachine(peers)}:\n`,
    );
    // The lines are made in one order: the stored ones are the first of all.
    await askAll(stored);
    await writeNewest(server);
    say(`\nwith ${thousands(inMemory)} lines in memory on top:\n`);
    await askAll(documents);
  } finally {
    await server.process.stop();
    rmSync(folder, { recursive: true, force: true });
  }
});
