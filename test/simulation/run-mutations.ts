/**
 * `npm run prove -- mutations [--seeds 1000 --jobs 2 --only REGEX]`: breaks the protocol in every way of the list, one at a
 * time, and ends with 1 where the simulation did not notice.
 */
import { parseArgs } from 'node:util';
import { clusterMutations } from './cluster-mutations.ts';
import { linkMutations } from './link-mutations.ts';
import { type Caught, catchMutation } from './mutate.ts';
import { mutations } from './mutations.ts';

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '1000' },
    jobs: { type: 'string', default: '2' },
    only: { type: 'string', default: '' },
  },
});

const wanted = [...mutations, ...linkMutations, ...clusterMutations].filter(({ name }) =>
  new RegExp(values.only).test(name),
);
const waiting = [...wanted];
let missed = 0;

function tell({ mutation, seeds, violation, elapsedMs }: Caught): void {
  const seconds = (elapsedMs / 1_000).toFixed(1);
  const found =
    violation === null
      ? `NOT CAUGHT in ${seeds} seeds`
      : `caught after ${seeds} seeds, by ${violation.seed} (${violation.kind})`;
  process.stdout.write(`${mutation.name}: ${found}, ${seconds} s\n`);
  if (violation === null) missed++;
}

async function work(): Promise<void> {
  for (let mutation = waiting.shift(); mutation !== undefined; mutation = waiting.shift())
    tell(await catchMutation(mutation, Number(values.seeds)));
}

await Promise.all(Array.from({ length: Number(values.jobs) }, work));
process.stdout.write(`${wanted.length - missed} of ${wanted.length} mutations caught\n`);
process.exitCode = missed > 0 ? 1 : 0;
