/**
 * `npm run measure -- text-pairs --before=FOLDER`: searches and counts over real source code by this build and by the one in a folder (a checkout
 * of another commit, built), whose servers run at the same time: each pattern is asked of one and of the other in turn. So whatever else the machine
 * does is shared, where runs one after the other differ by more than the builds. Twice, as text-speed: in segments, and with a memtable of
 * replaced documents on top. Ends with 1 where a line takes more than 1.03 times as long, or an answer is not what was counted in the files, with 2 without a folder.
 *
 *   --megabytes=150   --rounds=60 (of each pattern)   --patterns=8 (of each class)   --seed=N
 */

import { join, resolve } from 'node:path';
import { Chance } from '../test/simulation/chance.ts';
import { geometricMean } from './bench-report.ts';
import { readCorpusOf } from './corpora.ts';
import { isQuick, type Judge, judged } from './judge.ts';
import { Connections, type MeasuredServer, startMeasured } from './measured-server.ts';
import { percentile } from './open-loop.ts';
import { numberOption, seedOption, textOption } from './options.ts';
import { putTexts } from './put-texts.ts';
import { newestTexts } from './replaced-texts.ts';
import { restartFlushed } from './restart-flushed.ts';
import { type CountedPattern, findPatterns, type Patterns } from './search-patterns.ts';
import { SearchClient } from './search-times.ts';
import { startServer } from './server.ts';
import { whenSegmentsRest } from './store-counts.ts';

const megabytes = numberOption('megabytes', isQuick ? 4 : 150);
const rounds = numberOption('rounds', isQuick ? 2 : 60);
const patternsPerClass = numberOption('patterns', isQuick ? 2 : 8);
const seed = seedOption();
const namespace = 'source';
/** Rounds that are not timed, because they fill caches and have the server's code compiled. */
const warmUpRounds = 10;
/** Counts of frequent words take ten times as long as the other lines, and vary less. */
const wordCountsShare = 1 / 5;
const timesMax = 1.03;

interface Line {
  readonly name: string;
  readonly patterns: readonly CountedPattern[];
  readonly rounds: number;
  /** Answers what is wrong with the answer; null where nothing is. */
  ask(client: SearchClient, pattern: CountedPattern): Promise<string | null>;
}

/** What each of the two builds took for the requests of one pattern, in milliseconds. */
interface Pair {
  readonly before: number[];
  readonly now: number[];
}

function linesOf({ selectiveLiterals, selectiveRegexes, frequentWords }: Patterns): readonly Line[] {
  const classes = [
    ['selective literal', selectiveLiterals, 1],
    ['selective regex', selectiveRegexes, 1],
    ['frequent word', frequentWords, wordCountsShare],
  ] as const;
  return [
    ...classes.map(([name, patterns]) => ({ name: `${name}, limit 20`, patterns, rounds, ask: search })),
    ...classes.map(([name, patterns, share]) => ({
      name: `exact count of a ${name}`,
      patterns,
      rounds: Math.ceil(rounds * share),
      ask: count,
    })),
  ];
}

async function search(client: SearchClient, pattern: CountedPattern): Promise<string | null> {
  const { hits, partial } = await client.search(pattern);
  const wanted = Math.min(pattern.documents, SearchClient.pageHits);
  return hits.length === wanted && !partial ? null : `${hits.length} hits, not ${wanted}`;
}

async function count(client: SearchClient, pattern: CountedPattern): Promise<string | null> {
  const answer = await client.count(pattern);
  return answer.count === pattern.documents && answer.exact
    ? null
    : `counts ${answer.count}, not ${pattern.documents}`;
}

async function main(folder: string, { say, tell }: Judge): Promise<void> {
  const other = (await import(join(resolve(folder), 'dist/load-tests/server.js'))) as {
    readonly startServer: typeof startServer;
  };
  const corpus = readCorpusOf('source', megabytes * 1e6);
  say(`seed ${seed}; ${corpus.texts.size} files, ${(corpus.bytes / 1e6).toFixed(1)} MB of source code`);
  const patterns = findPatterns([...corpus.texts.values()], new Chance(seed, 0), patternsPerClass);
  const before = await filled(corpus.texts, other.startServer);
  const now = await filled(corpus.texts, startServer);
  const clients = { before: new SearchClient(before, namespace), now: new SearchClient(now, namespace) };
  const compare = async (title: string) => {
    say(`\n${title}`);
    for (const line of linesOf(patterns)) tell(await compared(line, clients));
  };
  await compare('warm, everything in segments');
  const replaced = newestTexts(corpus.texts, corpus.bytes);
  for (const server of [before, now]) await store(server, replaced);
  await compare(`warm, ${replaced.length} documents replaced by themselves, in a memtable on top`);
  for (const client of Object.values(clients)) client.close();
  for (const server of [before, now]) await server.process.stop();
}

async function filled(
  texts: ReadonlyMap<string, Buffer>,
  start: typeof startServer,
): Promise<MeasuredServer> {
  const server = await startMeasured({}, start);
  await store(server, texts);
  return restartFlushed(server, [namespace], {}, start);
}

async function store(server: MeasuredServer, texts: Iterable<readonly [string, Buffer]>): Promise<void> {
  const client = new Connections(server.process.url, server.key, 1);
  await putTexts(client, namespace, texts);
  client.close();
  await whenSegmentsRest(server.process);
}

async function compared(line: Line, clients: Readonly<Record<keyof Pair, SearchClient>>) {
  const wrong = new Set<string>();
  const askBoth = async (pattern: CountedPattern, pair: Pair, round: number) => {
    for (const build of round % 2 === 0 ? (['before', 'now'] as const) : (['now', 'before'] as const)) {
      const began = performance.now();
      const problem = await line.ask(clients[build], pattern);
      pair[build].push(performance.now() - began);
      if (problem !== null) wrong.add(`${build}, ${JSON.stringify(pattern.query)}: ${problem}`);
    }
  };
  const pairs = new Map(line.patterns.map((pattern) => [pattern, { before: [], now: [] } as Pair]));
  for (let round = 0; round < warmUpRounds; round++)
    for (const pattern of line.patterns) await askBoth(pattern, { before: [], now: [] }, round);
  for (let round = 0; round < line.rounds; round++)
    for (const [pattern, pair] of pairs) await askBoth(pattern, pair, round);
  const p50 = (build: keyof Pair) =>
    percentile(
      [...pairs.values()].flatMap((pair) => pair[build]),
      0.5,
    );
  const times = geometricMean(
    [...pairs.values()].map((pair) => percentile(pair.now, 0.5) / percentile(pair.before, 0.5)),
  );
  return {
    name: line.name,
    value: `${times.toFixed(2)} × before`,
    bar: `≤ ${timesMax} ×`,
    ok: times <= timesMax && wrong.size === 0,
    note: [
      `p50 ${p50('before').toFixed(2)} → ${p50('now').toFixed(2)} ms; the figure is the geometric mean over ${pairs.size} patterns`,
      ...[...wrong].slice(0, 3).map((each) => `WRONG ${each}`),
    ].join('\n    '),
  };
}

const folder = textOption('before');
if (folder !== null) await judged((judge) => main(folder, judge));
else {
  process.stdout.write('not run: --before=FOLDER names a checkout of another commit, which is built\n');
  process.exitCode = 2;
}
