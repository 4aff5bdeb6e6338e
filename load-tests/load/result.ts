import type { MachineFacts } from '../bench-report.ts';

/**
 * The result of one scenario as its JSON file has it. The page and the comparison with baselines are made of these alone, so a
 * page can be made again from files of other days.
 */
export interface LoadResult {
  readonly format: typeof resultFormat;
  readonly scenario: string;
  readonly about: string;
  readonly isQuick: boolean;
  /** ISO 8601, UTC. */
  readonly began: string;
  readonly tookSeconds: number;
  readonly machine: MachineFacts;
  readonly settings: Readonly<Record<string, string | number>>;
  readonly throughput: readonly ThroughputResult[];
  readonly curves: readonly CurveResult[];
  readonly memory: readonly MemorySample[];
  /** When each phase began, in seconds since the server's start. */
  readonly marks: readonly { readonly atSeconds: number; readonly name: string }[];
  readonly figures: readonly JudgedFigure[];
  readonly ratios: readonly RatioResult[];
  /** Why the scenario ended before its end; null where it did not. */
  readonly failure: string | null;
}

export const resultFormat = 'tidebase load result 1';

export interface ThroughputResult {
  readonly name: string;
  readonly tool: 'autocannon' | 'wrk';
  readonly connections: number;
  /** What is counted a second: requests, documents. */
  readonly unit: string;
  /** How many of them one request carries. */
  readonly carried: number;
  readonly own: SideResult;
  readonly bare: SideResult;
}

/** One of the two servers in a closed loop: a value for each round. */
export interface SideResult {
  readonly perSecond: readonly number[];
  /** Microseconds of the server's processor time for each request. */
  readonly cpuMicros: readonly number[];
  /** Cores that the generator used, where it runs in this process. Near 1 it was the bottleneck itself. */
  readonly generatorCores: readonly number[] | null;
  readonly failures: number;
}

/** Points of one line or of several steps that are told side by side. */
export interface CurveResult {
  readonly name: string;
  /** `rate`: points differ by their rate. `step`: by their label. `time`: they follow each other. */
  readonly over: 'rate' | 'step' | 'time';
  readonly points: readonly PointResult[];
}

export interface PointResult {
  readonly label: string;
  readonly ratePerSecond: number;
  readonly sent: number;
  /** What was no success, by status and code. */
  readonly failures: Readonly<Record<string, number>>;
  /** Answers that had to read the disk or the store, by `temperature`. */
  readonly notWarm: Readonly<Record<string, number>>;
  /** From the intended start to the whole answer. */
  readonly latencyMs: LatencySummary;
  /** The 99th percentile of how much later than intended the generator began: where it is large, it was the bottleneck. */
  readonly lateMs: number;
}

export interface LatencySummary {
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly p999: number;
  readonly max: number;
}

export interface MemorySample {
  /** Since the server's start. */
  readonly atSeconds: number;
  readonly residentBytes: number;
  /** Without pages of files. */
  readonly anonymousBytes: number;
  readonly openFiles: number;
}

export interface JudgedFigure {
  readonly name: string;
  readonly value: string;
  readonly bar?: string;
  /** Absent: told and not judged. */
  readonly ok?: boolean;
  readonly note?: string;
}

/** One of the values that a run is compared by: ours to a server or program that was measured in the same minutes. */
export interface RatioResult {
  readonly name: string;
  readonly better: 'higher' | 'lower';
  readonly rounds: readonly number[];
}

/** The requests of all points that were no success. */
export function failuresIn(points: readonly PointResult[]): number {
  return points.reduce((sum, { failures }) => sum + Object.values(failures).reduce((a, b) => a + b, 0), 0);
}

/** Whether everything that was judged held, to the scenario's end. */
export function resultHolds({ figures, failure }: LoadResult): boolean {
  return failure === null && figures.every(({ ok }) => ok !== false);
}

export function parseLoadResult(text: string, place: string): LoadResult {
  const value = JSON.parse(text) as LoadResult;
  if (value.format !== resultFormat)
    throw new Error(`${place} is no result of this version: run its scenario again`);
  return value;
}
