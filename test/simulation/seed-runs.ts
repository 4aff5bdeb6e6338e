import type { Violation } from './history.ts';
import { runSeed } from './world.ts';

/** What came of many seeds; plain data, so that a child process can hand it to its parent. */
export interface Summary {
  seeds: number;
  /** The digest of each seed's events. */
  hashes: Record<string, string>;
  events: number;
  virtualMs: number;
  operations: number;
  answers: Record<string, number>;
  faults: Record<string, number>;
  /** Seeds that met fewer than two faults, which would be a seed wasted. */
  quietSeeds: number;
  violations: SeedViolation[];
}

export interface SeedViolation extends Violation {
  readonly seed: number;
}

export function emptySummary(): Summary {
  return {
    seeds: 0,
    hashes: {},
    events: 0,
    virtualMs: 0,
    operations: 0,
    answers: {},
    faults: {},
    quietSeeds: 0,
    violations: [],
  };
}

const faultsMin = 2;

/** Runs the seeds one after the other; ends early where `goOn` says so after one of them. */
export async function runSeeds(
  seeds: Iterable<number>,
  goOn: (summary: Summary) => boolean = () => true,
  servers = 1,
): Promise<Summary> {
  const summary = emptySummary();
  for (const seed of seeds) {
    await addSeed(summary, seed, servers);
    if (!goOn(summary)) break;
  }
  return summary;
}

async function addSeed(summary: Summary, seed: number, servers: number): Promise<void> {
  summary.seeds++;
  try {
    const result = await runSeed(seed, null, servers);
    summary.hashes[seed] = result.hash;
    summary.events += result.events;
    summary.virtualMs += result.virtualMs;
    for (const [name, count] of result.answers) {
      summary.operations += count;
      summary.answers[name] = (summary.answers[name] ?? 0) + count;
    }
    let faults = 0;
    for (const [fault, count] of result.faults) {
      faults += count;
      summary.faults[fault] = (summary.faults[fault] ?? 0) + count;
    }
    if (faults < faultsMin) summary.quietSeeds++;
    for (const violation of result.violations) summary.violations.push({ seed, ...violation });
  } catch (error) {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    summary.violations.push({ seed, kind: 'stuck', text });
  }
}

export function merge(into: Summary, from: Summary): void {
  into.seeds += from.seeds;
  Object.assign(into.hashes, from.hashes);
  into.events += from.events;
  into.virtualMs += from.virtualMs;
  into.operations += from.operations;
  into.quietSeeds += from.quietSeeds;
  for (const [name, count] of Object.entries(from.answers))
    into.answers[name] = (into.answers[name] ?? 0) + count;
  for (const [name, count] of Object.entries(from.faults))
    into.faults[name] = (into.faults[name] ?? 0) + count;
  into.violations.push(...from.violations);
}

/** From `first`, each `step`-th, so that jobs share the seeds evenly. */
export function* seedsFrom(first: number, count: number, step = 1): Generator<number> {
  for (let i = 0; i < count; i += step) yield first + i;
}
