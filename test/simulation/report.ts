import { clusterFaults, peerFaults, processFaults, storeFaults } from './faults.ts';
import type { SeedViolation, Summary } from './seed-runs.ts';

/** What a run tells its reader. */
const violationsShown = 20;
const linesOfViolation = 25;

export function tellSummary(
  summary: Summary,
  elapsedMs: number,
  say: (line: string) => void,
  servers = 1,
): void {
  const { seeds, events, virtualMs, operations } = summary;
  const perSecond = (seeds / (elapsedMs / 1_000)).toFixed(1);
  say(`${seeds} seeds in ${(elapsedMs / 1_000).toFixed(1)} s, ${perSecond} a second`);
  say(
    `${operations} operations (${(operations / seeds).toFixed(0)} a seed), ${events} events, ` +
      `${(virtualMs / 3_600_000).toFixed(0)} virtual hours, ${summary.quietSeeds} seeds with fewer than 2 faults`,
  );
  say('operations by answer:');
  for (const [name, count] of Object.entries(summary.answers).sort()) say(`  ${name}: ${count}`);
  tellFaults(summary, say);
  say(`violations: ${summary.violations.length}`);
  for (const violation of summary.violations.slice(0, violationsShown))
    tellViolation(violation, say, servers);
  if (summary.violations.length > violationsShown) say('… and more');
}

/** Those that never came, too: a fault that nobody meets tests nothing. */
function tellFaults({ faults }: Summary, say: (line: string) => void): void {
  say('faults by kind:');
  for (const fault of [...processFaults, ...clusterFaults, ...peerFaults, ...storeFaults])
    say(`  ${fault}: ${faults[fault] ?? 0}`);
}

export function tellViolation(
  { seed, kind, text }: SeedViolation,
  say: (line: string) => void,
  servers = 1,
): void {
  say(`✖ seed ${seed}: ${kind}`);
  for (const line of text.split('\n').slice(0, linesOfViolation)) say(`    ${line}`);
  say(`    replay: npm run simulate -- --seed ${seed}${servers === 1 ? '' : ` --servers ${servers}`}`);
}
