import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { repositoryRoot } from '../support/repository.ts';
import { runInJobs } from './jobs.ts';
import { tellSummary, tellViolation } from './report.ts';
import type { Summary } from './seed-runs.ts';
import { runSeed } from './world.ts';

/** More of them: `npm run simulate`. */
const seeds = 80;
const jobs = 2;
/** Each of them takes as long as six of the others. */
const clusterSeeds = 12;
const seedsRunTwice = 8;

function assertNothingViolated({ violations }: Summary): void {
  const lines: string[] = [];
  for (const violation of violations) tellViolation(violation, (line) => lines.push(line));
  assert.equal(violations.length, 0, lines.join('\n'));
}

/** The digests of the run of all seeds: what the same seeds do in another process is compared with it. */
let hashes: Summary['hashes'] = {};

test(`whatever fails, every answer of ${seeds} simulated worlds is kept`, async (t) => {
  const began = performance.now();
  const summary = await runInJobs({ first: 1, seeds, jobs, untilViolation: false });
  tellSummary(summary, performance.now() - began, (line) => t.diagnostic(line));
  hashes = summary.hashes;
  assertNothingViolated(summary);
  assert.equal(summary.seeds, seeds);
  assert.equal(summary.quietSeeds, 0, 'every world meets at least two faults');
  assert.ok(summary.operations >= seeds * 200, 'every world sees at least 200 operations');
});

test(`three servers are one in every one of ${clusterSeeds} simulated worlds`, async (t) => {
  const began = performance.now();
  const wanted = { first: 1, seeds: clusterSeeds, jobs, untilViolation: false, servers: 3 };
  const summary = await runInJobs(wanted);
  tellSummary(summary, performance.now() - began, (line) => t.diagnostic(line), wanted.servers);
  assertNothingViolated(summary);
  assert.equal(summary.seeds, clusterSeeds);
  for (const fault of ['a server joins', 'a server leaves'] as const)
    assert.ok((summary.faults[fault] ?? 0) > 0, fault);
});

test('a seed decides everything that happens', async () => {
  const again = await runInJobs({ first: 1, seeds: seedsRunTwice, jobs: 1, untilViolation: false });
  assert.equal(Object.keys(again.hashes).length, seedsRunTwice);
  for (const [seed, hash] of Object.entries(again.hashes)) assert.equal(hashes[seed], hash, `seed ${seed}`);
});

const regressions = JSON.parse(
  readFileSync(join(repositoryRoot(), 'test/regressions/simulation-seeds.json'), 'utf8'),
) as { readonly seed: number; readonly servers?: number; readonly found: string }[];

test('seeds that once found something find nothing', async () => {
  for (const { seed, servers = 1, found } of regressions) {
    const { violations } = await runSeed(seed, null, servers);
    assert.deepEqual(violations, [], `seed ${seed}: ${found}`);
  }
});
