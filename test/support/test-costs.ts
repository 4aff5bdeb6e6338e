/**
 * What each test file takes, from test-costs.json: it decides the order of files, and which run beside others.
 * `TIDEBASE_TEST_COSTS=1 npm test` writes what this machine took; a file that is not in it counts as one that computes for
 * two seconds.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from './repository.ts';

export interface FileCost {
  readonly seconds: number;
  /** What all cores together compute for it, in the file's process and in those that it starts. */
  readonly coreSeconds: number;
}

const table = join(repositoryRoot(), 'test/support/test-costs.json');

export function readCosts(): Map<string, FileCost> {
  const rows = JSON.parse(readFileSync(table, 'utf8')) as Readonly<Record<string, readonly [number, number]>>;
  return new Map(
    Object.entries(rows).map(([path, [seconds, coreSeconds]]) => [path, { seconds, coreSeconds }]),
  );
}

/** Files that were not run keep what they had; those that are gone go. */
export function writeCosts(
  measured: ReadonlyMap<string, FileCost>,
  isThere: (path: string) => boolean,
): void {
  const rows = [...new Map([...readCosts(), ...measured])]
    .filter(([path]) => isThere(path))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([path, { seconds, coreSeconds }]) => {
      const cost = [seconds, coreSeconds].map((value) => Math.max(0.1, Math.round(value * 10) / 10));
      return `  ${JSON.stringify(path)}: [${cost.join(', ')}]`;
    });
  writeFileSync(table, `{\n${rows.join(',\n')}\n}\n`);
}
