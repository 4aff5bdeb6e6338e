import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { MemorySample, ThroughputResult } from '../../../load-tests/load/result.ts';
import {
  geometricMean,
  latencySummary,
  leastSquaresSlope,
  ratesOf,
  ratiosOfBare,
  relativeSpread,
  residentSlope,
} from '../../../load-tests/load/statistics.ts';

const sample = (atSeconds: number, residentBytes: number): MemorySample => ({
  atSeconds,
  residentBytes,
  anonymousBytes: 0,
  openFiles: 0,
});

describe('arithmetic of load tests', () => {
  it('a slope is that of the line that lies nearest', () => {
    assert.equal(
      leastSquaresSlope([
        [0, 1],
        [1, 3],
        [2, 5],
      ]),
      2,
    );
    assert.equal(
      leastSquaresSlope([
        [0, 0],
        [1, 1],
        [2, 0],
      ]),
      0,
    );
    assert.ok(Number.isNaN(leastSquaresSlope([[1, 1]])));
  });

  it('memory is judged by its second half, in bytes a minute', () => {
    const growing = Array.from({ length: 101 }, (_, i) => sample(i, i < 50 ? i * 1e9 : 5e10 + i * 10));

    assert.equal(Math.round(residentSlope(growing, 0, 100)), 600);
  });

  it('memory that comes and goes has no slope to speak of, and what leaks a megabyte a minute has one', () => {
    const wave = (i: number) => 200e6 + 20e6 * Math.sin(i);
    const steady = Array.from({ length: 3_600 }, (_, i) => sample(i, wave(i)));
    const leaking = Array.from({ length: 3_600 }, (_, i) => sample(i, wave(i) + (i / 60) * 1.1e6));

    assert.ok(Math.abs(residentSlope(steady, 0, 3_600)) < 0.1e6);
    assert.ok(residentSlope(leaking, 0, 3_600) > 1e6);
  });

  it('a spread is half of what lies between the extremes, as a share of the median', () => {
    assert.equal(relativeSpread([90, 100, 110]), 0.1);
    assert.equal(relativeSpread([100]), 0);
  });

  it('a latency summary has the values under which the shares lie', () => {
    const latencies = Array.from({ length: 1_000 }, (_, i) => 1_000 - i);

    assert.deepEqual(latencySummary(latencies), { p50: 501, p90: 901, p99: 991, p999: 1_000, max: 1_000 });
  });

  it('rates are shares of the throughput, as far as the generator follows', () => {
    assert.deepEqual(ratesOf([0.1, 0.5], 1_000, 3_000), [100, 500]);
    assert.deepEqual(ratesOf([0.1, 0.5], 50_000, 3_000), [600, 3_000]);
    assert.deepEqual(ratesOf([0.1, 0.5], 4, 3_000), [0.4, 2]);
  });

  it('ratios pair our rounds with those of the bare server', () => {
    const side = (perSecond: number[], cpuMicros: number[]) => ({
      perSecond,
      cpuMicros,
      generatorCores: null,
      failures: 0,
    });
    const result: ThroughputResult = {
      name: 'reads',
      tool: 'wrk',
      connections: 1,
      unit: 'requests',
      carried: 1,
      own: side([10, 30], [8, 9]),
      bare: side([20, 40], [4, 3]),
    };

    assert.deepEqual(ratiosOfBare(result), [
      { name: 'reads: rate, of bare', better: 'higher', rounds: [0.5, 0.75] },
      { name: 'reads: processor time, of bare', better: 'lower', rounds: [2, 3] },
    ]);
  });

  it('processor time that the kernel did not see makes no ratio', () => {
    const side = { perSecond: [1], cpuMicros: [0], generatorCores: null, failures: 0 };
    const result: ThroughputResult = {
      name: 'batches',
      tool: 'wrk',
      connections: 1,
      unit: 'documents',
      carried: 1_000,
      own: { ...side, cpuMicros: [5] },
      bare: side,
    };

    assert.deepEqual(
      ratiosOfBare(result).map(({ name }) => name),
      ['batches: rate, of bare'],
    );
  });

  it('the mean of ratios takes twice and half for even', () => {
    assert.ok(Math.abs(geometricMean([2, 0.5]) - 1) < 1e-12);
  });
});
