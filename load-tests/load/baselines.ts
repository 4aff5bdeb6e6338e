import { median } from '../bench-report.ts';
import type { LoadResult, RatioResult } from './result.ts';
import { relativeSpread } from './statistics.ts';

/**
 * `load-tests/baselines.json`: the ratios of earlier runs, which a run is compared with. Ratios and not rates, for a machine that is
 * twice as fast is so for the bare server too. Runs of `--quick` do less of everything and have ratios of their own.
 *
 * A ratio has moved when it differs from the baseline by more than both vary: half the spread of this run's rounds and half that of
 * all rounds of the baseline's runs, and never less than `noiseMin`.
 */
export interface Baselines {
  readonly full: BaselineSet;
  readonly quick: BaselineSet;
}

/** `SCENARIO/NAME of the ratio` to what was seen. */
export type BaselineSet = Readonly<Record<string, BaselineRatio>>;

export interface BaselineRatio {
  readonly better: RatioResult['better'];
  /** Newest first. */
  readonly runs: readonly BaselineRun[];
}

export interface BaselineRun {
  readonly date: string;
  readonly commit: string;
  readonly machine: string;
  readonly median: number;
  readonly lowest: number;
  readonly highest: number;
}

/** What is quicker or slower than this between two runs of the same commit is nothing to speak of. */
const noiseMin = 0.08;
const runsKept = 5;

export interface Movement {
  readonly key: string;
  readonly now: number;
  /** Null where no baseline has it. */
  readonly before: number | null;
  /** As a share of what it was: 0.1 is a tenth more. */
  readonly change: number;
  /** What it may differ by, as such a share. */
  readonly noise: number;
  readonly verdict: 'new' | 'same' | 'better' | 'worse';
  /** The baseline is of another machine: its ratios are a hint at most. */
  readonly isOtherMachine: boolean;
}

export function ratioKey(scenario: string, { name }: RatioResult): string {
  return `${scenario}/${name}`;
}

export function setOf(baselines: Baselines, { isQuick }: LoadResult): BaselineSet {
  return isQuick ? baselines.quick : baselines.full;
}

/** How each ratio of a result stands to the baseline. */
export function movementsOf(result: LoadResult, baselines: Baselines): Movement[] {
  const known = setOf(baselines, result);
  return result.ratios.map((ratio) => {
    const key = ratioKey(result.scenario, ratio);
    return movementOf(key, ratio, known[key] ?? null, result.machine.machine);
  });
}

function movementOf(
  key: string,
  ratio: RatioResult,
  before: BaselineRatio | null,
  machine: string,
): Movement {
  const now = median(ratio.rounds);
  const latest = before?.runs[0];
  if (before === null || latest === undefined)
    return { key, now, before: null, change: 0, noise: 0, verdict: 'new', isOtherMachine: false };
  const then = median(before.runs.map((run) => run.median));
  const seen = before.runs.flatMap(({ lowest, highest }) => [lowest, highest]);
  const noise = Math.max(
    noiseMin,
    relativeSpread(ratio.rounds) + (Math.max(...seen) - Math.min(...seen)) / 2 / then,
  );
  const change = now / then - 1;
  const isBetter = ratio.better === 'higher' ? change > 0 : change < 0;
  const verdict = Math.abs(change) <= noise ? 'same' : isBetter ? 'better' : 'worse';
  return { key, now, before: then, change, noise, verdict, isOtherMachine: latest.machine !== machine };
}

/** The baselines with a result's ratios as their newest run; what it does not have stays. */
export function withResult(baselines: Baselines, result: LoadResult): Baselines {
  const set: Record<string, BaselineRatio> = { ...setOf(baselines, result) };
  for (const ratio of result.ratios) {
    const key = ratioKey(result.scenario, ratio);
    const run: BaselineRun = {
      date: result.began.slice(0, 10),
      commit: result.machine.commit,
      machine: result.machine.machine,
      median: rounded(median(ratio.rounds)),
      lowest: rounded(Math.min(...ratio.rounds)),
      highest: rounded(Math.max(...ratio.rounds)),
    };
    set[key] = { better: ratio.better, runs: [run, ...(set[key]?.runs ?? [])].slice(0, runsKept) };
  }
  return result.isQuick ? { ...baselines, quick: set } : { ...baselines, full: set };
}

const rounded = (value: number) => Number(value.toPrecision(4));

/** A line for each ratio that moved, and one for what is new. */
export function movementLines(movements: readonly Movement[]): string[] {
  const moved = movements.filter(({ verdict }) => verdict === 'better' || verdict === 'worse');
  const fresh = movements.filter(({ verdict }) => verdict === 'new').length;
  return [
    ...moved.map(
      ({ key, now, before, change, noise, verdict, isOtherMachine }) =>
        `${verdict.padEnd(6)} ${key}: ${now.toPrecision(3)}, ${before?.toPrecision(3)} before ` +
        `(${percentText(change)}, noise ${percentText(noise).slice(1)}${isOtherMachine ? ', on another machine' : ''})`,
    ),
    ...(fresh > 0 ? [`${fresh} ratios have no baseline yet: --keep-baselines writes them down`] : []),
  ];
}

/** With its sign. */
export function percentText(share: number): string {
  return `${share < 0 ? '−' : '+'}${Math.round(Math.abs(share) * 100)} %`;
}
