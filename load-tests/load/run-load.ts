/**
 * `npm run load -- NAME …` or `all`: plays scenarios, writes a JSON file for each, and makes one page of all files in the folder. Ends
 * with 1 where a bar was missed or a scenario ended early, with 2 for a name that there is not. What moved against the baselines is said
 * and not judged.
 *
 *   --quick   --out=load-tests/results   --soak-minutes=60   --keep-baselines   page (makes the page alone)
 *   --servers=3 (each scenario but the soak by three servers behind HAProxy)
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { endOwnS3 } from '../balanced-servers.ts';
import { machineLines, measurementLine, median, thousands } from '../bench-report.ts';
import { isQuick } from '../judge.ts';
import { numberOption, textOption } from '../options.ts';
import { type PeersResult, parsePeersResult, peersFile } from '../peers/peers-table.ts';
import { type Baselines, movementLines, movementsOf, withResult } from './baselines.ts';
import { reportPage } from './page.ts';
import { type LoadResult, parseLoadResult, resultHolds } from './result.ts';
import { byThree, runScenario } from './run-scenario.ts';
import type { Scenario } from './scenario.ts';
import { scenarios } from './scenarios.ts';
import { fullSizes, quickSizes, type Sizes } from './sizes.ts';

const baselinesFile = resolve('load-tests/baselines.json');
const say = (line: string) => process.stdout.write(`${line}\n`);

async function main(words: readonly string[]): Promise<number> {
  const names = words.filter((word) => !word.startsWith('--'));
  const chosen = chosenOf(names);
  if (chosen === null) return names.length === 0 ? 0 : 2;
  const folder = resolve(textOption('out') ?? 'load-tests/results');
  mkdirSync(folder, { recursive: true });
  const baselines = JSON.parse(readFileSync(baselinesFile, 'utf8')) as Baselines;
  for (const line of machineLines()) say(line);
  const results: LoadResult[] = [];
  for (const scenario of chosen) {
    say(`\n${scenario.name}: ${scenario.about}`);
    const result = await runScenario(scenario, sizes(), say);
    tell(result, baselines);
    writeFileSync(join(folder, `${result.scenario}.json`), `${JSON.stringify(result)}\n`);
    results.push(result);
  }
  await endOwnS3();
  if (words.includes('--keep-baselines')) {
    const kept = results.filter(resultHolds).reduce(withResult, baselines);
    writeFileSync(baselinesFile, `${JSON.stringify(kept, null, 2)}\n`);
  }
  const page = join(folder, 'report.html');
  writeFileSync(page, reportPage(resultsIn(folder), baselines, peersIn(folder)));
  say(`\n${page}`);
  return results.every(resultHolds) ? 0 : 1;
}

/** Null where there is nothing to play: the list is said. `page` plays none. */
function chosenOf(names: readonly string[]): readonly Scenario[] | null {
  const unknown = names.filter(
    (name) => !['all', 'page', ...scenarios.map((each) => each.name)].includes(name),
  );
  if (names.length > 0 && unknown.length === 0)
    return scenarios.filter(
      ({ name }) =>
        (names.includes('all') || names.includes(name)) && !(sizes().servers === 3 && name === 'soak'),
    );
  for (const name of unknown)
    say(`there is no scenario "${name}": it can be one of these, "all", or "page"\n`);
  const width = Math.max(...scenarios.map(({ name }) => name.length));
  say(
    'npm run load -- NAME … [--quick] [--out=FOLDER] [--soak-minutes=60] [--servers=3] [--keep-baselines]\n',
  );
  for (const { name, about } of scenarios) say(`  ${name.padEnd(width)}  ${about}`);
  return null;
}

function sizes(): Sizes {
  const base = isQuick ? quickSizes : fullSizes;
  const { soakWindows, soakWindowSeconds } = base;
  const servers = numberOption('servers', 1) === 3 ? 3 : 1;
  const minutes = numberOption('soak-minutes', (soakWindows * soakWindowSeconds) / 60);
  return { ...base, servers, soakWindows: Math.max(2, Math.round((minutes * 60) / soakWindowSeconds)) };
}

function tell(result: LoadResult, baselines: Baselines): void {
  for (const { name, unit, own, bare, tool } of result.throughput) {
    const [ours, theirs] = [median(own.perSecond), median(bare.perSecond)];
    say(`    ${name}: ${thousands(ours)} ${unit} a second, ${(ours / theirs).toFixed(2)} of bare (${tool})`);
  }
  for (const { points } of result.curves) {
    // Of a soak's many windows the last ones.
    for (const { label, latencyMs, lateMs } of points.slice(-5)) {
      const [p50, p99, p999] = [latencyMs.p50, latencyMs.p99, latencyMs.p999].map((ms) => ms.toFixed(1));
      say(
        `    ${label}: p50 ${p50} ms, p99 ${p99} ms, p99.9 ${p999} ms; begun ${lateMs.toFixed(1)} ms late (p99)`,
      );
    }
  }
  for (const figure of result.figures) say(`    ${measurementLine(figure)}`);
  for (const line of movementLines(movementsOf(result, baselines))) say(`    ${line}`);
  if (result.failure !== null) say(`    ENDED EARLY: ${result.failure}`);
}

/** In the order of the scenarios; files of scenarios that are gone stay out. */
function resultsIn(folder: string): LoadResult[] {
  const names = new Set(readdirSync(folder));
  const all = scenarios.map(({ name }) => name);
  return [...all, ...all.map(byThree)].flatMap((name) => {
    const file = join(folder, `${name}.json`);
    return names.has(`${name}.json`) && existsSync(file)
      ? [parseLoadResult(readFileSync(file, 'utf8'), file)]
      : [];
  });
}

function peersIn(folder: string): PeersResult | null {
  const file = join(folder, peersFile);
  return existsSync(file) ? parsePeersResult(readFileSync(file, 'utf8'), file) : null;
}

// A scenario that ended early may have left a server, which would keep this process: its exit ends it.
process.exit(await main(process.argv.slice(2)));
