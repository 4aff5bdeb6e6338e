import { execFileSync } from 'node:child_process';
import { cpus, release, totalmem } from 'node:os';

/** One measured thing and the bar that it must clear; without a bar it is told and not judged. */
export interface Measurement {
  readonly name: string;
  readonly value: string;
  readonly bar?: string;
  readonly ok?: boolean;
  readonly note?: string;
}

const nameWidth = 46;
const valueWidth = 24;

export function measurementLine({ name, value, bar, ok, note }: Measurement): string {
  const verdict = ok === undefined ? '' : ok ? 'ok' : 'MISSED';
  const judged = bar === undefined ? '' : `bar ${bar}`;
  const line =
    `${name.padEnd(nameWidth)} ${value.padEnd(valueWidth)} ${judged.padEnd(16)} ${verdict}`.trimEnd();
  return note === undefined ? line : `${line}\n    ${note}`;
}

/** What figures were measured with, each in words for people. */
export interface MachineFacts {
  readonly machine: string;
  readonly node: string;
  readonly commit: string;
}

export function machineFacts(): MachineFacts {
  const [cpu] = cpus();
  const memory = Math.round(totalmem() / 2 ** 30);
  return {
    machine: `${cpus().length} × ${cpu?.model.trim() ?? 'unknown'}, ${memory} GiB, ${process.platform} ${release()}`,
    node: process.version,
    commit: commit(),
  };
}

export function machineLines(): string[] {
  const { machine, node, commit } = machineFacts();
  return [`machine  ${machine}`, `node     ${node}`, `commit   ${commit}`];
}

function commit(): string {
  try {
    const git = (...args: string[]) => execFileSync('git', args, { encoding: 'utf8', stdio: 'pipe' }).trim();
    return `${git('rev-parse', '--short', 'HEAD')}${git('status', '--porcelain') === '' ? '' : ' with changes'}`;
  } catch {
    return 'unknown';
  }
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

export function geometricMean(values: readonly number[]): number {
  return Math.exp(values.reduce((sum, value) => sum + Math.log(value), 0) / values.length);
}

export function thousands(value: number): string {
  return Math.round(value).toLocaleString('en-GB');
}

export function spread(values: readonly number[], digits: number): string {
  return `${Math.min(...values).toFixed(digits)} to ${Math.max(...values).toFixed(digits)}`;
}

/** Bytes as megabytes. */
export function megabytes(bytes: number): string {
  return `${Math.round(bytes / 1e6)} MB`;
}
