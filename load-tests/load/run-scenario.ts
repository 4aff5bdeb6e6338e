import { serverEnvironment } from '../../src/cli/supervise.ts';
import { balancedServers } from '../balanced-servers.ts';
import { machineFacts, median } from '../bench-report.ts';
import { restartMeasured, startMeasured } from '../measured-server.ts';
import { restartFlushed } from '../restart-flushed.ts';
import { startServer } from '../server.ts';
import { runClosedPhase } from './closed-loop.ts';
import { runBesidePhase, runPassesPhase, runRatesPhase } from './open-rates.ts';
import { runPeerPhase } from './peers.ts';
import { runRestartsPhase } from './restarts-phase.ts';
import {
  type CurveResult,
  failuresIn,
  type JudgedFigure,
  type LoadResult,
  type RatioResult,
  resultFormat,
  type ThroughputResult,
} from './result.ts';
import type { LoadPlan, Phase, Scenario, Stage } from './scenario.ts';
import type { Sizes } from './sizes.ts';
import { runSoakPhase } from './soak-phase.ts';
import { ratiosOfBare } from './statistics.ts';
import { type MemoryWatch, watchMemory } from './watch-memory.ts';

/**
 * Plays one scenario:
 *
 * 1. A new server in an empty folder, watched from its start.
 * 2. The scenario writes its data and says its phases.
 * 3. The phases, one after the other; each adds what it found.
 * 4. The server is stopped in order, and what was found becomes the result.
 *
 * A scenario that throws has a result too, with what was found before and why it ended.
 */
export async function runScenario(
  scenario: Scenario,
  sizes: Sizes,
  say: (line: string) => void,
): Promise<LoadResult> {
  const began = new Date();
  const found = new Findings();
  const env = { ...serverEnvironment, ...scenario.env };
  const isGroup = scenario.servers === 'three' || sizes.servers === 3;
  const site = isGroup ? balancedServers() : { start: startServer, end: async () => undefined };
  const { start } = site;
  let server = await startMeasured({ env }, start);
  const watch = watchMemory(() => server);
  const stage: Stage = {
    get server() {
      return server;
    },
    sizes,
    async restart(between) {
      await server.process.stop();
      const done = await between(server.process.dataFolders);
      server = await restartMeasured(server, { env }, start);
      return done;
    },
    async settle(namespaces) {
      // Waiting for merges takes longer than all of a quick run.
      server = await (sizes.isQuick
        ? restartMeasured(server, { env }, start)
        : restartFlushed(server, namespaces, { env }, start));
    },
  };
  let settings: LoadPlan['settings'] = {};
  let failure: string | null = null;
  try {
    found.mark(watch, 'data');
    const plan = await scenario.prepare(stage);
    ({ settings } = plan);
    for (const phase of plan.phases) {
      say(`    ${phase.name} (${phaseTitles[phase.kind]})`);
      found.mark(watch, `${phase.name} (${phaseTitles[phase.kind]})`);
      await actOn(phase, { stage, keys: plan.keys, watch, found });
    }
    await server.process.stop();
  } catch (error) {
    failure = String(error instanceof Error ? (error.stack ?? error.message) : error).slice(0, 2_000);
    if (server.process.ending() === null) await server.process.kill();
  } finally {
    await site.end();
  }
  return {
    format: resultFormat,
    scenario: sizes.servers === 3 && scenario.servers === undefined ? byThree(scenario.name) : scenario.name,
    about: scenario.about,
    isQuick: sizes.isQuick,
    began: began.toISOString(),
    tookSeconds: Math.round((Date.now() - began.getTime()) / 100) / 10,
    machine: machineFacts(),
    settings,
    memory: watch.stop(),
    failure,
    ...found.told(sizes.isQuick),
  };
}

/** What the result of a scenario is called that was played by three servers though one would do. */
export const byThree = (name: string) => `${name}-by-three`;

const phaseTitles = {
  closed: 'closed loop',
  rates: 'open loop',
  beside: 'open loop, alone and beside',
  passes: 'open loop, in passes',
  peer: 'beside a peer',
  soak: 'open loop for long',
  restarts: 'open loop, servers restarted in turn',
} satisfies Record<Phase['kind'], string>;

/** What phases found so far. */
class Findings {
  readonly throughput: ThroughputResult[] = [];
  readonly curves: CurveResult[] = [];
  readonly figures: JudgedFigure[] = [];
  readonly ratios: RatioResult[] = [];
  readonly #marks: { readonly atSeconds: number; readonly name: string }[] = [];

  mark(watch: MemoryWatch, name: string): void {
    this.#marks.push({ atSeconds: watch.seconds(), name });
  }

  told(isQuick: boolean): Pick<LoadResult, 'throughput' | 'curves' | 'figures' | 'ratios' | 'marks'> {
    const { throughput, curves, figures } = this;
    const failed =
      failuresIn(curves.flatMap(({ points }) => points)) +
      throughput.reduce((sum, { own, bare }) => sum + own.failures + bare.failures, 0);
    const none = { name: 'requests that failed', value: String(failed), bar: '0', ok: failed === 0 };
    const silent = throughput.flatMap(({ own }) => own.perSecond.filter((rate) => !(rate > 0)));
    const stood = { name: 'rounds without an answer', value: String(silent.length), bar: '0', ok: false };
    // In the second of a quick run's round a slow machine may answer none.

    const judged = silent.length === 0 || isQuick ? [none] : [none, stood];
    const ratios = [...throughput.flatMap(ratiosOfBare), ...this.ratios];
    return { throughput, curves, figures: [...judged, ...figures], ratios, marks: this.#marks };
  }
}

interface Acting {
  readonly stage: Stage;
  readonly keys: readonly string[];
  readonly watch: MemoryWatch;
  readonly found: Findings;
}

async function actOn(phase: Phase, { stage, keys, watch, found }: Acting): Promise<void> {
  switch (phase.kind) {
    case 'closed': {
      found.throughput.push(await runClosedPhase(stage, keys, phase));
      return;
    }
    case 'rates': {
      const target = { stage, keys, connections: phase.connections };
      found.curves.push(await runRatesPhase(target, phase, requestsPerSecond(found)));
      return;
    }
    case 'beside': {
      const target = { stage, keys, connections: phase.connections };
      const { curve, told } = await runBesidePhase(target, phase);
      found.curves.push(curve);
      found.figures.push(...told);
      return;
    }
    case 'passes': {
      const target = { stage, keys, connections: phase.connections };
      found.curves.push(await runPassesPhase(target, phase));
      return;
    }
    case 'peer': {
      const { ratio, figures } = await runPeerPhase(stage, keys, phase);
      found.ratios.push(ratio);
      found.figures.push(...figures);
      return;
    }
    case 'restarts': {
      const target = { stage, keys, connections: phase.connections };
      const { curve, figures } = await runRestartsPhase(target, phase);
      found.curves.push(curve);
      found.figures.push(...figures);
      return;
    }
    case 'soak': {
      const { curves, figures } = await runSoakPhase(
        { stage, keys, connections: phase.connections },
        phase,
        watch,
      );
      found.curves.push(...curves);
      found.figures.push(...figures);
    }
  }
}

/** What the last closed loop did. */
function requestsPerSecond({ throughput }: Findings): number {
  const last = throughput.at(-1);
  if (last === undefined) throw new Error('rates are shares of a closed loop: none came before them');
  return median(last.own.perSecond) / last.carried;
}
