/**
 * The command of the simulation: `npm run simulate -- --seeds 3000 [--first 1] [--jobs 2]` runs seeds and tells what came
 * of them, `--seed S` replays one with everything that happened in it, `--coverage` tells (in one process) which branches
 * of the protocol's files were never taken. Ends with 1 where something was violated.
 */
import { parseArgs } from 'node:util';
import { tellCoverage, withCoverage } from './coverage.ts';
import { runInJobs } from './jobs.ts';
import { tellSummary, tellViolation } from './report.ts';
import { runSeeds, seedsFrom } from './seed-runs.ts';
import { runSeed } from './world.ts';

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '300' },
    first: { type: 'string', default: '1' },
    jobs: { type: 'string', default: '2' },
    seed: { type: 'string' },
    servers: { type: 'string', default: '1' },
    coverage: { type: 'boolean', default: false },
    /** How this program calls itself. */
    job: { type: 'boolean', default: false },
    step: { type: 'string', default: '1' },
    'until-violation': { type: 'boolean', default: false },
  },
});
const say = (line: string) => process.stdout.write(`${line}\n`);

async function replay(seed: number): Promise<number> {
  const result = await runSeed(seed, say, Number(values.servers));
  say(`hash ${result.hash}, ${result.events} events`);
  for (const violation of result.violations)
    tellViolation({ seed, ...violation }, say, Number(values.servers));
  return result.violations.length;
}

async function runJob(): Promise<number> {
  // A job does not outlive whoever wants its seeds; the channel is there for that alone.
  process.once('disconnect', () => process.exit(1));
  process.channel?.unref();
  const seeds = seedsFrom(Number(values.first), Number(values.seeds), Number(values.step));
  const goOn = values['until-violation']
    ? ({ violations }: { violations: unknown[] }) => violations.length === 0
    : () => true;
  const summary = await runSeeds(seeds, goOn, Number(values.servers));
  process.stdout.write(JSON.stringify(summary));
  return 0;
}

async function runCovered(): Promise<number> {
  const began = performance.now();
  const seeds = seedsFrom(Number(values.first), Number(values.seeds));
  const { value: summary, files } = await withCoverage(() => runSeeds(seeds));
  tellCoverage(files, say);
  tellSummary(summary, performance.now() - began, say);
  return summary.violations.length;
}

async function runAll(): Promise<number> {
  const began = performance.now();
  const summary = await runInJobs({
    first: Number(values.first),
    seeds: Number(values.seeds),
    jobs: Number(values.jobs),
    servers: Number(values.servers),
    untilViolation: values['until-violation'],
  });
  tellSummary(summary, performance.now() - began, say, Number(values.servers));
  return summary.violations.length;
}

function chosen(): Promise<number> {
  if (values.seed !== undefined) return replay(Number(values.seed));
  if (values.job) return runJob();
  return values.coverage ? runCovered() : runAll();
}

process.exitCode = (await chosen()) > 0 ? 1 : 0;
