/** Which branches of the protocol's files the seeds went through, by V8's own counters. */
import { readFileSync } from 'node:fs';
import { type Profiler, Session } from 'node:inspector/promises';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildFolder } from './mutate.ts';

const measured = [
  /^actors\/log\/(?!log-client)/,
  /^actors\/namespace\//,
  /^actors\/tenant\//,
  /^actors\/actor-host/,
  /^actors\/storage\/(manifest|tombstones|memtable|compaction-policy)/,
  /^src\/cluster\/(view|collect|sweep)/,
];

export interface FileCoverage {
  readonly path: string;
  /** As V8 tells them: functions, and blocks that ran more or less often than what is around them. */
  readonly branches: number;
  readonly taken: number;
  /** The first words of each that was never run, with its line in the compiled file. */
  readonly missed: readonly string[];
}

export async function withCoverage<T>(
  work: () => Promise<T>,
): Promise<{ readonly value: T; readonly files: readonly FileCoverage[] }> {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  const value = await work();
  const { result } = await session.post('Profiler.takePreciseCoverage');
  session.disconnect();
  return { value, files: result.flatMap(coverageOf).sort((a, b) => (a.path < b.path ? -1 : 1)) };
}

function coverageOf(script: Profiler.ScriptCoverage): FileCoverage[] {
  if (!script.url.startsWith('file:')) return [];
  const file = fileURLToPath(script.url);
  const path = relative(buildFolder, file);
  if (!measured.some((pattern) => pattern.test(path))) return [];
  const ranges = script.functions.flatMap((called) => called.ranges);
  const source = readFileSync(file, 'utf8');
  const missed = ranges
    .filter(({ count }) => count === 0)
    .map(({ startOffset }) => tell(source, startOffset));
  return [{ path, branches: ranges.length, taken: ranges.length - missed.length, missed }];
}

const wordsShown = 90;

function tell(source: string, offset: number): string {
  const line = source.slice(0, offset).split('\n').length;
  const text = source
    .slice(offset, offset + wordsShown * 2)
    .replace(/\s+/g, ' ')
    .trim();
  return `${line}: ${text.slice(0, wordsShown)}`;
}

export function tellCoverage(files: readonly FileCoverage[], say: (line: string) => void): void {
  const share = (taken: number, branches: number) => `${((taken / branches) * 100).toFixed(1)} %`;
  const sum = (of: (file: FileCoverage) => number) => files.reduce((total, file) => total + of(file), 0);
  for (const { path, branches, taken, missed } of files) {
    say(`${path}: ${share(taken, branches)} of ${branches} branches`);
    for (const line of missed) say(`    never: ${line}`);
  }
  const branches = sum((file) => file.branches);
  say(
    `branches of the protocol's files: ${share(
      sum((file) => file.taken),
      branches,
    )} of ${branches}`,
  );
}
