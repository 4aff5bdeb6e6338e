/** Pure arithmetic of load tests. */
import { median } from '../bench-report.ts';
import { percentile } from '../open-loop.ts';
import type { LatencySummary, MemorySample, RatioResult, ThroughputResult } from './result.ts';

/** The change of y for each unit of x, by least squares; NaN for fewer than two points or all at one x. */
export function leastSquaresSlope(points: readonly (readonly [x: number, y: number])[]): number {
  const count = points.length;
  const meanX = points.reduce((sum, [x]) => sum + x, 0) / count;
  const meanY = points.reduce((sum, [, y]) => sum + y, 0) / count;
  let [products, squares] = [0, 0];
  for (const [x, y] of points) {
    products += (x - meanX) * (y - meanY);
    squares += (x - meanX) ** 2;
  }
  return squares === 0 ? Number.NaN : products / squares;
}

/** Bytes a minute by which resident memory grew over the second half of the time from `fromSeconds` to `toSeconds`. */
export function residentSlope(
  samples: readonly MemorySample[],
  fromSeconds: number,
  toSeconds: number,
): number {
  const half = (fromSeconds + toSeconds) / 2;
  const late = samples.filter(({ atSeconds }) => atSeconds >= half && atSeconds <= toSeconds);
  return 60 * leastSquaresSlope(late.map(({ atSeconds, residentBytes }) => [atSeconds, residentBytes]));
}

/** Half the distance between the lowest and the highest, as a share of the median: what the same thing varies by. */
export function relativeSpread(values: readonly number[]): number {
  const middle = median(values);
  return middle === 0 ? 0 : (Math.max(...values) - Math.min(...values)) / 2 / Math.abs(middle);
}

export function latencySummary(latenciesMs: readonly number[]): LatencySummary {
  const sorted = Float64Array.from(latenciesMs).sort();
  const at = (share: number) =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
  return { p50: at(0.5), p90: at(0.9), p99: at(0.99), p999: at(0.999), max: at(1) };
}

/**
 * Ours to the bare server's, round by round: each pair was measured within seconds. Processor time is told where the kernel's
 * hundredths of a second saw any of the bare server's.
 */
export function ratiosOfBare({ name, own, bare }: ThroughputResult): RatioResult[] {
  const byRound = (ours: readonly number[], theirs: readonly number[]) =>
    ours.map((value, round) => value / (theirs[round] ?? Number.NaN));
  const ratios: RatioResult[] = [
    { name: `${name}: rate, of bare`, better: 'higher', rounds: byRound(own.perSecond, bare.perSecond) },
    {
      name: `${name}: processor time, of bare`,
      better: 'lower',
      rounds: byRound(own.cpuMicros, bare.cpuMicros),
    },
  ];
  return ratios.filter(({ rounds }) => rounds.every(Number.isFinite));
}

/** The mean that ratios have: of 2 and 0.5 it is 1. */
export function geometricMean(values: readonly number[]): number {
  return Math.exp(values.reduce((sum, value) => sum + Math.log(value), 0) / values.length);
}

/**
 * The rates of an open loop: shares of what the server did in a closed one, as far as the generator can follow. Whole
 * numbers over 10, each once.
 */
export function ratesOf(shares: readonly number[], perSecond: number, ratePerSecondMax: number): number[] {
  const most = Math.min(perSecond, ratePerSecondMax / Math.max(...shares));
  const rates = shares.map((share) => (share * most > 10 ? Math.round(share * most) : share * most));
  return [...new Set(rates.filter((rate) => rate > 0))];
}

/** Milliseconds under which 99 of 100 values lie. */
export const p99Of = (values: readonly number[]): number => percentile(values, 0.99);
