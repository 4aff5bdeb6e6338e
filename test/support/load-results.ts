import type { LoadResult, PointResult, SideResult } from '../../load-tests/load/result.ts';

/** A result as a scenario writes it, for tests of what is made of results. */
export function loadResult(scenario: string, differing: Partial<LoadResult> = {}): LoadResult {
  return {
    format: 'tidebase load result 1',
    scenario,
    about: 'Reads & searches of <people>.',
    isQuick: false,
    began: '2026-11-23T10:00:00.000Z',
    tookSeconds: 12.3,
    machine: { machine: '2 × "Chip", 24 GiB, linux 6.1', node: 'v20.20.2', commit: '0123abc' },
    settings: { documents: 10_000, store: 'a folder' },
    throughput: [
      {
        name: 'reads',
        tool: 'autocannon',
        connections: 32,
        unit: 'requests',
        carried: 1,
        own: side([9_000, 10_000, 11_000]),
        bare: side([19_000, 20_000, 21_000]),
      },
    ],
    curves: [
      { name: 'reads', over: 'rate', points: [point('100 a second', 100), point('1000 a second', 1_000)] },
      { name: 'first reads', over: 'step', points: [point('cold', 50), point('warm', 50)] },
      { name: 'the mix', over: 'time', points: [point('1', 50), point('2', 50)] },
    ],
    memory: [0, 1, 2].map((atSeconds) => ({
      atSeconds,
      residentBytes: 2e8 + atSeconds * 1e6,
      anonymousBytes: 1e8,
      openFiles: 40,
    })),
    marks: [{ atSeconds: 0, name: 'data' }],
    figures: [
      { name: 'requests that failed', value: '0', bar: '0', ok: true },
      { name: 'logins', value: '20 a second' },
    ],
    ratios: [{ name: 'reads: rate, of bare', better: 'higher', rounds: [0.48, 0.5, 0.52] }],
    failure: null,
    ...differing,
  };
}

function side(perSecond: readonly number[]): SideResult {
  return { perSecond, cpuMicros: [50, 51, 52], generatorCores: [0.99], failures: 0 };
}

function point(label: string, ratePerSecond: number): PointResult {
  return {
    label,
    ratePerSecond,
    sent: 500,
    failures: {},
    notWarm: { cold: 3 },
    latencyMs: { p50: 1, p90: 2, p99: 4, p999: 9, max: 12 },
    lateMs: 0.9,
  };
}
