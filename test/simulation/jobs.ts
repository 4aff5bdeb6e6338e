/** Seeds on several processes: each takes every n-th and hands back what came of them. */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { emptySummary, merge, type Summary } from './seed-runs.ts';

export interface SeedsWanted {
  readonly first: number;
  readonly seeds: number;
  readonly jobs: number;
  /** Whether a job ends at its first violation. */
  readonly untilViolation: boolean;
  /** How many servers each world has; one where absent. */
  readonly servers?: number;
}

/** Every core has a job of its own: collecting garbage on helper threads only takes them from each other. */
const nodeOptions = ['--max-old-space-size=600', '--single-threaded-gc', '--max-semi-space-size=16'];
const entry = fileURLToPath(new URL('./simulate.js', import.meta.url));

export async function runInJobs(wanted: SeedsWanted): Promise<Summary> {
  const { first, seeds, jobs, servers = 1 } = wanted;
  const parts = await Promise.all(
    Array.from({ length: Math.min(jobs, seeds) }, (_, job) =>
      runJob(entry, [
        ...['--job', '--first', String(first + job), '--seeds', String(seeds - job), '--step', String(jobs)],
        ...['--servers', String(servers)],
        ...(wanted.untilViolation ? ['--until-violation'] : []),
      ]),
    ),
  );
  const summary = emptySummary();
  for (const part of parts) merge(summary, part);
  summary.violations.sort((a, b) => a.seed - b.seed);
  return summary;
}

/** One child; `program` is a compiled simulate.ts, this tree's or another one's. */
export function runJob(program: string, options: readonly string[]): Promise<Summary> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [...nodeOptions, program, ...options], {
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    let out = '';
    let errors = '';
    child.stdout?.on('data', (data: Buffer) => {
      out += data.toString();
    });
    child.stderr?.on('data', (data: Buffer) => {
      errors += data.toString();
    });
    child.on('error', reject);
    child.on('close', (code) => {
      if (code === 0) resolve(JSON.parse(out) as Summary);
      else reject(new Error(`a job of the simulation ended with ${code}:\n${errors.slice(0, 4_000)}`));
    });
  });
}
