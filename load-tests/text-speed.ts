/**
 * `npm run measure -- text-speed`: searches and counts over real source code through the API, against `rg` and `csearch` over the
 * same files, in one run. Twice: all of it in segments, and with a full memtable of replaced documents on top. Ends with
 * 1 where a bar is missed or an answer is not what was counted in the files, with 2 where a program is missing.
 *
 *   --megabytes=150   --repetitions=50 (of each line)   --patterns=5 (of each class)   --seed=N
 */
import { join } from 'node:path';
import { Chance } from '../test/simulation/chance.ts';
import { linkedFolder, readCorpusOf } from './corpora.ts';
import { isQuick, type Judge, judged } from './judge.ts';
import { Connections, type MeasuredServer, startMeasured } from './measured-server.ts';
import { percentile } from './open-loop.ts';
import { numberOption, seedOption } from './options.ts';
import { missingPrograms, type ProgramRuns, timeProgram } from './outside-programs.ts';
import { treeCpuSeconds } from './processes.ts';
import { putTexts } from './put-texts.ts';
import { quoted } from './re2-oracle.ts';
import { newestTexts } from './replaced-texts.ts';
import { restartFlushed } from './restart-flushed.ts';
import { ripgrepCommand } from './ripgrep.ts';
import { type CountedPattern, findPatterns, type Patterns, patternLine } from './search-patterns.ts';
import { SearchClient, type Timed, timedMeasurement } from './search-times.ts';
import { temporaryFolder } from './server.ts';
import { segmentPuts, whenSegmentsRest } from './store-counts.ts';

const megabytes = numberOption('megabytes', isQuick ? 4 : 150);
const repetitions = numberOption('repetitions', isQuick ? 10 : 50);
const patternsPerClass = numberOption('patterns', 5);
const seed = seedOption();
const outsideTimes = isQuick ? 2 : 5;
const scans = isQuick ? 2 : 5;
const namespace = 'source';
const bars = { searchMs: 3, timesRipgrep: 20, scanMbPerSecond: 300 };

interface Outside {
  readonly ripgrep: Timed;
  readonly csearch: Timed;
}

interface Subject {
  readonly patterns: Patterns;
  readonly bytes: number;
  readonly outside: ReadonlyMap<readonly CountedPattern[], Outside>;
}

async function main(judge: Judge): Promise<void> {
  const { say } = judge;
  const corpus = readCorpusOf('source', megabytes * 1e6);
  say(`seed ${seed}; ${corpus.texts.size} files, ${(corpus.bytes / 1e6).toFixed(1)} MB of source code`);
  const patterns = findPatterns([...corpus.texts.values()], new Chance(seed, 0), patternsPerClass);
  tellPatterns(judge, patterns);
  const folder = linkedFolder(corpus);
  const outside = measureOutside(judge, folder, patterns, corpus.texts.size);

  let server = await startMeasured();
  await store(server, corpus.texts);
  server = await restartFlushed(server, [namespace]);
  const subject = { patterns, bytes: corpus.bytes, outside };
  say('\nwarm, everything in segments');
  await measure(judge, server, subject);

  const replaced = newestTexts(corpus.texts, corpus.bytes);
  await store(server, replaced);
  await whenSegmentsRest(server.process);
  const flushes = await segmentPuts(server.process);
  say(
    `\nwarm, ${replaced.length} documents replaced by themselves: ${(bytesOf(replaced) / 1e6).toFixed(1)} MB in a memtable on top`,
  );
  await measure(judge, server, subject);
  if ((await segmentPuts(server.process)) !== flushes) say('    (it was flushed meanwhile: measure again)');
  await server.process.stop();
}

async function store(
  { process: server, key }: MeasuredServer,
  texts: Iterable<readonly [string, Buffer]>,
): Promise<void> {
  const client = new Connections(server.url, key, 1);
  await putTexts(client, namespace, texts);
  client.close();
}

const bytesOf = (texts: readonly (readonly [string, Buffer])[]) =>
  texts.reduce((sum, [, text]) => sum + text.length, 0);

function tellPatterns({ say }: Judge, patterns: Patterns): void {
  const list = (name: string, of: readonly CountedPattern[]) =>
    say(`    ${name}: ${of.map(patternLine).join(', ')}`);
  list('selective literals', patterns.selectiveLiterals);
  list('selective regexes', patterns.selectiveRegexes);
  list('frequent words', patterns.frequentWords);
  list('a regex that must scan', [patterns.scanning]);
}

function measureOutside(
  { say }: Judge,
  folder: string,
  patterns: Patterns,
  files: number,
): Map<readonly CountedPattern[], Outside> {
  const index = join(temporaryFolder(), 'csearch-index');
  const env = { CSEARCHINDEX: index };
  timeProgram(['cindex', folder], 1, { cwd: folder, env });
  say(
    `\nripgrep and csearch over the same ${files} files, process start included; csearch leaves some files out`,
  );
  const found = new Map<readonly CountedPattern[], Outside>();
  for (const each of [
    patterns.selectiveLiterals,
    patterns.selectiveRegexes,
    patterns.frequentWords,
    [patterns.scanning],
  ]) {
    const ripgrep = timeAll(each, (pattern) =>
      timeProgram(ripgrepCommand(pattern), outsideTimes, { cwd: folder }),
    );
    const csearch = timeAll(each, (pattern) =>
      timeProgram(csearchCommand(pattern), outsideTimes, { cwd: folder, env }),
    );
    // Its index holds no file of long lines or many trigrams: fewer files are no mistake.
    found.set(each, { ripgrep, csearch: { ...csearch, wrong: [] } });
    say(
      `    rg ${p50Text(ripgrep)}, csearch ${p50Text(csearch)}: ${each.map(patternLine).join(', ').slice(0, 100)}`,
    );
    for (const problem of ripgrep.wrong) say(`    rg ${problem}`);
  }
  return found;
}

const p50 = ({ timesMs }: Timed) => percentile(timesMs, 0.5);
const p50Text = (timed: Timed) => `p50 ${p50(timed).toFixed(1)} ms`;

function timeAll(patterns: readonly CountedPattern[], run: (pattern: CountedPattern) => ProgramRuns): Timed {
  const all = patterns.map((pattern) => ({ pattern, runs: run(pattern) }));
  return {
    timesMs: all.flatMap(({ runs }) => runs.timesMs),
    wrong: all
      .filter(({ pattern, runs }) => runs.lines !== pattern.documents)
      .map(
        ({ pattern, runs }) =>
          `${JSON.stringify(pattern.query)}: ${runs.lines} files, not ${pattern.documents}`,
      ),
  };
}

function csearchCommand({ query, isRegex }: CountedPattern): string[] {
  return ['csearch', '-l', ...(isRegex ? [query] : ['-i', quoted(query)])];
}

async function measure(
  { tell }: Judge,
  server: MeasuredServer,
  { patterns, bytes, outside }: Subject,
): Promise<void> {
  const client = new SearchClient(server, namespace);
  const { selectiveLiterals, selectiveRegexes, frequentWords, scanning } = patterns;
  for (const [name, each] of [
    ['selective literal', selectiveLiterals],
    ['selective regex', selectiveRegexes],
  ] as const) {
    const found = await client.timeSearches(each, repetitions);
    const times = outsideOf(outside, each, 'ripgrep') / p50(found);
    const also = {
      text: `≥ ${bars.timesRipgrep} × rg (${times.toFixed(1)} ×)`,
      ok: times >= bars.timesRipgrep,
    };
    tell(timedMeasurement(`${name}, limit 20`, found, { p50MsMax: bars.searchMs, also }));
  }
  const frequent = await client.timeSearches(frequentWords, repetitions);
  tell(timedMeasurement('frequent word, limit 20', frequent, { p50MsMax: bars.searchMs }));
  for (const [name, each, program] of [
    ['exact count of a selective literal', selectiveLiterals, 'csearch'],
    ['exact count of a selective regex', selectiveRegexes, 'csearch'],
    ['exact count of a frequent word', frequentWords, 'ripgrep'],
  ] as const) {
    const counted = await client.timeCounts(each, repetitions);
    const theirs = outsideOf(outside, each, program);
    const also = { text: `≤ ${program} (${theirs.toFixed(1)} ms)`, ok: p50(counted) <= theirs };
    tell(timedMeasurement(name, counted, { also }));
  }
  tell(await measureScan(client, server, scanning, bytes));
  client.close();
}

function outsideOf(
  outside: Subject['outside'],
  patterns: readonly CountedPattern[],
  program: keyof Outside,
): number {
  const found = outside.get(patterns);
  return found === undefined ? Number.NaN : p50(found[program]);
}

/** By processor time of the whole server, so that a scan on several threads is no faster for it. */
async function measureScan(
  client: SearchClient,
  { process: server }: MeasuredServer,
  scanning: CountedPattern,
  bytes: number,
) {
  await client.timeCounts([scanning], 1);
  const cpuBefore = treeCpuSeconds(server.processId);
  const began = performance.now();
  let wrong = 0;
  for (let i = 0; i < scans; i++) if ((await client.count(scanning)).count !== scanning.documents) wrong++;
  const wallSeconds = (performance.now() - began) / 1_000;
  const cpuSeconds = treeCpuSeconds(server.processId) - cpuBefore;
  const rate = (bytes * scans) / 1e6 / cpuSeconds;
  return {
    name: 'a regex that must scan',
    value: `${rate.toFixed(0)} MB/s a thread`,
    bar: `≥ ${bars.scanMbPerSecond}`,
    ok: rate >= bars.scanMbPerSecond && wrong === 0,
    note: `${scans} counts: ${((bytes * scans) / 1e6 / wallSeconds).toFixed(0)} MB/s by the clock; ${wrong} wrong`,
  };
}

const missing = missingPrograms('rg', 'csearch', 'cindex');
if (missing.length === 0) await judged(main);
else {
  process.stdout.write(`skipped: ${missing.join(', ')} not installed (apt-get install ripgrep codesearch)\n`);
  process.exitCode = 2;
}
