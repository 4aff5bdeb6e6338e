import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import {
  type BaselineRun,
  type Baselines,
  movementLines,
  movementsOf,
  withResult,
} from '../../../load-tests/load/baselines.ts';
import { scenarios } from '../../../load-tests/load/scenarios.ts';
import { loadResult } from '../../support/load-results.ts';

const key = 'point-reads/reads: rate, of bare';
const none: Baselines = { full: {}, quick: {} };

const run = (median: number, differing: Partial<BaselineRun> = {}): BaselineRun => ({
  date: '2026-11-01',
  commit: 'abc',
  machine: '2 × "Chip", 24 GiB, linux 6.1',
  median,
  lowest: median * 0.98,
  highest: median * 1.02,
  ...differing,
});

const baseline = (...runs: BaselineRun[]): Baselines => ({
  full: { [key]: { better: 'higher', runs } },
  quick: {},
});

const rounds = (...values: number[]) =>
  loadResult('point-reads', {
    ratios: [{ name: 'reads: rate, of bare', better: 'higher', rounds: values }],
  });

const verdict = (...[result, baselines]: Parameters<typeof movementsOf>) =>
  movementsOf(result, baselines).map((movement) => movement.verdict);

describe('baselines of load tests', () => {
  it('a ratio has moved when it differs by more than both runs vary', () => {
    const steady = baseline(run(0.5));

    assert.deepEqual(verdict(rounds(0.5, 0.51, 0.52), steady), ['same']);
    assert.deepEqual(verdict(rounds(0.6, 0.61, 0.62), steady), ['better']);
    assert.deepEqual(verdict(rounds(0.4, 0.41, 0.42), steady), ['worse']);
    assert.deepEqual(verdict(rounds(0.3, 0.41, 0.5), steady), ['same'], 'its own rounds vary that much');
  });

  it('what the runs of a baseline vary by is noise too', () => {
    const varying = baseline(run(0.5), run(0.4), run(0.6));

    assert.deepEqual(verdict(rounds(0.6, 0.61, 0.62), varying), ['same']);
  });

  it('of what should be low, more is worse', () => {
    const low = (value: number) => ({ name: 'cpu', better: 'lower' as const, rounds: [value] });
    const baselines: Baselines = {
      full: { 'point-reads/cpu': { better: 'lower', runs: [run(2)] } },
      quick: {},
    };

    assert.deepEqual(verdict(loadResult('point-reads', { ratios: [low(3)] }), baselines), ['worse']);
    assert.deepEqual(verdict(loadResult('point-reads', { ratios: [low(1)] }), baselines), ['better']);
  });

  it('a quick run is not held against a full one', () => {
    const quick = loadResult('point-reads', { isQuick: true });

    assert.deepEqual(verdict(quick, baseline(run(5))), ['new']);
  });

  it('a result becomes the newest of five runs, and what it does not have stays', () => {
    const other = { better: 'higher', runs: [run(1)] } as const;
    const before: Baselines = { full: { 'soak/other': other }, quick: {} };

    let kept = before;
    for (let i = 0; i < 7; i++) kept = withResult(kept, rounds(0.5 + i / 10));

    assert.equal(kept.full['soak/other'], other);
    assert.deepEqual(
      kept.full[key]?.runs.map(({ median }) => median),
      [1.1, 1, 0.9, 0.8, 0.7],
    );
    assert.deepEqual(kept.quick, {});
  });

  it('lines say what moved by how much, and that a baseline is of another machine', () => {
    const elsewhere = baseline(run(0.5, { machine: 'another' }));

    const [line = ''] = movementLines(movementsOf(rounds(0.25, 0.25), elsewhere));

    assert.match(
      line,
      /^worse +point-reads\/reads: rate, of bare: 0\.250, 0\.500 before \(−50 %, noise 8 %, on another machine\)$/,
    );
    assert.match(movementLines(movementsOf(rounds(1), none)).join(), /1 ratios have no baseline/);
  });

  it('the file names scenarios that there are', () => {
    const baselines = JSON.parse(readFileSync('load-tests/baselines.json', 'utf8')) as Baselines;
    const names = scenarios.map(({ name }) => name);

    for (const each of Object.keys({ ...baselines.full, ...baselines.quick }))
      assert.ok(names.includes(each.slice(0, each.indexOf('/'))), each);
  });
});
