/**
 * `npm run prove -- text-exactness`: real texts in a real server against RE2 run over all of them. Ends with 1 on any difference.
 *
 *   --corpus=source|prose|unicode (default: each of them)   --megabytes=50
 *   --literals=500   --regexes=300   --seed=N
 */
import { Chance } from '../test/simulation/chance.ts';
import { checkTexts, type KindTotals, storeTexts } from './check-texts.ts';
import { type CorpusName, corpusNames, readCorpusOf } from './corpora.ts';
import { startMeasured } from './measured-server.ts';
import { numberOption, seedOption, textOption } from './options.ts';
import { textCases } from './text-cases.ts';

const seed = seedOption();
const wanted = { literals: numberOption('literals', 500), regexes: numberOption('regexes', 300) };
const megabytes = numberOption('megabytes', 55);
const differencesShownMax = 10;
const tellEvery = 100;
const say = (line: string) => process.stdout.write(`${line}\n`);

async function judge(name: CorpusName): Promise<boolean> {
  const { texts, bytes } = readCorpusOf(name, megabytes * 1e6);
  // Cases are drawn from all that was ever written: what only a replaced text said must not be found.
  const cases = textCases([...texts.values()], new Chance(seed, 0), wanted);
  say(`${name}: ${texts.size} documents, ${(bytes / 1e6).toFixed(1)} MB; ${cases.length} cases`);
  const began = performance.now();
  const stored = await storeTexts(await startMeasured(), name, texts);
  const storedAt = performance.now();
  say(`    stored in ${seconds(storedAt - began)}`);
  const { differences, byKind } = await checkTexts(stored, cases, new Chance(seed, 1), (done) => {
    if (done % tellEvery === 0) say(`    ${done} cases in ${seconds(performance.now() - storedAt)}`);
  });
  await stored.server.process.stop();
  for (const [kind, totals] of byKind) say(`    ${row(kind, totals)}`);
  for (const each of differences.slice(0, differencesShownMax)) say(`DIFFERENT ${each}`);
  say(`${name}: ${differences.length} differences\n`);
  return differences.length === 0;
}

const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;

function row(kind: string, { cases, nothing, matches, differentCases }: KindTotals): string {
  const counts = `${String(cases).padStart(4)} cases ${String(matches).padStart(9)} matches`;
  return `${kind.padEnd(38)} ${counts}, ${String(nothing).padStart(3)} match nothing, ${differentCases} different`;
}

function namesWanted(): readonly CorpusName[] {
  const given = textOption('corpus');
  if (given === null) return corpusNames;
  const names = corpusNames.filter((name) => name === given);
  if (names.length === 0) throw new Error(`--corpus is one of ${corpusNames.join(', ')}`);
  return names;
}

say(`seed ${seed}\n`);
let right = true;
for (const name of namesWanted()) right = (await judge(name)) && right;
process.exitCode = right ? 0 : 1;
