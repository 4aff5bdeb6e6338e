/**
 * `npm run prove -- mutations [--seeds 1000 --jobs 2 --only REGEX --fresh]`: breaks the protocol in every way of the list, one at a
 * time, and ends with 1 where the simulation did not notice. The seed that noticed it last time (mutation-seeds.json) is tried first; with
 * `--fresh` seeds are counted from 1 on, and a line that can be pasted there is printed.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { repositoryRoot } from '../support/repository.ts';
import { clusterMutations } from './cluster-mutations.ts';
import { linkMutations } from './link-mutations.ts';
import { type Caught, catchMutation } from './mutate.ts';
import { type Mutation, mutations } from './mutations.ts';
import { peerMutations } from './peer-mutations.ts';

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '1000' },
    jobs: { type: 'string', default: '2' },
    only: { type: 'string', default: '' },
    fresh: { type: 'boolean', default: false },
  },
});

const wanted = [...mutations, ...linkMutations, ...clusterMutations, ...peerMutations].filter(({ name }) =>
  new RegExp(values.only).test(name),
);
const waiting = [...wanted];
let missed = 0;
const lastSeeds: Readonly<Record<string, number>> = JSON.parse(
  readFileSync(join(repositoryRoot(), 'test/simulation/mutation-seeds.json'), 'utf8'),
);

function tell({ mutation, seeds, violation, test, elapsedMs }: Caught): void {
  const seconds = (elapsedMs / 1_000).toFixed(1);
  if (test !== null) {
    process.stdout.write(`${mutation.name}: caught by "${test}", ${seconds} s\n`);
    return;
  }
  const found =
    violation === null
      ? `NOT CAUGHT in ${mutation.noticedBy === undefined ? `${seeds} seeds` : `"${mutation.noticedBy.test}"`}`
      : `caught after ${seeds} seeds, by ${violation.seed} (${violation.kind})`;
  process.stdout.write(`${mutation.name}: ${found}, ${seconds} s\n`);
  if (violation === null) missed++;
  else if (values.fresh) process.stdout.write(`  ${JSON.stringify(mutation.name)}: ${violation.seed},\n`);
}

async function work(): Promise<void> {
  for (let mutation = waiting.shift(); mutation !== undefined; mutation = waiting.shift())
    tell(await caught(mutation));
}

async function caught(mutation: Mutation): Promise<Caught> {
  const known = values.fresh ? undefined : lastSeeds[mutation.name];
  if (known !== undefined) {
    const again = await catchMutation(mutation, 1, known);
    if (again.violation !== null) return again;
  }
  return catchMutation(mutation, Number(values.seeds));
}

await Promise.all(Array.from({ length: Number(values.jobs) }, work));
process.stdout.write(`${wanted.length - missed} of ${wanted.length} mutations caught\n`);
process.exitCode = missed > 0 ? 1 : 0;
